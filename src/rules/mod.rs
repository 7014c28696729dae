//! The rules: one file each, one row each. A rule states facts; how loud they are is settled later.

mod advice;
mod branch;
mod grid;
mod limits;
mod page;
#[cfg(test)]
mod records;
mod standing;
#[cfg(test)]
mod template;
#[cfg(test)]
mod testing;
mod text;

mod allow_without_reason;
mod barrier_in_divergent_branch;
mod barrier_limited_occupancy;
mod block_limited_occupancy;
mod budget_exceeded;
mod build_failed;
mod compiler_warning;
mod data_divergent_branch;
mod debug_build;
mod divergent_switch;
mod grid_too_small;
mod index_divergent_branch;
mod index_divergent_loop;
mod launch_bounds_exceeded;
mod launch_bounds_ignored;
mod local_memory;
mod loose_launch_bounds;
mod missing_launch_bounds;
mod no_resource_report;
mod not_final_registers;
mod register_cap_overridden;
mod register_cliff;
mod register_limited_occupancy;
mod register_spill;
mod regression;
mod setmaxnreg_ignored;
mod shared_memory_limited_occupancy;
mod slow_fp64;
mod split_row_warps;
mod stale_ptx;
mod tail_effect;
mod unbounded_stack;
mod under_filled_warp;
mod unlaunchable_kernel;
mod unmatched_kernel_entry;
mod unread_line;
mod unsynchronised_warp_intrinsic;
mod unused_allow;
mod unused_warp_slots;
mod wgmma_serialized;
mod wgmma_wait_injected;
mod wrong_target;

use std::cell::OnceCell;
use std::mem::discriminant;

use hashbrown::{HashMap, HashSet};

use crate::analyse::{BlockSource, BranchQuotes, Budget, Entry, Found, Judged, Launched, Loose, Numbers, Told};
use crate::baseline::Against;
use crate::finding::{Finding, Hit, Label, Subject};
use crate::gpu::{Gpu, Target};
use crate::model::{
    Alike, Arch, Declaration, Family, Function, Kernel, Kind, LaunchSite, Message, MessageKind, NameId, Place, Quote,
    Report, Spot, alike, symbol,
};
use crate::suppress::Remark;

use standing::is_device_runtime;

pub use barrier_in_divergent_branch::loudest as loudest_of_barrier;
pub use page::{Group, Head, Page, PageError, Setting};
pub use regression::comparable;

/// A rule as registered.
pub struct Rule {
    /// Its name in options, configuration, comments and reports; reads well after "allow".
    pub id: &'static str,
    /// The text of its page, `rules/<id>.md`, which holds its summary, level, options and documentation.
    pub text: &'static str,
    arm: fn(toml::Table) -> Result<Box<dyn Armed>, toml::de::Error>,
}

