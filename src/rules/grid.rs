//! What the rules on grids share: launches with a constant grid, on each GPU that was asked for by its product.

use super::Context;
use crate::analyse::Launched;
use crate::finding::{Cause, Hit, Subject};
use crate::gpu::Gpu;
use crate::model::LaunchSite;

/// A launch with a constant grid, and a GPU whose number of SMs is known.
pub(super) struct Grid<'a> {
    at: usize,
    gpu_at: u32,
    pub(super) launched: &'a Launched,
    pub(super) site: &'a LaunchSite,
    pub(super) gpu: &'a Gpu,
    pub(super) blocks: u64,
    pub(super) sms: u32,
}

impl<'a> Grid<'a> {
    /// A hit on it.
    pub(super) fn hit(&self, weight: u32) -> Hit {
        let hit = Hit::launch(self.at, weight).caused_by(Cause::Single);
        Hit { because: Some(Subject::Gpu(self.gpu_at)), ..hit }
    }

    /// What a hit of [`Grid::hit`] is on.
    pub(super) fn of(context: &Context<'a>, hit: &Hit) -> Option<Grid<'a>> {
        let Subject::Launch(at) = hit.subject else { return None };
        let gpu_at = match hit.because? {
            Subject::Gpu(gpu) => gpu,
            _ => return None,
        };
        let (launched, site) = context.launch_of(hit)?;
        grid(context, at as usize, launched, site, gpu_at)
    }
}

/// All of them.
pub(super) fn grids<'a>(context: &Context<'a>) -> impl Iterator<Item = Grid<'a>> {
    let gpus = (0..).zip(&context.numbers.gpus).filter(|(_, gpu)| gpu.device.sm_count.is_some());
    let gpus: Vec<u32> = gpus.map(|(at, _)| at).collect();
    let launches: Vec<_> = if gpus.is_empty() { Vec::new() } else { context.launches().collect() };
    let all = launches.into_iter().flat_map(move |one| gpus.clone().into_iter().map(move |gpu| (one, gpu)));
    let context = (context.report, context.numbers);
    all.filter_map(move |((at, launched, site), gpu)| grid_in(context, at, launched, site, gpu))
}

fn grid<'a>(
    context: &Context<'a>,
    at: usize,
    launched: &'a Launched,
    site: &'a LaunchSite,
    gpu_at: u32,
) -> Option<Grid<'a>> {
    grid_in((context.report, context.numbers), at, launched, site, gpu_at)
}

fn grid_in<'a>(
    (report, numbers): (&'a crate::model::Report, &'a crate::analyse::Numbers),
    at: usize,
    launched: &'a Launched,
    site: &'a LaunchSite,
    gpu_at: u32,
) -> Option<Grid<'a>> {
    let gpu = numbers.gpus.get(gpu_at as usize)?;
    let blocks = site.blocks()?;
    let sms = gpu.device.sm_count?;
    // A kernel that was compiled, and not for this GPU, is not launched on it.
    let family = launched.family.and_then(|number| report.families.get(number as usize));
    let kernels = family.into_iter().flat_map(|family| &family.kernels);
    let kernels = kernels.filter_map(|at| report.kernels.get(*at as usize));
    let mut compiled = kernels.filter(|kernel| kernel.arch.is_some()).peekable();
    let runs = compiled.peek().is_none() || compiled.any(|kernel| gpu.takes(kernel));
    (runs && blocks > 0).then_some(Grid { at, gpu_at, launched, site, gpu, blocks, sms })
}
