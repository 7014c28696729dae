//! Facts to numbers: the occupancy of every kernel on every GPU that was asked for.

mod branches;
mod budget;
mod instances;
mod launches;
mod prefer;

use hashbrown::HashMap;

pub use branches::{BranchId, BranchQuotes, Branches, Depth, Found, InlinedQuote, Loose, NotFollowed, line_of};
pub use budget::{Budget, Limit};
pub use instances::{Instances, Launches};
pub use launches::Launched;

use crate::gpu::{Gpu, Launch, Occupancy, Target, occupancy, suggest_block_size};
use crate::model::{Arch, BlockSize, Bounds, Bytes, Kernel, Kind, NameId, Quote, Report, Spot};
use crate::pattern::Patterns;
use crate::suppress::{Remark, Scope, What};

use launches::Site;

/// What the user told about launches.
#[derive(Debug, Clone, Default)]
pub struct Assumptions {
    /// The GPUs to judge for; empty for each kernel's own architecture.
    pub gpus: Vec<Gpu>,
    /// The size of a block, for kernels of which no entry tells one.
    pub block: Option<BlockSize>,
    /// Dynamic shared memory a block likewise.
    pub dynamic_shared: Option<Bytes>,
    /// What is told of single kernels, in order: of several that match, the first that tells something holds.
    pub entries: Vec<Entry>,
    /// The names of the entries' kernels, in the same order.
    pub patterns: Patterns,
    /// What comments say.
    pub remarks: Vec<Remark>,
    /// Whether what is allowed has to say why.
    pub requires_reason: bool,
    /// Which branches of PTX to look at.
    pub depth: Depth,
}

/// What the configuration tells of the kernels of one name.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The glob that is held against their names.
    pub glob: String,
    /// The line of the glob.
    pub quote: Quote,
    /// The bytes of the line's text that the glob takes.
    pub span: (usize, usize),
    /// The size of a block.
    pub block: Option<BlockSize>,
    /// Dynamic shared memory a block.
    pub dynamic_shared: Option<Bytes>,
    /// What its kernels may cost.
    pub budgets: Vec<Budget>,
    /// What it allows, if anything.
    pub allowed: Option<Allowed>,
}

/// Where an entry of the configuration allows something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowed {
    /// The line.
    pub quote: Quote,
    /// The bytes of the line's text that the list takes.
    pub span: (usize, usize),
    /// Whether it says why.
    pub has_reason: bool,
}

/// What is told of the launch of a kernel, and where.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Told {
    /// The size of a block.
    pub block: Option<(BlockSize, BlockSource)>,
    /// Dynamic shared memory a block.
    pub dynamic_shared: Option<(Bytes, BlockSource)>,
    /// The dimensions of the block that all launches tell alike, where nothing tells a block.
    pub agreed: [Option<u32>; 3],
    /// Whether these launches may all be of an overload, so that the dimensions are assumed.
    pub is_perhaps: bool,
    /// What the directives of its PTX say, or the attributes in its sources.
    pub bounds: Option<Bounds>,
    /// The launch that tells its block or its dynamic shared memory, where one does.
    pub site: Option<Spot>,
}

impl Told {
    /// The most threads a block may have, as the kernel declares.
    #[must_use]
    pub fn max_threads(&self) -> Option<u32> {
        let bounds = self.bounds?;
        bounds.required.map(BlockSize::threads).or(bounds.max_threads)
    }
}

/// Where a block size comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockSource {
    /// A comment at the kernel.
    Comment,
    /// A `[[kernel]]` entry of the configuration.
    Config,
    /// `.reqntid` of its PTX, which `__block_size__` becomes: the block of every launch.
    ReqNtid,
    /// A launch in the sources.
    LaunchSite,
    /// `--block`
    Option,
    /// `.maxntid` of its PTX, which `__launch_bounds__` becomes: the largest block.
    LaunchBounds,
    /// Nothing tells it: the best of all multiples of 32.
    Sweep,
}

impl BlockSource {
    /// All, the best first.
    pub const ALL: [BlockSource; 7] = [
        BlockSource::Comment,
        BlockSource::Config,
        BlockSource::ReqNtid,
        BlockSource::LaunchSite,
        BlockSource::Option,
        BlockSource::LaunchBounds,
        BlockSource::Sweep,
    ];

    /// The source called `name` in the JSON report.
    #[must_use]
    pub fn named(name: &str) -> Option<BlockSource> {
        BlockSource::ALL.into_iter().find(|source| source.name() == name)
    }