/// A rule with its options in place.
pub trait Armed {
    /// Finds every hit.
    fn check(&self, context: &Context<'_>, hits: &mut Vec<Hit>);
    /// Puts one hit into words.
    fn tell(&self, context: &Context<'_>, hit: &Hit) -> Finding;
}

struct WithOptions<O> {
    options: O,
    check: fn(&Context<'_>, &O, &mut Vec<Hit>),
    tell: fn(&Context<'_>, &O, &Hit) -> Finding,
}

impl<O> Armed for WithOptions<O> {
    fn check(&self, context: &Context<'_>, hits: &mut Vec<Hit>) {
        (self.check)(context, &self.options, hits);
    }

    fn tell(&self, context: &Context<'_>, hit: &Hit) -> Finding {
        (self.tell)(context, &self.options, hit)
    }
}

/// The row of one rule: its id, and the module with its `Options`, `check` and `tell`. A missing page does not compile.
macro_rules! rule {
    ($id:literal, $module:ident) => {
        Rule {
            id: $id,
            text: include_str!(concat!("../../rules/", $id, ".md")),
            arm: |options| {
                let options: $module::Options = options.try_into()?;
                Ok(Box::new(WithOptions { options, check: $module::check, tell: $module::tell }))
            },
        }
    };
}

/// Every rule, in alphabetical order.
pub static RULES: &[Rule] = &[
    rule!("allow-without-reason", allow_without_reason),
    rule!("barrier-in-divergent-branch", barrier_in_divergent_branch),
    rule!("barrier-limited-occupancy", barrier_limited_occupancy),
    rule!("block-limited-occupancy", block_limited_occupancy),
    rule!("budget-exceeded", budget_exceeded),
    rule!("build-failed", build_failed),
    rule!("compiler-warning", compiler_warning),
    rule!("data-divergent-branch", data_divergent_branch),
    rule!("debug-build", debug_build),
    rule!("divergent-switch", divergent_switch),
    rule!("grid-too-small", grid_too_small),
    rule!("index-divergent-branch", index_divergent_branch),
    rule!("index-divergent-loop", index_divergent_loop),
    rule!("launch-bounds-exceeded", launch_bounds_exceeded),
    rule!("launch-bounds-ignored", launch_bounds_ignored),
    rule!("local-memory", local_memory),
    rule!("loose-launch-bounds", loose_launch_bounds),
    rule!("missing-launch-bounds", missing_launch_bounds),
    rule!("no-resource-report", no_resource_report),
    rule!("not-final-registers", not_final_registers),
    rule!("register-cap-overridden", register_cap_overridden),
    rule!("register-cliff", register_cliff),
    rule!("register-limited-occupancy", register_limited_occupancy),
    rule!("register-spill", register_spill),
    rule!("regression", regression),
    rule!("setmaxnreg-ignored", setmaxnreg_ignored),
    rule!("shared-memory-limited-occupancy", shared_memory_limited_occupancy),
    rule!("slow-fp64", slow_fp64),
    rule!("split-row-warps", split_row_warps),
    rule!("stale-ptx", stale_ptx),
    rule!("tail-effect", tail_effect),
    rule!("unbounded-stack", unbounded_stack),
    rule!("under-filled-warp", under_filled_warp),
    rule!("unlaunchable-kernel", unlaunchable_kernel),
    rule!("unmatched-kernel-entry", unmatched_kernel_entry),
    rule!("unread-line", unread_line),
    rule!("unsynchronised-warp-intrinsic", unsynchronised_warp_intrinsic),
    rule!("unused-allow", unused_allow),
    rule!("unused-warp-slots", unused_warp_slots),
    rule!("wgmma-serialized", wgmma_serialized),
    rule!("wgmma-wait-injected", wgmma_wait_injected),
    rule!("wrong-target", wrong_target),
];

impl Rule {
    /// The rule called `id`, or `warplint::id` as reports head a finding.
    #[must_use]
    pub fn named(id: &str) -> Option<&'static Rule> {
        let id = id.strip_prefix("warplint::").unwrap_or(id);
        RULES.binary_search_by(|rule| rule.id.cmp(id)).ok().map(|at| &RULES[at])
    }

    /// Its page, read.
    ///
    /// # Panics
    /// When the page in the source tree is broken, which a test rules out.
    #[must_use]
    pub fn page(&self) -> Page {
        Page::read(self.text).unwrap_or_else(|error| panic!("bug: rules/{}.md: {error}", self.id))
    }

    /// What every run needs of its page.
    ///
    /// # Panics
    /// When the page in the source tree is broken, which a test rules out.
    #[must_use]
    pub fn head(&self) -> Head {
        Head::read(self.text).unwrap_or_else(|| panic!("bug: rules/{}.md has no front matter", self.id))
    }

    /// The rule with `options`, which hold a value for every option of its page.
    ///
    /// # Errors
    /// When an option is unknown or of the wrong type.
    pub fn arm(&self, options: toml::Table) -> Result<Box<dyn Armed>, toml::de::Error> {
        (self.arm)(options)
    }
}

/// An entry of the configuration that allows something in vain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdleEntry {
    /// An index of [`Numbers::entries`].
    pub entry: usize,
    /// The rules and groups that it allows and that found nothing.
    pub names: Vec<&'static str>,
}

/// What rules see.
pub struct Context<'a> {
    /// Everything that was read.
    pub report: &'a Report,
    /// Everything that was computed.
    pub numbers: &'a Numbers,
    /// The messages of each kind, by their indices; kinds that differ in their figures alone are one.
    kinds: Vec<(MessageKind, Vec<u32>)>,
    /// The families of kernels by their names.
    families: HashMap<NameId, u32>,
    /// Comments that silence nothing, as indices of [`Numbers::remarks`]: known when all other rules were run.
    pub unused: Vec<u32>,
    /// Entries of the configuration that allow something in vain: known likewise.
    pub idle_entries: Vec<IdleEntry>,
    /// What the figures are held against, where something is.
    pub against: Option<&'a Against>,
    /// Accepted findings that are gone: known when all other rules were run.
    pub gone: Option<u64>,
    /// How the kernels stand to what they are held against, once somebody asked.
    build: OnceCell<regression::Build<'a>>,
}

impl<'a> Context<'a> {
    /// What rules see of these.
    #[must_use]
    pub fn new(report: &'a Report, numbers: &'a Numbers) -> Context<'a> {
        let mut kinds: Vec<(MessageKind, Vec<u32>)> = Vec::new();
        for (at, message) in (0..).zip(&report.messages) {
            let is_its = |(kind, _): &(MessageKind, _)| discriminant(kind) == discriminant(&message.kind);
            match kinds.iter().position(is_its) {
                Some(kind) => kinds[kind].1.push(at),
                None => kinds.push((message.kind, vec![at])),
            }
        }
        let of_kernel = |kernel: &Kernel| Some((kernel.name?, kernel.family?));
        let families = if report.families.is_empty() {
            HashMap::new()
        } else {
            report.kernels.iter().filter_map(of_kernel).collect()
        };
        Context {
            report,
            numbers,
            kinds,
            families,
            unused: Vec::new(),
            idle_entries: Vec::new(),
            against: None,
            gone: None,
            build: OnceCell::new(),
        }
    }

