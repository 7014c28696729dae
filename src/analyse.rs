//! Facts to numbers: the occupancy of every kernel on every GPU that was asked for.

use hashbrown::HashMap;

use crate::gpu::{Gpu, Launch, Occupancy, occupancy, suggest_block_size};
use crate::model::{Arch, BlockSize, Bytes, Kernel, Kind, Report};

/// What the user told about launches.
#[derive(Debug, Clone, Default)]
pub struct Assumptions {
    /// The GPUs to judge for; empty for each kernel's own architecture.
    pub gpus: Vec<Gpu>,
    /// The size of a block.
    pub block: Option<BlockSize>,
    /// Dynamic shared memory a block.
    pub dynamic_shared: Option<Bytes>,
}

/// Where a block size comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockSource {
    /// `--block`
    Option,
    /// Nothing tells it: the best of all multiples of 32.
    Sweep,
}

impl BlockSource {
    /// Its name in the JSON report.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            BlockSource::Option => "option",
            BlockSource::Sweep => "sweep",
        }
    }
}

/// One kernel's figures on one GPU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judged {
    /// An index of [`Numbers::gpus`].
    pub gpu: u32,
    /// The launch that was judged.
    pub launch: Launch,
    /// Its block.
    pub block: BlockSize,
    /// Where the block comes from.
    pub source: BlockSource,
    /// The answer.
    pub occupancy: Occupancy,
}

/// The occupancies of all kernels.
#[derive(Debug, Clone, Default)]
pub struct Numbers {
    /// The GPUs that kernels were judged for.
    pub gpus: Vec<Gpu>,
    /// Every distinct occupancy; many kernels share one.
    pub judged: Vec<Judged>,
    /// For each kernel of the report, the span of `ids` that is its own.
    spans: Vec<(u32, u32)>,
    ids: Vec<u32>,
    /// The block size that was told.
    pub block: Option<BlockSize>,
    /// The dynamic shared memory that was told.
    pub dynamic_shared: Option<Bytes>,
}

impl Numbers {
    /// The occupancies of kernel `at`, as indices of [`Numbers::judged`].
    #[must_use]
    pub fn ids(&self, at: usize) -> &[u32] {
        let (start, end) = self.spans.get(at).copied().unwrap_or_default();
        &self.ids[start as usize..end as usize]
    }

    /// The occupancies of kernel `at`.
    pub fn of(&self, at: usize) -> impl Iterator<Item = &Judged> {
        self.ids(at).iter().map(|id| &self.judged[*id as usize])
    }

    /// The GPU that `judged` is for.
    #[must_use]
    pub fn gpu(&self, judged: &Judged) -> &Gpu {
        &self.gpus[judged.gpu as usize]
    }
}

/// What an occupancy depends on.
#[derive(PartialEq, Eq, Hash)]
struct Need {
    gpu: u32,
    registers: u32,
    shared: Bytes,
    barriers: u32,
}

struct Analysis<'a> {
    numbers: Numbers,
    /// Whether the GPUs were asked for, or follow the kernels.
    asked: bool,
    own: HashMap<Arch, Option<u32>>,
    known: HashMap<Need, Option<u32>>,
    assumptions: &'a Assumptions,
}

/// Computes the occupancies of all kernels of `report`.
#[must_use]
pub fn analyse(report: &Report, assumptions: &Assumptions) -> Numbers {
    let numbers = Numbers {
        gpus: assumptions.gpus.clone(),
        block: assumptions.block,
        dynamic_shared: assumptions.dynamic_shared,
        ..Numbers::default()
    };
    let asked = !assumptions.gpus.is_empty();
    let mut analysis = Analysis { numbers, asked, own: HashMap::new(), known: HashMap::new(), assumptions };
    for kernel in &report.kernels {
        let start = analysis.numbers.ids.len();
        analysis.judge(kernel);
        let narrow = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        analysis.numbers.spans.push((narrow(start), narrow(analysis.numbers.ids.len())));
    }
    analysis.numbers
}

impl Analysis<'_> {
    fn judge(&mut self, kernel: &Kernel) {
        let (Some(registers), Some(shared)) = (kernel.resources.registers, kernel.resources.static_shared) else {
            return;
        };
        if kernel.kind != Kind::Entry || kernel.ambiguous {
            return;
        }
        // 16 barriers are printed where the compiler could not count them.
        let barriers = kernel.resources.barriers.filter(|count| *count < 16).unwrap_or(0);
        let gpus = if self.asked {
            let runs = |gpu: &Gpu| kernel.arch.is_none_or(|arch| gpu.runs(arch));
            (0..).zip(&self.numbers.gpus).filter(|(_, gpu)| runs(gpu)).map(|(at, _)| at).collect()
        } else {
            Vec::from_iter(kernel.arch.and_then(|arch| self.own_gpu(arch)))
        };
        for gpu in gpus {
            let need = Need { gpu, registers, shared, barriers };
            let id = match self.known.get(&need) {
                Some(id) => *id,
                None => {
                    let id = self.compute(&need);
                    self.known.insert(need, id);
                    id
                }
            };
            self.numbers.ids.extend(id);
        }
    }

    fn own_gpu(&mut self, arch: Arch) -> Option<u32> {
        let gpus = &mut self.numbers.gpus;
        *self.own.entry(arch.device()).or_insert_with(|| {
            gpus.push(Gpu::of(arch)?);
            u32::try_from(gpus.len() - 1).ok()
        })
    }

    fn compute(&mut self, need: &Need) -> Option<u32> {
        let target = &self.numbers.gpus[need.gpu as usize].target;
        let launch = Launch { barriers: need.barriers, ..Launch::new(need.registers, 0) }
            .with_shared(need.shared, self.assumptions.dynamic_shared.unwrap_or_default());
        let (block, source) = match self.assumptions.block {
            Some(block) => (block, BlockSource::Option),
            None => {
                let best = suggest_block_size(target, &launch, None).ok()?;
                // Where no block fits, the smallest whole warp says so.
                let threads = if best.threads == 0 { target.warp_size } else { best.threads };
                (BlockSize::new(threads, 1, 1).ok()?, BlockSource::Sweep)
            }
        };
        let launch = launch.with_threads(block.threads());
        let occupancy = occupancy(target, &launch).ok()?;
        self.numbers.judged.push(Judged { gpu: need.gpu, launch, block, source, occupancy });
        u32::try_from(self.numbers.judged.len() - 1).ok()
    }
}