    /// Its name in the JSON report.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            BlockSource::Comment => "comment",
            BlockSource::Config => "config",
            BlockSource::ReqNtid => "reqntid",
            BlockSource::LaunchSite => "launch-site",
            BlockSource::Option => "option",
            BlockSource::LaunchBounds => "launch-bounds",
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
    /// The launch in the sources that was judged.
    pub site: Option<Spot>,
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
    /// Every distinct thing that is told of a kernel's launch; first, what is told of a kernel that no entry names.
    pub told: Vec<Told>,
    /// For each kernel of the report its index of `told`; empty where all have the first.
    told_of: Vec<u32>,
    /// What else is told of kernels that are launched with several blocks.
    more_told: HashMap<usize, Vec<u32>>,
    /// What the configuration tells of single kernels.
    pub entries: Vec<Entry>,
    /// What they let their kernels cost, in their order.
    pub budgets: Vec<Budget>,
    /// Whether what is allowed has to say why.
    pub requires_reason: bool,
    /// The entries that name no kernel of the log, as indices.
    pub unmatched: Vec<usize>,
    matched: Matched,
    /// The branches of PTX modules.
    pub branches: Branches,
    /// What comments say.
    pub remarks: Vec<Remark>,
    /// The launches in the sources.
    pub launches: Vec<Launched>,
    /// Which of them may be of which instantiation.
    pub instances: Instances,
    /// PTX that does not fit its source.
    pub stale: Vec<Stale>,
}

/// PTX whose branches come from lines of its source on which nothing branches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stale {
    /// The PTX, an index of [`Report::inputs`].
    pub ptx: u32,
    /// The source likewise.
    pub source: u32,
    /// Lines of branches.
    pub lines: u32,
    /// Those of them on which nothing branches.
    pub failed: u32,
}

/// Which entries name which kernels.
#[derive(Debug, Clone, Default)]
struct Matched {
    /// For each name an index of `sets`; empty without entries.
    of_name: Vec<u32>,
    /// The distinct lists of entries that name a kernel, in order.
    sets: Vec<Vec<usize>>,
    /// For each of them the budgets that hold for its kernels; empty without budgets.
    budgets: Vec<Vec<usize>>,
}

impl Matched {
    /// Holds every distinct name of the log against the entries, once.
    ///
    /// Names of kernels that options leave out take part: an entry for such a kernel is not a mistake.
    fn new(report: &Report, assumptions: &Assumptions) -> Matched {
        if assumptions.entries.is_empty() {
            return Matched::default();
        }
        let mut matched = Matched::default();
        let mut known: HashMap<Vec<usize>, u32> = HashMap::new();
        for (_, name) in report.names.iter() {
            let set = assumptions.patterns.matching(name);
            let id = *known.entry(set).or_insert_with_key(|set| {
                matched.sets.push(set.clone());
                narrow(matched.sets.len() - 1)
            });
            matched.of_name.push(id);
        }
        matched.budgets = budget::of_sets(&matched.sets, &budgets(assumptions));
        matched
    }

    fn of(&self, name: Option<NameId>) -> Option<u32> {
        self.of_name.get(name?.index()).copied()
    }
}

impl Numbers {
    /// Takes note of launches anew, after sources were joined once more.
    pub fn find_launches(&mut self, report: &Report) {
        self.launches = launches::launches(report);
        self.instances = Instances::new(report);
    }

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

    /// Whether kernel `at` has occupancies, and a block that something tells.
    #[must_use]
    pub fn has_block(&self, at: usize) -> bool {
        !self.ids(at).is_empty() && self.of(at).all(|judged| judged.source != BlockSource::Sweep)
    }

    /// The entries that name the kernel called `name`, in order.
    #[must_use]
    pub fn entries_of(&self, name: Option<NameId>) -> &[usize] {
        self.matched.of(name).map_or(&[], |set| &self.matched.sets[set as usize])
    }

    /// What is told of the launch of kernel `at`; of several, the first.
    #[must_use]
    pub fn told(&self, at: usize) -> Option<&Told> {
        self.told.get(self.told_id(at))
    }

    /// The same as an index of [`Numbers::told`].
    #[must_use]
    pub fn told_id(&self, at: usize) -> usize {
        self.told_of.get(at).copied().unwrap_or_default() as usize
    }