    /// The same, held against a baseline, where there is one.
    #[must_use]
    pub fn against(self, against: Option<&'a Against>) -> Context<'a> {
        Context { against, ..self }
    }

    /// How the kernels stand to the baseline, where there is one.
    fn build(&self) -> Option<&regression::Build<'a>> {
        let against = self.against?;
        Some(self.build.get_or_init(|| regression::Build::of(self, against)))
    }

    /// Kernels and device functions whose figures are surely theirs, with their indices; without those that the CUDA
    /// device runtime brings along, as nobody can change them.
    pub fn certain(&self) -> impl Iterator<Item = (usize, &'a Kernel)> {
        self.framed().filter(|(_, kernel)| !kernel.ambiguous)
    }

    /// The same, and those of which only stack and spills are surely theirs: where lines of parallel jobs are mixed up,
    /// these still follow the kernel's name.
    pub fn framed(&self) -> impl Iterator<Item = (usize, &'a Kernel)> {
        let names = &self.report.names;
        let is_own = move |kernel: &Kernel| !kernel.name.is_some_and(|name| is_device_runtime(names.get(name)));
        let kernels = self.report.kernels.iter().enumerate();
        kernels.filter(move |(_, kernel)| !(kernel.ambiguous && kernel.frame_ambiguous) && is_own(kernel))
    }

    /// Those that can be launched.
    pub fn entries(&self) -> impl Iterator<Item = (usize, &'a Kernel)> {
        self.certain().filter(|(_, kernel)| kernel.kind == Kind::Entry)
    }

    /// Every occupancy of every kernel: the kernel's index, the occupancy's index, and the occupancy.
    pub fn occupancies(&self) -> impl Iterator<Item = (usize, u32, &'a Judged)> {
        let numbers = self.numbers;
        self.entries()
            .flat_map(move |(at, _)| numbers.ids(at).iter().map(move |id| (at, *id, &numbers.judged[*id as usize])))
    }

    /// Messages with their indices.
    pub fn messages(&self) -> impl Iterator<Item = (usize, &'a Message)> {
        self.report.messages.iter().enumerate()
    }

    /// The messages of the kinds that `is_one` is true for, whatever their figures, with their indices; rising.
    pub fn messages_of(&self, is_one: impl Fn(MessageKind) -> bool) -> impl Iterator<Item = (usize, &'a Message)> {
        let report = self.report;
        let lists = self.kinds.iter().filter(|(kind, _)| is_one(*kind)).map(|(_, list)| list.as_slice());
        let mut found = lists.collect::<Vec<_>>().concat();
        // Each list rises, and nearly always there is but one.
        found.sort();
        found.into_iter().map(move |at| (at as usize, &report.messages[at as usize]))
    }

