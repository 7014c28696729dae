//! How a launch is cut into warps and fills a GPU, for people and for programs.

mod figures;
mod human;
mod json;
mod latency;
mod map;
mod table;
mod warps;

pub use human::human;
pub use json::json;

use crate::gpu::cut::Cut;
use crate::gpu::{
    Fill, Gpu, Launch, LaunchError, Occupancy, Target, cluster_bound, cluster_refusal, largest_block, occupancy,
    refusals, tiles,
};

/// What was asked.
#[derive(Debug, Clone)]
pub struct Request {
    /// The launch cut into warps, which no GPU does otherwise than another.
    pub cut: Cut,
    /// Registers a thread, where they were told.
    pub registers: Option<u32>,
    /// What an SM is given of it; without registers where they were not told.
    pub launch: Launch,
    /// Blocks a cluster.
    pub cluster: Option<u32>,
    /// Independent instructions of a warp before it waits.
    pub independent: Option<u32>,
}

impl Request {
    fn is_clustered(&self) -> bool {
        self.cluster.is_some_and(|blocks| blocks > 1)
    }
}

/// What is known of the launch on one GPU.
#[derive(Debug, Clone)]
pub struct Found {
    /// The GPU.
    pub gpu: Gpu,
    /// What an SM holds; where registers are not told, what it holds at most.
    pub occupancy: Occupancy,
    /// Where registers are not told: the most at which an SM holds that many. `None` where they are, or do not matter.
    pub up_to_registers: Option<u32>,
    /// Why the launch is refused; empty when it is not.
    pub refusals: Vec<String>,
    /// The largest block that could be launched instead, where the block is what is refused.
    pub largest_block: Option<u32>,
    /// How the grid fills the GPU, `None` where the number of SMs is not known or the launch is refused; a bound where
    /// [`Found::is_bound`].
    pub fill: Option<Fill>,
    /// Whether the blocks that the GPU holds are only known not to be more, and the fills not to be fewer.
    pub is_bound: bool,
    /// Where registers are not told: how the grid fills the GPU if they are so many that it takes as few blocks as it can.
    pub worst: Option<Fill>,
}

impl Found {
    /// Computes everything for one GPU.
    ///
    /// # Errors
    /// When the launch makes no sense there.
    pub fn new(gpu: Gpu, request: &Request) -> Result<Found, LaunchError> {
        let (target, launch) = (&*gpu.target, &request.launch);
        let mut occupancy = occupancy(target, launch)?;
        let mut reasons: Vec<String> = refusals(target, launch).iter().map(ToString::to_string).collect();
        let is_block = !reasons.is_empty();
        let at_once = at_once(&gpu, request, occupancy.blocks_per_sm);
        reasons.extend(cluster_reason(target, request));
        if reasons.is_empty() && at_once == Some(0) {
            let (cluster, sms) = (request.cluster.unwrap_or(1), gpu.device.sm_count.unwrap_or(0));
            reasons.push(format!("{sms} SMs of {} blocks hold no cluster of {cluster}", occupancy.blocks_per_sm));
        }
        if !reasons.is_empty() {
            (occupancy.blocks_per_sm, occupancy.active_warps) = (0, 0);
        }
        let up_to_registers = match request.registers {
            None if reasons.is_empty() => registers_that_hold(target, launch, occupancy.blocks_per_sm),
            _ => None,
        };
        let blocks = request.cut.grid.blocks();
        let worst = match up_to_registers {
            Some(_) if !request.is_clustered() => self::at_once(&gpu, request, fewest_blocks(target, launch)),
            _ => None,
        };
        Ok(Found {
            worst: worst.and_then(|at_once| Fill::new(blocks, at_once)),
            largest_block: is_block.then(|| largest_block(target, launch)).flatten(),
            fill: at_once.filter(|_| reasons.is_empty()).and_then(|at_once| Fill::new(blocks, at_once)),
            is_bound: up_to_registers.is_some() || request.is_clustered(),
            refusals: reasons,
            up_to_registers,
            occupancy,
            gpu,
        })
    }

    /// Whether not one block can be launched.
    fn is_refused(&self) -> bool {
        !self.refusals.is_empty()
    }

    /// The fills that the grid takes, where they are known.
    fn fills(&self) -> Option<u64> {
        let fewest = self.fill?.fills();
        let is_known = !self.is_bound || self.worst.is_some_and(|worst| worst.fills() == fewest);
        is_known.then_some(fewest)
    }

    /// SMs that have no block, where all blocks have one to themselves.
    fn idle_sms(&self, request: &Request) -> Option<u32> {
        let sms = self.gpu.device.sm_count.filter(|_| !self.is_refused())?;
        Some(sms.saturating_sub(u32::try_from(request.cut.grid.blocks()).unwrap_or(u32::MAX)))
    }

    /// Warps a scheduler that the whole grid gives on average, where it does not fill the GPU.
    #[allow(clippy::cast_precision_loss, reason = "an average")]
    fn warps_of_grid(&self, request: &Request) -> Option<f64> {
        let fill = self.fill.filter(|fill| fill.blocks < fill.at_once)?;
        let schedulers = f64::from(self.gpu.device.sm_count?) * f64::from(self.occupancy.schedulers.max(1));
        Some(fill.blocks as f64 * f64::from(request.cut.warps_per_block()) / schedulers)
    }
}

/// Blocks that the GPU holds at once; with clusters, at most.
fn at_once(gpu: &Gpu, request: &Request, blocks_per_sm: u32) -> Option<u64> {
    let cluster = request.cluster.unwrap_or(1);
    gpu.device.sm_count.map(|sms| cluster_bound(sms, blocks_per_sm, cluster) * u64::from(cluster.max(1)))
}

fn cluster_reason(target: &Target, request: &Request) -> Option<String> {
    let cluster = request.cluster?;
    if let Some(refusal) = cluster_refusal(target, cluster) {
        return Some(refusal.to_string());
    }
    let grid = request.cut.grid;
    let text = || format!("no cluster of {cluster} blocks divides a grid of {grid} evenly in each dimension");
    (!tiles(cluster, grid.dimensions())).then(text)
}

/// The most registers a thread with which an SM holds as many blocks as without any; `None` where every count does.
fn registers_that_hold(target: &Target, launch: &Launch, blocks: u32) -> Option<u32> {
    let holds = |registers: &u32| {
        occupancy(target, &launch.with_registers(*registers)).is_ok_and(|found| found.blocks_per_sm >= blocks)
    };
    let most = (1..=target.max_registers_per_thread).rev().find(holds)?;
    (most < target.max_registers_per_thread).then_some(most)
}

/// The fewest blocks an SM that registers can leave it, short of refusing the launch.
fn fewest_blocks(target: &Target, launch: &Launch) -> u32 {
    let blocks =
        |registers| occupancy(target, &launch.with_registers(registers)).map_or(0, |found| found.blocks_per_sm);
    (1..=target.max_registers_per_thread).map(blocks).filter(|blocks| *blocks > 0).min().unwrap_or(0)
}
