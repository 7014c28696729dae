//! What the calculator found, for people and for programs.

mod compare;
mod json;
mod plots;
mod single;

use std::io::{self, Write};

pub use json::json;
pub(super) use single::all_notes;

use super::plot::Bar;
use super::style::Style;
use crate::gpu::{
    Gpu, Launch, LaunchError, Level, Next, Occupancy, Point, Refusal, Suggestion, block_sweep, cluster_refusal,
    largest_block, next, occupancy, refusals, register_levels, register_sweep, shared_levels, suggest_block_size,
};
use crate::model::BlockSize;

/// What was asked.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// The block.
    pub block: BlockSize,
    /// The launch; its threads are those of the block.
    pub launch: Launch,
    /// Blocks a cluster.
    pub cluster: Option<u32>,
}

/// Everything that is known about a launch on one GPU.
#[derive(Debug, Clone)]
pub struct Calculation {
    /// The GPU.
    pub gpu: Gpu,
    /// What an SM holds.
    pub occupancy: Occupancy,
    /// The nearest changes.
    pub next: Next,
    /// Why the launch is refused; empty when it is not.
    pub refusals: Vec<Refusal>,
    /// The largest block that could be launched instead.
    pub largest_block: Option<u32>,
    /// The block size that NVIDIA would suggest.
    pub suggestion: Suggestion,
    /// Other block sizes.
    pub blocks: Vec<Point>,
    /// Other register counts.
    pub registers: Vec<Point>,
    /// Levels of occupancy over registers.
    pub register_levels: Vec<Level>,
    /// Levels of occupancy over shared memory.
    pub shared_levels: Vec<Level>,
}

impl Calculation {
    /// Computes everything for one GPU.
    ///
    /// # Errors
    /// When the launch makes no sense there.
    pub fn new(gpu: Gpu, request: &Request) -> Result<Calculation, LaunchError> {
        let (target, launch) = (&*gpu.target, &request.launch);
        let cluster = request.cluster.and_then(|blocks| cluster_refusal(target, blocks));
        let mut occupancy = occupancy(target, launch)?;
        if cluster.is_some() {
            (occupancy.blocks_per_sm, occupancy.active_warps) = (0, 0);
        }
        Ok(Calculation {
            occupancy,
            next: next(target, launch)?,
            refusals: refusals(target, launch).into_iter().chain(cluster).collect(),
            largest_block: largest_block(target, launch),
            suggestion: suggest_block_size(target, launch, None)?,
            blocks: block_sweep(target, launch)?,
            registers: register_sweep(target, launch)?,
            register_levels: register_levels(target, launch)?,
            shared_levels: shared_levels(target, launch)?,
            gpu,
        })
    }

    /// The size of the cluster is refused: blocks and registers do not change that.
    fn is_refused_by_cluster(&self) -> bool {
        self.refusals.iter().any(|refusal| matches!(refusal, Refusal::Cluster { .. }))
    }

    fn block_bars(&self) -> Vec<Bar> {
        self.blocks.iter().map(|point| Bar { label: point.threads, share: point.occupancy.fraction() }).collect()
    }

    fn register_bars(&self) -> Vec<Bar> {
        self.registers.iter().map(|point| Bar { label: point.registers, share: point.occupancy.fraction() }).collect()
    }
}

/// Writes the report for people: one GPU in full, several side by side.
///
/// # Errors
/// When the writer fails.
pub fn human(calculations: &[Calculation], request: &Request, style: Style, out: &mut dyn Write) -> io::Result<()> {
    match calculations {
        [one] => single::write(one, request, style, out),
        several => compare::write(several, request, style, out),
    }
}

/// A number of warps that may be half a one: `8`, `7.5`.
pub(super) fn short(number: f64) -> String {
    if number.fract() == 0.0 { format!("{number:.0}") } else { format!("{number:.2}").trim_end_matches('0').to_owned() }
}

fn plural(count: u32, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// What the launch is, in one line.
fn asked(request: &Request) -> String {
    let launch = &request.launch;
    let mut words =
        vec![plural(launch.threads, "thread") + " a block", plural(launch.registers, "register") + " a thread"];
    if !launch.static_shared.is_zero() {
        words.push(format!("{} shared", launch.static_shared));
    }
    if !launch.dynamic_shared.is_zero() {
        words.push(format!("{} dynamic shared", launch.dynamic_shared));
    }
    if launch.barriers > 0 {
        words.push(plural(launch.barriers, "barrier"));
    }
    if let Some(percent) = launch.carveout {
        words.push(format!("carveout {percent} %"));
    }
    if let Some(cluster) = request.cluster {
        words.push(format!("clusters of {cluster}"));
    }
    words.join(", ")
}