    /// The kernels that these names are of.
    #[must_use]
    pub fn only_kernels(&self, wanted: impl Iterator<Item = NameId>) -> OnlyKernels {
        let mut of_name = Vec::new();
        for name in wanted {
            if of_name.is_empty() {
                of_name.resize(self.report.names.len(), Bearer::NotAsked);
            }
            of_name[name.index()] = Bearer::NoneYet;
        }
        if of_name.is_empty() {
            return OnlyKernels { of_name };
        }
        for (at, kernel) in self.certain() {
            let Some(bearer) = kernel.name.map(|name| &mut of_name[name.index()]) else { continue };
            *bearer = match *bearer {
                Bearer::NoneYet => Bearer::One(at),
                Bearer::One(first) if self.report.kernels[first].arch != kernel.arch => Bearer::Several,
                known => known,
            };
        }
        OnlyKernels { of_name }
    }

    /// The kernel that a hit is about.
    #[must_use]
    pub fn kernel_of(&self, hit: &Hit) -> Option<&'a Kernel> {
        self.kernel_at(Some(hit.subject))
    }

    /// The branch that a hit is about.
    #[must_use]
    pub fn branch_of(&self, hit: &Hit) -> Option<Found<'a>> {
        match hit.subject {
            Subject::Branch(at) => self.numbers.branches.get(self.report, at as usize),
            _ => None,
        }
    }

    /// The lines of the branch that a hit is about.
    #[must_use]
    pub fn quotes_of(&self, hit: &Hit) -> Option<BranchQuotes> {
        match hit.subject {
            Subject::Branch(at) => self.numbers.branches.quotes.get(at as usize).copied().flatten(),
            _ => None,
        }
    }

    /// Every branch with its index.
    pub fn branches(&self) -> impl Iterator<Item = (usize, Found<'a>)> {
        let (branches, report) = (&self.numbers.branches, self.report);
        (0..branches.all.len()).filter_map(move |at| Some((at, branches.get(report, at)?)))
    }

    /// The exchange between lanes that a hit is about, and its function.
    #[must_use]
    pub fn exchange_of(&self, hit: &Hit) -> Option<(&'a Function, &'a Loose)> {
        let Subject::Exchange(at) = hit.subject else { return None };
        let loose = self.numbers.branches.exchanges.get(at as usize)?;
        Some((loose.function(self.report)?, loose))
    }

    /// Every launch in the sources, with its index.
    pub fn launches(&self) -> impl Iterator<Item = (usize, &'a Launched, &'a LaunchSite)> {
        let report = self.report;
        let all = self.numbers.launches.iter().enumerate();
        all.filter_map(move |(at, launched)| Some((at, launched, launched.site(report)?)))
    }

    /// The launch that a hit is about.
    #[must_use]
    pub fn launch_of(&self, hit: &Hit) -> Option<(&'a Launched, &'a LaunchSite)> {
        let Subject::Launch(at) = hit.subject else { return None };
        let launched = self.numbers.launches.get(at as usize)?;
        Some((launched, launched.site(self.report)?))
    }

    /// What the sources declare as one kernel, whose launch it is.
    #[must_use]
    pub fn family_of_launch(&self, launched: &Launched) -> Option<&'a Family> {
        self.report.families.get(launched.family? as usize)
    }

    /// Whether an input is a source for HIP alone: of warps of 32 lanes nothing is told there.
    #[must_use]
    pub fn is_hip(&self, input: u32) -> bool {
        self.report.inputs.get(input as usize).is_some_and(|input| input.is_hip)
    }

    /// What sources say of the kernels called `name`.
    #[must_use]
    pub fn family_named(&self, name: NameId) -> Option<&'a Family> {
        self.report.families.get(*self.families.get(&name)? as usize)
    }

    /// Whether the run is about a family: sources that were searched for tell of the kernels of the inputs alone.
    #[must_use]
    pub fn is_of_run(&self, family: &Family) -> bool {
        let main = family.main(self.report);
        !family.kernels.is_empty() || main.is_some_and(|main| main.quote.place.input < Place::SOURCE)
    }

    /// The sources that were searched for and that something of the run stands in: a kernel, or a branch. The others were
    /// read only because they could have had one.
    #[must_use]
    pub fn placed_sources(&self) -> HashSet<u32> {
        let families = self.report.families.iter().filter(|family| !family.kernels.is_empty());
        let declarations = families.flat_map(|family| &family.declarations);
        let declared = declarations.filter_map(|spot| Some(self.report.declaration(*spot)?.quote));
        let branches = &self.numbers.branches;
        let exchanges = branches.exchanges.iter().filter_map(|loose| loose.quotes);
        let quotes = branches.quotes.iter().copied().flatten().chain(exchanges);
        let sources = quotes.flat_map(|quotes| quotes.source.into_iter().chain(quotes.inlined.map(|one| one.quote)));
        declared.chain(sources).map(|quote| quote.place.input).collect()
    }

    /// The name of the only kernel of a family, else the name as declared.
    #[must_use]
    pub fn name_of_family(&self, family: &Family) -> Option<NameId> {
        let mut names = family.kernels.iter().filter_map(|at| self.report.kernels.get(*at as usize)?.name);
        let first = names.next();
        match first {
            Some(name) if names.all(|other| other == name) => Some(name),
            _ => family.main(self.report).map(|main| main.name),
        }
    }

    /// What sources declare as one kernel, that a hit is about.
    #[must_use]
    pub fn family_of(&self, hit: &Hit) -> Option<&'a Family> {
        let Subject::Family(at) = hit.subject else { return None };
        self.report.families.get(at as usize)
    }

    /// The kernel that a hit is about, with its index.
    #[must_use]
    pub fn numbered_kernel_of(&self, hit: &Hit) -> Option<(usize, &'a Kernel)> {
        let Subject::Kernel(at) = hit.subject else { return None };
        Some((at as usize, self.report.kernels.get(at as usize)?))
    }

    /// What a launch launches, as a message shows it.
    #[must_use]
    pub fn launched(&self, launched: &Launched, site: &LaunchSite) -> String {
        let Some(name) = self.name_of_launch(launched, site) else { return "a kernel".to_owned() };
        let written = site.arguments.filter(|_| symbol::arguments(self.report.names.get(name)).is_none());
        let called = self.called(Some(name));
        match written.map(|arguments| String::from_utf8_lossy(self.report.names.get(arguments))) {
            Some(arguments) => format!("{}<{}>`", called.trim_end_matches('`'), spaced(&arguments)),
            None => called,
        }
    }

    /// The name of the kernel that a launch is of: of several instantiations the one that has its arguments, else the name
    /// as declared or called.
    #[must_use]
    pub fn name_of_launch(&self, launched: &Launched, site: &LaunchSite) -> Option<NameId> {
        let Some(family) = self.family_of_launch(launched) else { return site.callee };
        let names = &self.report.names;
        if let Some(written) = site.arguments.map(|arguments| names.get(arguments)) {
            let is_its = |name: &NameId| {
                let own = symbol::arguments(names.get(*name));
                own.is_some_and(|own| alike(written, own.as_bytes()) == Alike::Same)
            };
            let of_kernels = family.kernels.iter().filter_map(|at| self.report.kernels.get(*at as usize)?.name);
            if let Some(name) = of_kernels.into_iter().find(is_its) {
                return Some(name);
            }
        }
        self.name_of_family(family).or(site.callee)
    }

    /// Whether a comment or the configuration tells the blocks of what is launched, so that those of a launch do not count.
    #[must_use]
    pub fn is_told_better(&self, launched: &Launched) -> bool {
        let kernels = self.family_of_launch(launched).map_or(&[][..], |family| &family.kernels);
        kernels
            .iter()
            .filter_map(|at| self.numbers.told(*at as usize)?.block)
            .any(|(_, source)| matches!(source, BlockSource::Comment | BlockSource::Config))
    }

    /// A label over the name of a kernel where a source declares it.
    #[must_use]
    pub fn declared_label(&self, declared: &Declaration, text: impl Into<String>) -> Label {
        let (start, end) = declared.span;
        Label { quote: declared.quote, lead: None, name: None, start, end, text: text.into() }
    }

    /// A label over what a launch launches.
    #[must_use]
    pub fn launch_label(&self, site: &LaunchSite, text: impl Into<String>) -> Label {
        let (start, end) = site.span;
        Label { quote: site.quote, lead: None, name: None, start, end, text: text.into() }
    }

    /// A label over the block of a launch, where that stands on the same line, else over what it launches.
    #[must_use]
    pub fn block_label(&self, site: &LaunchSite, text: impl Into<String>) -> Label {
        let label = self.launch_label(site, text);
        let length = self.text(site.quote).len();
        let own = site.block_at.as_ref().filter(|(_, line)| *line == site.quote.place.line).and_then(|(bytes, _)| {
            let offset = usize::try_from(site.quote.place.offset).ok()?;
            let (start, end) = (bytes.start.checked_sub(offset)?, bytes.end.checked_sub(offset)?);
            (start < end && end <= length).then_some((start, end))
        });
        own.map_or(label.clone(), |(start, end)| Label { start, end, ..label })
    }

    /// The launch at `spot`, as what else there is to look at.
    #[must_use]
    pub fn launched_at(&self, spot: Option<Spot>) -> Option<Label> {
        Some(self.launch_label(self.report.launch(spot?)?, "launch"))
    }

    /// What a comment says that a hit is about.
    #[must_use]
    pub fn remark_of(&self, hit: &Hit) -> Option<&'a Remark> {
        match hit.subject {
            Subject::Remark(at) => self.numbers.remarks.get(at as usize),
            _ => None,
        }
    }

    /// The entry of the configuration that a hit is about.
    #[must_use]
    pub fn entry_of(&self, hit: &Hit) -> Option<&'a Entry> {
        match hit.subject {
            Subject::Entry(at) => self.numbers.entries.get(at as usize),
            _ => None,
        }
    }

    /// The budget that a hit is about, or that explains it.
    #[must_use]
    pub fn budget_of(&self, hit: &Hit) -> Option<&'a Budget> {
        match (hit.subject, hit.because) {
            (Subject::Budget(at), _) | (_, Some(Subject::Budget(at))) => self.numbers.budgets.get(at as usize),
            _ => None,
        }
    }

    /// The message that a hit is about.
    #[must_use]
    pub fn message_of(&self, hit: &Hit) -> Option<&'a Message> {
        self.message_at(Some(hit.subject))
    }

    /// The kernel that `subject` is, if it is one.
    #[must_use]
    pub fn kernel_at(&self, subject: Option<Subject>) -> Option<&'a Kernel> {
        match subject {
            Some(Subject::Kernel(at)) => self.report.kernels.get(at as usize),
            Some(Subject::Exchange(at)) => {
                let loose = self.numbers.branches.exchanges.get(at as usize)?;
                self.report.kernels.get(loose.function(self.report)?.kernel? as usize)
            }
            Some(Subject::Branch(at)) => {
                let found = self.numbers.branches.get(self.report, at as usize)?;
                self.report.kernels.get(found.function.kernel? as usize)
            }
            _ => None,
        }
    }

    /// The message that `subject` is, if it is one.
    #[must_use]
    pub fn message_at(&self, subject: Option<Subject>) -> Option<&'a Message> {
        match subject {
            Some(Subject::Message(at)) => self.report.messages.get(at as usize),
            _ => None,
        }
    }

    /// The occupancy that a hit is about.
    #[must_use]
    pub fn judged_of(&self, hit: &Hit) -> Option<&'a Judged> {
        hit.judged.and_then(|id| self.numbers.judged.get(id as usize))
    }

    /// What is told of the launch of the kernel that a hit is about.
    #[must_use]
    pub fn told_of(&self, hit: &Hit) -> Option<&'a Told> {
        match hit.subject {
            Subject::Kernel(at) => self.numbers.told(at as usize),
            _ => None,
        }
    }

    /// The GPU that a hit is about, or that its occupancy is for.
    #[must_use]
    pub fn gpu_of(&self, hit: &Hit) -> Option<&'a Gpu> {
        match hit.subject {
            Subject::Gpu(at) => self.numbers.gpus.get(at as usize),
            _ => self.judged_of(hit).map(|judged| self.numbers.gpu(judged)),
        }
    }

    /// A name as a message shows it, in back quotes; `a kernel without a name` where the log lost it.
    #[must_use]
    pub fn called(&self, name: Option<NameId>) -> String {
        match name {
            Some(id) => format!("`{}`", symbol::short(self.report.names.get(id))),
            None => "a kernel whose name is not in the log".to_owned(),
        }
    }

    /// `device function ` before the name of what cannot be launched, if it has one.
    #[must_use]
    pub fn function(&self, kernel: &Kernel) -> &'static str {
        if kernel.kind == Kind::Function && kernel.name.is_some() { "device function " } else { "" }
    }

    /// The registers that a thread can have at most; `None` where the architecture is unknown.
    #[must_use]
    pub fn most_registers(&self, arch: Option<Arch>) -> Option<u32> {
        Some(Target::of(arch?)?.max_registers_per_thread)
    }

    /// ` on sm_90`, or nothing where the architecture is unknown.
    #[must_use]
    pub fn on(&self, kernel: &Kernel) -> String {
        kernel.arch.map_or_else(String::new, |arch| format!(" on {arch}"))
    }

    /// The kept text of a line.
    #[must_use]
    pub fn text(&self, quote: Quote) -> &'a [u8] {
        self.report.texts.get(quote.text)
    }

    /// A label over the part of a line from `start` to the end of `end`; over the whole line where they are not in it.
    #[must_use]
    pub fn label(&self, quote: Option<Quote>, start: &str, end: &str, text: impl Into<String>) -> Option<Label> {
        let quote = quote?;
        let line = self.text(quote);
        let found = memchr::memmem::find(line, end.as_bytes()).map(|at| at + end.len());
        let span = found.and_then(|end| {
            let start = if start.is_empty() { 0 } else { memchr::memmem::find(&line[..end], start.as_bytes())? };
            Some((start, end))
        });
        let (start, end) = span.unwrap_or((0, line.len()));
        Some(Label { quote, lead: None, name: None, start, end, text: text.into() })
    }

    /// A label over these bytes of a line.
    #[must_use]
    pub fn span_label(&self, quote: Quote, (start, end): (usize, usize), text: impl Into<String>) -> Label {
        Label { start, end, ..self.line_label(quote, text) }
    }

    /// A label over the whole text of a line.
    #[must_use]
    pub fn line_label(&self, quote: Quote, text: impl Into<String>) -> Label {
        Label { quote, lead: None, name: None, start: 0, end: self.text(quote).len(), text: text.into() }
    }

    /// A label over the whole text of a message.
    #[must_use]
    pub fn message_label(&self, message: &Message, text: impl Into<String>) -> Label {
        let quote = Quote { place: message.place, text: message.text };
        let end = self.report.said(message).len();
        Label { lead: message.lead, name: message.name_apart(), end, ..self.line_label(quote, text) }
    }

    /// The text of a message as printed, but for the name of its kernel, which may be kept apart.
    #[must_use]
    pub fn raw(&self, message: &Message) -> &'a [u8] {
        self.report.texts.get(message.text)
    }

    /// The text of a message as a finding says it: without code and full stop, with the names that people use, safe to
    /// print.
    #[must_use]
    pub fn said(&self, message: &Message) -> String {
        text::worded(&self.report.said(message))
    }
}

