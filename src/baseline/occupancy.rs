//! What a change of figures does to occupancy: both computed now, with one table and one block, so that neither a better
//! table nor another launch looks like a change of the code.

use std::borrow::Cow;

use hashbrown::HashMap;

use super::{Figures, LaunchFigures};
use crate::analyse::BlockSource;
use crate::gpu::{Gpu, Launch, Target, occupancy, suggest_block_size};
use crate::model::{Arch, BlockSize, Bytes};

/// Where two builds of a kernel are compared.
#[derive(Debug, Clone, Copy)]
pub struct At<'g> {
    /// The GPU.
    pub gpu: &'g Gpu,
    /// The block; `None` where nobody knows it.
    pub block: Option<BlockSize>,
    /// Dynamic shared memory a block.
    pub dynamic_shared: Bytes,
}

/// Occupancy before and after, in warps an SM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AtBlock {
    /// The GPU.
    pub gpu: Box<str>,
    /// The block; `None` where each is at its best.
    pub block: Option<BlockSize>,
    /// Active warps before.
    pub before: u32,
    /// Active warps after.
    pub after: u32,
    /// Warps that the SM can hold.
    pub most: u32,
}

impl AtBlock {
    /// The share before.
    #[must_use]
    pub fn fraction_before(&self) -> f64 {
        f64::from(self.before) / f64::from(self.most.max(1))
    }

    /// The share after.
    #[must_use]
    pub fn fraction_after(&self) -> f64 {
        f64::from(self.after) / f64::from(self.most.max(1))
    }
}

/// Where to compare two builds of a kernel on these GPUs: with the blocks that are told after, else before.
pub fn places<'g>(gpus: impl IntoIterator<Item = &'g Gpu>, before: &Figures, after: &Figures) -> Vec<At<'g>> {
    let told = |figures: &Figures| {
        let mut blocks: Vec<(Option<BlockSize>, Bytes)> = Vec::new();
        for launch in figures.launches.iter().filter(|launch| launch.is_told()) {
            let block = (Some(launch.block), launch.dynamic_shared.unwrap_or_default());
            // A kernel has a handful of launches; those of a file that somebody made up may be many.
            if blocks.len() < MOST_BLOCKS && !blocks.contains(&block) {
                blocks.push(block);
            }
        }
        blocks
    };
    let mut blocks = told(after);
    if blocks.is_empty() {
        blocks = told(before);
    }
    if blocks.is_empty() {
        let of = |figures: &Figures| figures.launches.iter().find_map(|launch| launch.dynamic_shared);
        blocks.push((None, of(after).or_else(|| of(before)).unwrap_or_default()));
    }
    let at =
        |gpu: &'g Gpu| blocks.iter().map(move |(block, dynamic)| At { gpu, block: *block, dynamic_shared: *dynamic });
    gpus.into_iter().flat_map(at).collect()
}

/// Blocks of one kernel that are compared at most.
const MOST_BLOCKS: usize = 16;

/// Computes occupancies, and knows again those at the best of all block sizes, which take long.
#[derive(Debug, Default)]
pub struct Occupancies {
    /// By target and figures: the block, and active warps.
    best: HashMap<(Arch, [u32; 4]), (u32, u32)>,
}

impl Occupancies {
    /// What `before` and `after` have at one place; `None` where a figure is unknown, or they are not of one kind.
    pub(super) fn at(&mut self, before: &Figures, after: &Figures, at: &At<'_>) -> Option<AtBlock> {
        if !before.is_alike(after) || after.is_function {
            return None;
        }
        let most = at.gpu.target.max_warps_per_sm;
        let (_, before) = self.warps(before, at)?;
        let (_, after) = self.warps(after, at)?;
        Some(AtBlock { gpu: at.gpu.name.as_str().into(), block: at.block, before, after, most })
    }

    /// The block that is judged, and active warps.
    fn warps(&mut self, figures: &Figures, at: &At<'_>) -> Option<(u32, u32)> {
        let target: &Target = &at.gpu.target;
        let launch = Launch { barriers: figures.counted_barriers().unwrap_or(0), ..Launch::new(figures.registers?, 0) };
        let launch = launch.with_shared(figures.static_shared?, at.dynamic_shared);
        let warps = |threads: u32| Some(occupancy(target, &launch.with_threads(threads)).ok()?.active_warps);
        if let Some(block) = at.block {
            return Some((block.threads(), warps(block.threads())?));
        }
        // The file of a device may change the limits of its architecture.
        let (fixed, dynamic) = (launch.static_shared.get(), launch.dynamic_shared.get());
        let key = (target.arch, [launch.registers, launch.barriers, fixed, dynamic]);
        let is_known_target = matches!(at.gpu.target, Cow::Borrowed(_));
        if let Some(known) = self.best.get(&key).filter(|_| is_known_target) {
            return Some(*known);
        }
        let threads = suggest_block_size(target, &launch, None).ok()?.threads;
        // Where no block fits, none is active.
        let found = if threads == 0 { (target.warp_size, 0) } else { (threads, warps(threads)?) };
        if is_known_target {
            self.best.insert(key, found);
        }
        Some(found)
    }
}

/// What else is told of launches than a file tells.
#[derive(Debug, Clone, Default)]
pub struct Told {
    /// The GPUs that were asked for; each kernel's own where there are none.
    pub gpus: Vec<Gpu>,
    /// The block of kernels of which a file tells none, or only the largest.
    pub block: Option<BlockSize>,
    /// Dynamic shared memory likewise.
    pub dynamic_shared: Option<Bytes>,
}

impl Figures {
    /// Takes the launches for what was asked for now, of figures that come out of a file.
    pub fn launch_again(&mut self, arch: Option<Arch>, told: &Told, own: Option<&Gpu>, known: &mut Occupancies) {
        let is_better = |launch: &&LaunchFigures| launch.is_told() && launch.source != BlockSource::LaunchBounds;
        let mut launches: Vec<LaunchFigures> = self.launches.iter().filter(is_better).cloned().collect();
        if launches.is_empty() {
            launches = self.launches.iter().take(1).cloned().collect();
            if let Some(block) = told.block {
                launches.truncate(0);
                let source = BlockSource::Option;
                let dynamic_shared = told.dynamic_shared;
                launches.push(LaunchFigures { gpu: "".into(), block, source, dynamic_shared, occupancy: 0.0 });
            }
        }
        if self.is_function {
            self.launches.clear();
            return;
        }
        let gpus = told.gpus.iter().filter(|gpu| arch.is_none_or(|arch| gpu.runs(arch)));
        let gpus: Vec<&Gpu> = if told.gpus.is_empty() { own.into_iter().collect() } else { gpus.collect() };
        let before = Figures { launches, ..self.clone() };
        let mut again = |at: At<'_>| {
            let (threads, warps) = known.warps(&before, &at)?;
            Some(LaunchFigures {
                gpu: at.gpu.name.as_str().into(),
                block: at.block.or_else(|| BlockSize::new(threads, 1, 1).ok())?,
                source: match at.block {
                    None => BlockSource::Sweep,
                    Some(block) => before.launches.iter().find(|one| one.block == block)?.source,
                },
                dynamic_shared: Some(at.dynamic_shared).filter(|size| !size.is_zero()),
                occupancy: f64::from(warps) / f64::from(at.gpu.target.max_warps_per_sm.max(1)),
            })
        };
        self.launches = places(gpus, &before, &before).into_iter().filter_map(&mut again).collect();
    }
}