    /// All that is told of the launches of kernel `at`, as indices of [`Numbers::told`]: more than one where it is launched
    /// with several blocks.
    pub fn told_ids(&self, at: usize) -> impl Iterator<Item = usize> {
        let more = self.more_told.get(&at).into_iter().flatten();
        std::iter::once(self.told_id(at)).chain(more.map(|id| *id as usize))
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
    told: Told,
}

struct Analysis {
    numbers: Numbers,
    /// Whether the GPUs were asked for, or follow the kernels.
    asked: bool,
    own: HashMap<Arch, Option<u32>>,
    known: HashMap<Need, Option<u32>>,
}

/// Computes the occupancies of all kernels of `report`.
#[must_use]
pub fn analyse(report: &Report, assumptions: &Assumptions) -> Numbers {
    let numbers = Numbers {
        gpus: assumptions.gpus.clone(),
        budgets: budgets(assumptions),
        requires_reason: assumptions.requires_reason,
        entries: assumptions.entries.clone(),
        matched: Matched::new(report, assumptions),
        remarks: assumptions.remarks.clone(),
        launches: launches::launches(report),
        instances: Instances::new(report),
        ..Numbers::default()
    };
    let asked = !assumptions.gpus.is_empty();
    let mut analysis = Analysis { numbers, asked, own: HashMap::new(), known: HashMap::new() };
    analysis.tell(report, assumptions);
    for (at, kernel) in report.kernels.iter().enumerate() {
        let start = analysis.numbers.ids.len();
        analysis.judge(at, kernel);
        analysis.numbers.spans.push((narrow(start), narrow(analysis.numbers.ids.len())));
    }
    let mut numbers = analysis.numbers;
    let told = |at: usize| numbers.told_ids(at).filter_map(|id| numbers.told.get(id).copied()).collect();
    numbers.branches = branches::branches(report, told, assumptions.depth);
    numbers
}

/// The budgets of all entries, in their order.
fn budgets(assumptions: &Assumptions) -> Vec<Budget> {
    assumptions.entries.iter().flat_map(|entry| entry.budgets.iter().copied()).collect()
}

fn narrow(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// The block and the dynamic shared memory that are told.
type Sizes = (Option<(BlockSize, BlockSource)>, Option<(Bytes, BlockSource)>);

/// What is told of one kernel, where it is declared and launched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
struct Declared {
    /// The block of a comment.
    block: Option<BlockSize>,
    /// The directives of its PTX, or the attributes in its sources.
    bounds: Option<Bounds>,
    /// A launch of it that is constant.
    site: Option<Site>,
    /// Dynamic shared memory of all launches, where none tells a block.
    dynamic_shared: Option<Bytes>,
    /// The dimensions of the block that all launches tell alike.
    agreed: [Option<u32>; 3],
    /// Whether these launches may all be of an overload.
    is_perhaps: bool,
}

/// What a comment, entries, the first first, the directives of PTX, a launch, and else the options tell.
fn told(entries: &[usize], declared: Declared, assumptions: &Assumptions) -> Told {
    let (bounds, site) = (declared.bounds, declared.site);
    let comment = declared.block.map(|block| (block, BlockSource::Comment));
    let entries = || entries.iter().map(|at| &assumptions.entries[*at]);
    let block = entries().find_map(|entry| entry.block).map(|block| (block, BlockSource::Config));
    let required = bounds.and_then(|bounds| bounds.required).map(|block| (block, BlockSource::ReqNtid));
    let launch = site.map(|site| (site.block, BlockSource::LaunchSite));
    let option = assumptions.block.map(|block| (block, BlockSource::Option));
    let most = bounds.and_then(|bounds| BlockSize::new(bounds.max_threads?, 1, 1).ok());
    let dynamic = entries().find_map(|entry| entry.dynamic_shared).map(|size| (size, BlockSource::Config));
    let launched = site.map_or(declared.dynamic_shared, |site| site.dynamic_shared);
    let launched = launched.map(|size| (size, BlockSource::LaunchSite));
    let most = most.map(|block| (block, BlockSource::LaunchBounds));
    let block = comment.or(block).or(required).or(launch).or(option).or(most);
    let option = assumptions.dynamic_shared.map(|size| (size, BlockSource::Option));
    let dynamic_shared = dynamic.or(launched).or(option);
    let is_launched = |source: Option<BlockSource>| source == Some(BlockSource::LaunchSite);
    let tells = is_launched(block.map(|(_, source)| source)) || is_launched(dynamic_shared.map(|(_, source)| source));
    let is_open = block.is_none_or(|(_, source)| source == BlockSource::LaunchBounds);
    let agreed = if is_open { declared.agreed } else { [None; 3] };
    let is_perhaps = agreed != [None; 3] && declared.is_perhaps;
    Told { block, dynamic_shared, agreed, is_perhaps, bounds, site: site.filter(|_| tells).map(|site| site.spot) }
}

/// For each kernel what its PTX, its sources and the comments there say; empty without either.
fn declarations(report: &Report, remarks: &[Remark]) -> Vec<Declared> {
    if report.modules.is_empty() && report.families.is_empty() {
        return Vec::new();
    }
    let mut all = vec![Declared::default(); report.kernels.len()];
    for function in report.modules.iter().flat_map(|module| &module.functions) {
        let is_compiled = function.declared.is_none();
        if let Some(one) = function.kernel.filter(|_| is_compiled).and_then(|at| all.get_mut(at as usize)) {
            // Kernels of several files that a log does not tell apart: what holds of one is not known of the other.
            let differ = one.bounds.is_some_and(|known| known != function.bounds);
            one.bounds = Some(if differ { Bounds::default() } else { function.bounds });
        }
    }
    for family in report.families.iter().filter(|family| !family.kernels.is_empty()) {
        let bounds = launches::bounds(&family.bounds(report));
        for at in &family.kernels {
            if let Some(one) = all.get_mut(*at as usize) {
                one.bounds.get_or_insert(bounds);
            }
        }
    }
    for remark in remarks {
        let What::Block(block) = &remark.what else { continue };
        let kernels = match &remark.scope {
            Scope::Kernel(at) => std::slice::from_ref(at),
            Scope::Family(number) => report.families.get(*number as usize).map_or(&[][..], |family| &family.kernels),
            Scope::File(_) | Scope::Line(..) | Scope::Nothing => &[],
        };
        for at in kernels {
            if let Some(one) = all.get_mut(*at as usize) {
                one.block.get_or_insert(*block);
            }
        }
    }
    all
}

impl Analysis {
    /// Finds out what is told of each kernel, and which entries tell nothing of any.
    fn tell(&mut self, report: &Report, assumptions: &Assumptions) {
        let numbers = &mut self.numbers;
        numbers.told.push(told(&[], Declared::default(), assumptions));
        let declared = declarations(report, &assumptions.remarks);
        if numbers.entries.is_empty() && declared.is_empty() {
            return;
        }
        let mut known: HashMap<(u32, Declared), (u32, Sizes)> = HashMap::new();
        let mut ids: HashMap<Told, u32> = HashMap::from([(numbers.told[0], 0)]);
        let sets = &numbers.matched.sets;
        let mut id_of = |set: Option<u32>, declared: Declared| {
            *known.entry((set.unwrap_or(u32::MAX), declared)).or_insert_with(|| {
                let entries = set.map_or(&[][..], |set| &sets[set as usize]);
                let told = told(entries, declared, assumptions);
                let id = *ids.entry(told).or_insert_with_key(|told| {
                    numbers.told.push(*told);
                    narrow(numbers.told.len() - 1)
                });
                (id, (told.block, told.dynamic_shared))
            })
        };
        for (at, kernel) in report.kernels.iter().enumerate() {
            let set = numbers.matched.of(kernel.name);
            let mut declared = declared.get(at).copied().unwrap_or_default();
            let sites = kernel.family.map(|_| launches::sites(report, &numbers.instances, kernel)).unwrap_or_default();
            declared.dynamic_shared = sites.dynamic_shared;
            declared.agreed = sites.agreed;
            declared.is_perhaps = sites.is_perhaps;
            declared.site = sites.distinct.first().copied();
            let (first, sizes) = id_of(set, declared);
            numbers.told_of.push(first);
            let mut more: Vec<u32> = Vec::new();
            let mut told_sizes = vec![sizes];
            for site in sites.distinct.iter().skip(1) {
                let (id, sizes) = id_of(set, Declared { site: Some(*site), ..declared });
                // Where something better tells the block, the launches tell the same.
                if !told_sizes.contains(&sizes) {
                    told_sizes.push(sizes);
                    more.push(id);
                }
            }
            if !more.is_empty() {
                numbers.more_told.insert(at, more);
            }
        }
        let mut named = vec![false; numbers.entries.len()];
        numbers.matched.sets.iter().flatten().for_each(|at| named[*at] = true);
        numbers.unmatched = (0..named.len()).filter(|at| !named[*at]).collect();
    }

    fn judge(&mut self, at: usize, kernel: &Kernel) {
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
        let several: Vec<usize> = if self.numbers.more_told.is_empty() {
            vec![self.numbers.told_id(at)]
        } else {
            self.numbers.told_ids(at).collect()
        };
        for gpu in gpus {
            for told in &several {
                let told = self.numbers.told.get(*told).copied().unwrap_or_default();
                let need = Need { gpu, registers, shared, barriers, told };
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
            .with_shared(need.shared, need.told.dynamic_shared.map(|(size, _)| size).unwrap_or_default());
        let (block, source) = match need.told.block {
            Some(told) => told,
            None => {
                let best = suggest_block_size(target, &launch, None).ok()?;
                // Where no block fits, the smallest whole warp says so.
                let threads = if best.threads == 0 { target.warp_size } else { usual(target, &launch, best.threads) };
                (BlockSize::new(threads, 1, 1).ok()?, BlockSource::Sweep)
            }
        };
        let bound = need.told.max_threads().filter(|most| block.threads() > *most);
        let launch = Launch { max_threads: bound, ..launch.with_threads(block.threads()) };
        let occupancy = occupancy(target, &launch).ok()?;
        let site = need.told.site;
        self.numbers.judged.push(Judged { gpu: need.gpu, launch, block, source, site, occupancy });
        u32::try_from(self.numbers.judged.len() - 1).ok()
    }
}

/// Of the block sizes that keep as many warps active as `best`, the one that a person would take.
fn usual(target: &Target, launch: &Launch, best: u32) -> u32 {
    let warps = |threads| occupancy(target, &launch.with_threads(threads)).map_or(0, |found| found.active_warps);
    let most = warps(best);
    [256, 128, 512].into_iter().find(|threads| warps(*threads) == most).unwrap_or(best)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Place, Resources};
    use crate::pattern::glob;

    fn report(names: &[&str]) -> Report {
        let mut report = Report::default();
        for name in names {
            let name = Some(report.names.intern(name.as_bytes()));
            let resources = Resources { registers: Some(32), static_shared: Some(Bytes::ZERO), ..Resources::default() };
            report.kernels.push(Kernel { resources, ..Kernel::new(name, Kind::Entry, "sm_80".parse().ok()) });
        }
        report
    }

    fn assumptions(report: &mut Report, entries: &[(&str, u32)]) -> Assumptions {
        let text = report.texts.intern(b"name");
        let quote = Quote { place: Place::default(), text };
        let entry = |(name, threads): &(&str, u32)| Entry {
            glob: (*name).to_owned(),
            quote,
            span: (0, 4),
            block: BlockSize::new(*threads, 1, 1).ok(),
            dynamic_shared: None,
            budgets: Vec::new(),
            allowed: None,
        };
        let globs: Vec<_> = entries.iter().map(|(name, _)| glob(name).expect("a glob")).collect();
        Assumptions {
            entries: entries.iter().map(entry).collect(),
            patterns: Patterns::new(&globs).expect("few globs"),
            ..Assumptions::default()
        }
    }

    #[test]
    fn kernels_of_which_the_same_is_told_share_their_occupancy() {
        let mut report = report(&["a1", "a2", "b", "c", "c"]);
        let assumptions = assumptions(&mut report, &[("a?", 64), ("b", 64), ("gone", 32)]);
        let numbers = analyse(&report, &assumptions);
        assert_eq!(numbers.judged.len(), 2);
        assert_eq!(numbers.ids(0), numbers.ids(2));
        assert_ne!(numbers.ids(0), numbers.ids(3));
        assert_eq!(numbers.judged[numbers.ids(0)[0] as usize].source, BlockSource::Config);
        assert_eq!(numbers.judged[numbers.ids(4)[0] as usize].source, BlockSource::Sweep);
        assert_eq!(numbers.told.len(), 2);
        assert_eq!(numbers.unmatched, [2]);
        assert_eq!(numbers.entries_of(report.kernels[2].name), [1]);
    }

    #[test]
    fn without_entries_no_name_is_looked_at() {
        let mut report = report(&["a"]);
        let assumptions = assumptions(&mut report, &[]);
        let numbers = analyse(&report, &assumptions);
        assert!(numbers.matched.of_name.is_empty() && numbers.told_of.is_empty() && numbers.unmatched.is_empty());
        assert!(numbers.entries_of(report.kernels[0].name).is_empty());
    }

    #[test]
    fn among_equally_good_block_sizes_256_comes_first_and_then_128() {
        let target = Gpu::of("sm_80".parse().expect("an arch")).expect("a GPU").target;
        let block_at = |registers| {
            let launch = Launch::new(registers, 0);
            let best = suggest_block_size(&target, &launch, None).expect("a launch").threads;
            (best, usual(&target, &launch, best))
        };
        assert_eq!(block_at(32), (1024, 256));
        // 96 registers keep 20 warps: one block of 640, two of 256 would keep 16, five of 128 keep 20.
        assert_eq!(block_at(96), (640, 128));
        assert_eq!(block_at(255), (256, 256));
        let shared = Launch::new(32, 0).with_shared(Bytes(100 * 1024), Bytes::ZERO);
        assert_eq!(usual(&target, &shared, 1024), 1024);
    }
}
