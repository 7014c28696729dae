//! The occupancies that kernels were judged at, and how each changes with one quantity, as the few steps of its curve.

use hashbrown::HashMap;
use serde::Serialize;

use crate::analyse::Judged;
use crate::gpu::{Level, Limiter, Point, block_sweep, register_levels, shared_levels};
use crate::rules::Context;

/// A part of a curve on which nothing changes: its last value, and the warps an SM holds up to there.
type Step = (u32, u32);

/// An occupancy that a kernel was judged at.
#[derive(Serialize)]
pub(super) struct JudgedPoint {
    /// An index of the page's GPUs.
    gpu: u32,
    block: [u32; 3],
    /// Where the block comes from.
    source: &'static str,
    /// Where it is launched, `path:line`.
    #[serde(skip_serializing_if = "Option::is_none")]
    site: Option<String>,
    registers: u32,
    /// Static and dynamic shared memory of a block, bytes.
    shared: u64,
    blocks: u32,
    warps: u32,
    limiters: Vec<&'static str>,
    /// Blocks an SM that each limit allows; without those that do not limit.
    limits: Vec<(&'static str, u32)>,
    /// Warps against threads a block, registers a thread, and shared memory a block: indices of the page's curves.
    curves: [Option<usize>; 3],
}

/// All points and curves of a page. Many kernels share a point, and many points a curve.
#[derive(Default)]
pub(super) struct Curves {
    pub(super) points: Vec<JudgedPoint>,
    pub(super) all: Vec<Vec<Step>>,
    known_points: HashMap<u32, usize>,
    known: HashMap<Vec<Step>, usize>,
}

impl Curves {
    /// The point of the occupancy `id`, an index of [`crate::analyse::Numbers::judged`].
    pub(super) fn point(&mut self, context: &Context<'_>, id: u32) -> usize {
        if let Some(known) = self.known_points.get(&id) {
            return *known;
        }
        let judged = &context.numbers.judged[id as usize];
        let point = self.of(context, judged);
        self.points.push(point);
        self.known_points.insert(id, self.points.len() - 1);
        self.points.len() - 1
    }

    fn of(&mut self, context: &Context<'_>, judged: &Judged) -> JudgedPoint {
        let (launch, target) = (&judged.launch, &context.numbers.gpu(judged).target);
        let answer = &judged.occupancy;
        let limits =
            Limiter::ALL.into_iter().filter_map(|limiter| Some((limiter.words(), answer.limits.get(limiter)?)));
        let site = judged.site.and_then(|spot| context.report.launch(spot));
        JudgedPoint {
            gpu: judged.gpu,
            block: judged.block.dimensions(),
            source: judged.source.name(),
            site: site.map(|site| {
                let place = site.quote.place;
                format!("{}:{}", context.report.file_of(place), place.line)
            }),
            registers: launch.registers,
            shared: launch.shared_bytes(),
            blocks: answer.blocks_per_sm,
            warps: answer.active_warps,
            limiters: answer.limiters.iter().map(Limiter::words).collect(),
            limits: limits.collect(),
            curves: [
                block_sweep(target, launch).ok().map(|points| steps(&points)),
                register_levels(target, launch).ok().map(|levels| of_levels(&levels)),
                shared_levels(target, launch).ok().map(|levels| of_levels(&levels)),
            ]
            .map(|curve| curve.map(|curve| self.curve(curve))),
        }
    }

    fn curve(&mut self, steps: Vec<Step>) -> usize {
        if let Some(known) = self.known.get(&steps) {
            return *known;
        }
        self.all.push(steps.clone());
        self.known.insert(steps, self.all.len() - 1);
        self.all.len() - 1
    }
}

/// The steps of a sweep over blocks. Each of its points holds from the one before it on: a partial warp is a warp.
fn steps(points: &[Point]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for point in points {
        let warps = point.occupancy.active_warps;
        match steps.last_mut() {
            Some(step) if step.1 == warps => step.0 = point.threads,
            _ => steps.push((point.threads, warps)),
        }
    }
    steps
}

fn of_levels(levels: &[Level]) -> Vec<Step> {
    levels.iter().map(|level| (level.up_to, level.occupancy.active_warps)).collect()
}