/// Template arguments as people write them, cut to what a message has room for.
fn spaced(arguments: &str) -> String {
    symbol::printable(&symbol::cut_middle(&arguments.replace(',', ", "), MOST_ARGUMENTS)).into_owned()
}

/// Characters of template arguments that a message holds.
const MOST_ARGUMENTS: usize = 40;

/// The one kernel of each of several names.
pub struct OnlyKernels {
    /// By the index of the name; empty where no name was asked for.
    of_name: Vec<Bearer>,
}

/// Who bears a name.
#[derive(Clone, Copy)]
enum Bearer {
    /// Nobody asked for it.
    NotAsked,
    /// No kernel was found that is called so.
    NoneYet,
    /// The kernel with this index, for one architecture.
    One(usize),
    /// The kernel was compiled for several architectures.
    Several,
}

impl OnlyKernels {
    /// The index of the one kernel that is called `name`: none where it was compiled for several architectures.
    #[must_use]
    pub fn get(&self, name: NameId) -> Option<usize> {
        match self.of_name.get(name.index()) {
            Some(Bearer::One(at)) => Some(*at),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `cargo run --example new-rule` copies: it has to be a rule for the copy to be one.
    static TEMPLATE: Rule = rule!("_template", template);

    #[test]
    fn the_template_page_and_the_template_module_are_a_rule() {
        let mut report = Report::default();
        let log =
            "ptxas info    : Compiling entry function 'k' for 'sm_90'\nptxas info    : Used 8 registers, 2 textures\n";
        let (mut source, mut nowhere) = (log.as_bytes(), std::io::sink());
        crate::parse::read_log(
            &mut source,
            "x.log",
            &mut report,
            &mut crate::parse::Echo::new(crate::parse::EchoMode::None, &mut nowhere),
        )
        .expect("a log in memory");
        let numbers = Numbers::default();
        let context = Context::new(&report, &numbers);
        let armed = TEMPLATE.arm(TEMPLATE.page().defaults()).expect("the options of the page");
        let mut hits = Vec::new();
        armed.check(&context, &mut hits);
        let messages: Vec<String> = hits.iter().map(|hit| armed.tell(&context, hit).message).collect();
        assert_eq!(messages, ["`k` binds 2 textures on sm_90"]);
    }
}
