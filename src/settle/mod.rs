//! From hits to what is shown: levels, groups of one cause, order, counts.

mod accepting;
mod entries;
mod fingerprint;
mod placing;
mod settings;
mod silence;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::baseline::{Accepted, Against};
use crate::finding::{Basis, Cause, Finding, Hit, Level, Subject};
use crate::model::{NameId, Names, Place, Quote, base};
use crate::rules::{Armed, Context, Group, RULES, Rule};
use crate::suppress::Scope;

use accepting::REGRESSION;
use entries::Entries;
use silence::Silencer;

pub use fingerprint::fingerprint;
pub use settings::{FailOn, Origin, Settings, Target, UnknownRule, did_you_mean};

/// A rule as this run applies it.
pub struct Active {
    /// The rule.
    pub rule: &'static Rule,
    /// Its level.
    pub level: Level,
    /// How its findings are known.
    pub basis: Basis,
    /// Its group.
    pub group: Group,
    /// True where a person set the level to allow, and the rule is not silent of itself: its findings are counted, not shown.
    pub allowed: bool,
    /// True where a person set the level.
    pub asked: bool,
    /// Where that was.
    pub set_by: Option<Origin>,
    armed: Box<dyn Armed>,
}

impl Active {
    /// Whether it is not run: it is silent, and nobody asked for that.
    fn is_off(&self) -> bool {
        self.level == Level::Allow && !self.allowed
    }
}

/// Every rule with its level and options.
#[must_use]
pub fn activate(settings: &Settings) -> Vec<Active> {
    let arm = |rule: &'static Rule| {
        let head = rule.head();
        let (set, set_by) = settings.level(rule, head.group).map(|(level, origin)| (level, origin.clone())).unzip();
        let armed =
            rule.arm(settings.options(rule, head.defaults)).expect("bug: options that were checked do not fit a rule");
        let level = set.unwrap_or(head.level);
        Active {
            rule,
            level,
            basis: head.basis,
            group: head.group,
            allowed: set == Some(Level::Allow) && head.level > Level::Allow,
            asked: set.is_some(),
            set_by,
            armed,
        }
    };
    RULES.iter().map(arm).collect()
}

/// The rules that one entry of the configuration allows for the kernels that it names.
#[derive(Debug, Clone, Default)]
pub struct Allow {
    /// The rules and groups.
    pub targets: Vec<Target>,
    /// Why.
    pub reason: Option<String>,
}

impl Allow {
    /// Whether it says why, and not with blanks.
    #[must_use]
    pub fn has_reason(&self) -> bool {
        self.reason.as_ref().is_some_and(|reason| !reason.trim().is_empty())
    }
}

/// A hit of one of the active rules.
#[derive(Debug, Clone, Copy)]
pub struct Settled {
    /// An index of [`Verdict::rules`].
    pub rule: u16,
    /// Its level: the rule's, or less where the hit says so.
    pub level: Level,
    /// The hit.
    pub hit: Hit,
    /// What allows it, beside levels.
    pub allowed_by: Option<AllowedBy>,
    order: Order,
}

/// What allows a single hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllowedBy {
    /// A comment at its place, an index of [`crate::analyse::Numbers::remarks`].
    Remark(u32),
    /// The entry of the configuration for its kernel, an index of [`crate::analyse::Numbers::entries`].
    Entry(u32),
}

/// What allows a hit, and where that stands.
#[derive(Debug, Clone, Copy)]
pub enum Allowance<'a> {
    /// A comment: the bytes of its line.
    Comment(Quote, (usize, usize)),
    /// The list of an entry of the configuration likewise.
    Entry(Quote, (usize, usize)),
    /// The level of its rule.
    Level(&'a Origin),
}

impl Allowance<'_> {
    /// Its name in the JSON report.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Allowance::Comment(..) => "comment",
            Allowance::Entry(..) => "entry",
            Allowance::Level(_) => "level",
        }
    }
}

/// Where a hit comes in the report: the worst first; among equals in the order of the inputs, so that the same input gives
/// the same report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Order {
    /// Level, group and number of its rule, and how bad it is among the hits of the rule, in one number.
    rank: u64,
    input: u32,
    offset: u64,
}

impl Order {
    fn of(context: &Context<'_>, active: &Active, rule: u16, level: Level, hit: &Hit) -> Order {
        let place = place_of(context, hit);
        let parts = [(3 - level as u64, 8), (active.group as u64, 8), (rule.into(), 16), (u64::from(!hit.weight), 32)];
        let rank = parts.iter().fold(0, |rank, (part, bits)| rank << bits | part);
        Order { rank, input: place.input, offset: place.offset }
    }
}

/// Hits of one cause.
#[derive(Debug, Clone, Copy)]
pub struct CauseGroup {
    /// The worst: an index of [`Verdict::settled`].
    pub lead: usize,
    /// How many others there are.
    pub others: usize,
    /// The last of them.
    last: usize,
}

/// All groups, the worst first.
#[derive(Debug, Clone, Default)]
struct Groups {
    all: Vec<CauseGroup>,
    /// For each hit the next of its group: there may be as many groups as hits, so none has a list of its own.
    next: Vec<u32>,
}

impl Groups {
    /// The hits of a group without the first, the worst first.
    fn others(&self, group: &CauseGroup) -> impl Iterator<Item = usize> {
        let after = |at: usize| self.next.get(at).map(|next| *next as usize);
        std::iter::successors(after(group.lead), move |at| after(*at)).take(group.others)
    }
}

/// What the run found.
pub struct Verdict<'a> {
    /// The rules, as applied.
    pub rules: &'a [Active],
    /// All hits that are not allowed, the worst first.
    pub settled: Vec<Settled>,
    /// Hits that a person allowed.
    pub allowed: Vec<Settled>,
    /// Hits that the baseline accepts.
    pub baselined: Vec<Settled>,
    /// What the baseline accepts beyond these.
    pub left: BTreeMap<Accepted, u64>,
    groups: Groups,
    /// What was read and computed.
    pub context: Context<'a>,
    allows: &'a [Allow],
}

/// Runs the rules and settles what they found; `allows` are those of the entries, in the same order.
#[must_use]
pub fn settle<'a>(mut context: Context<'a>, rules: &'a [Active], allows: &'a [Allow]) -> Verdict<'a> {
    let mut silencer = Silencer::new(&context);
    let mut entries = Entries::new(allows);
    let mut found = Sorted { settled: Vec::new(), allowed: Vec::new() };
    // As many as a rule may find: what is not used of it costs nothing, and growing would.
    let mut hits = Vec::with_capacity(context.report.kernels.len() + context.report.messages.len());
    let last = |active: &Active| active.rule.id == UNUSED;
    let numbered = || (0_u16..).zip(rules);
    for (index, active) in numbered().filter(|(_, active)| !last(active)) {
        found.run(&context, index, active, &mut entries, &mut silencer, &mut hits);
    }
    // What silences nothing shows when all others were silenced.
    context.unused = silencer.unused(&context, rules);
    context.idle_entries = entries.idle(&context, rules);
    for (index, active) in numbered().filter(|(_, active)| last(active)) {
        found.run(&context, index, active, &mut entries, &mut silencer, &mut hits);
    }
    found.settled.sort_by_key(|one| one.order);
    let against = context.against;
    let Sorted { settled, allowed } = found;
    let mut verdict = Verdict {
        rules,
        settled,
        allowed,
        baselined: Vec::new(),
        left: BTreeMap::new(),
        groups: Groups::default(),
        context,
        allows,
    };
    if let Some(against) = against {
        verdict.accept(against, &mut silencer, &mut hits);
    }
    verdict.allowed.sort_by_key(|one| one.order);
    verdict.groups = group(&verdict.settled, &verdict.context);
    verdict
}

/// The rule on comments that silence nothing, which has to be run last.
const UNUSED: &str = "unused-allow";

/// Hits by what becomes of them.
struct Sorted {
    settled: Vec<Settled>,
    allowed: Vec<Settled>,
}

impl Sorted {
    /// Runs one rule.
    fn run(
        &mut self,
        context: &Context<'_>,
        index: u16,
        active: &Active,
        entries: &mut Entries<'_>,
        silencer: &mut Silencer,
        hits: &mut Vec<Hit>,
    ) {
        if active.is_off() {
            return;
        }
        hits.clear();
        active.armed.check(context, hits);
        let allowing = entries.allowing(active);
        self.settled.reserve(hits.len());
        for hit in &*hits {
            let remark = silencer.silence(context, active, hit).map(AllowedBy::Remark);
            let entry = entries.allow(context, hit, &allowing).map(AllowedBy::Entry);
            let allowed_by = remark.or(entry);
            let cap = if hit.cap_yields && active.asked { Level::Deny } else { hit.cap };
            let level = if allowed_by.is_some() { Level::Allow } else { active.level.min(cap) };
            let order = Order::of(context, active, index, level, hit);
            let one = Settled { rule: index, level, hit: *hit, allowed_by, order };
            if one.level == Level::Allow { self.allowed.push(one) } else { self.settled.push(one) }
        }
    }
}

fn place_of(context: &Context<'_>, hit: &Hit) -> Place {
    let report = context.report;
    let place = match hit.subject {
        Subject::Kernel(at) => {
            let printed = report.kernels.get(at as usize).and_then(|kernel| kernel.evidence.first());
            printed.or_else(|| report.declared(at as usize).map(|declared| declared.quote.place))
        }
        Subject::Launch(_) => context.launch_of(hit).map(|(_, site)| site.quote.place),
        Subject::Family(at) => {
            let family = report.families.get(at as usize);
            family.and_then(|family| family.main(report)).map(|declared| declared.quote.place)
        }
        Subject::Message(at) => report.messages.get(at as usize).map(|message| message.place),
        Subject::Input(at) => Some(Place { input: at, ..Place::default() }),
        Subject::Entry(at) => context.numbers.entries.get(at as usize).map(|entry| entry.quote.place),
        Subject::Budget(at) => context.numbers.budgets.get(at as usize).map(|budget| budget.quote.place),
        Subject::Exchange(at) => {
            let loose = context.numbers.branches.exchanges.get(at as usize);
            let quotes = loose.and_then(|loose| loose.quotes);
            quotes.map(|quotes| quotes.source.unwrap_or(quotes.ptx).place)
        }
        Subject::Remark(at) => context.numbers.remarks.get(at as usize).map(|remark| remark.quote.place),
        Subject::Branch(at) => {
            let quotes = context.numbers.branches.quotes.get(at as usize).copied().flatten();
            quotes.map(|quotes| quotes.source.unwrap_or(quotes.ptx).place)
        }
        Subject::Gpu(_) | Subject::Run => None,
    };
    place.unwrap_or_default()
}

/// What hits of one group share. The level is part of it: a warning stands for no notes, nor a note for warnings.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    rule: u16,
    level: Level,
    reason: Option<u32>,
    base: Option<Base>,
}

fn group(settled: &[Settled], context: &Context<'_>) -> Groups {
    let bases = Bases::of(settled, context);
    let mut groups = Groups { all: Vec::new(), next: vec![0; settled.len()] };
    // There may be as many groups as hits, so the table holds no keys: their hashes, and the numbers of the groups.
    let mut by_key: HashTable<(u64, u32)> = HashTable::new();
    let hasher = DefaultHashBuilder::default();
    for (at, one) in settled.iter().enumerate() {
        let key = key_of(one, context, &bases);
        let hash = key.as_ref().map(|key| hasher.hash_one(key));
        let is_its = |(known, group): &(u64, u32)| {
            let lead = &settled[groups.all[*group as usize].lead];
            Some(*known) == hash && key_of(lead, context, &bases) == key
        };
        if let Some((_, group)) = hash.and_then(|hash| by_key.find(hash, is_its)) {
            let group = &mut groups.all[*group as usize];
            // Hits are counted in 32 bits.
            groups.next[group.last] = u32::try_from(at).unwrap_or(u32::MAX);
            group.last = at;
            group.others += 1;
            continue;
        }
        if let Some(hash) = hash {
            let number = u32::try_from(groups.all.len()).unwrap_or(u32::MAX);
            by_key.insert_unique(hash, (hash, number), |(hash, _)| *hash);
        }
        groups.all.push(CauseGroup { lead: at, others: 0, last: at });
    }
    groups
}

/// What the group of a hit shares; `None` for one that is a group of its own.
fn key_of(one: &Settled, context: &Context<'_>, bases: &Bases) -> Option<Key> {
    let base = || bases.of_name(name_of(context, &one.hit)?);
    let (reason, base) = match one.hit.cause {
        Cause::Kernel => (None, Some(base()?)),
        Cause::KernelFor(reason) => (Some(reason), Some(base()?)),
        Cause::Reason(reason) => (Some(reason), None),
        Cause::Rule => (None, None),
        Cause::Single => return None,
    };
    Some(Key { rule: one.rule, level: one.level, reason, base })
}

fn name_of(context: &Context<'_>, hit: &Hit) -> Option<NameId> {
    let report = context.report;
    match hit.subject {
        Subject::Kernel(at) => report.kernels.get(at as usize)?.name,
        Subject::Message(at) => report.messages.get(at as usize)?.kernel,
        Subject::Branch(_) => context.branch_of(hit).map(|found| found.function.name),
        Subject::Exchange(_) => context.exchange_of(hit).map(|(function, _)| function.name),
        Subject::Input(_) | Subject::Gpu(_) | Subject::Entry(_) | Subject::Budget(_) | Subject::Run => None,
        Subject::Launch(_) => {
            let (launched, site) = context.launch_of(hit)?;
            context.name_of_launch(launched, site)
        }
        Subject::Family(at) => context.name_of_family(report.families.get(at as usize)?),
        Subject::Remark(_) => match context.remark_of(hit)?.scope {
            Scope::Kernel(at) => report.kernels.get(at as usize)?.name,
            Scope::Family(number) => context.name_of_family(report.families.get(number as usize)?),
            Scope::File(_) | Scope::Line(..) | Scope::Nothing => None,
        },
    }
}

/// The bases of the names of all kernels that were hit, each computed once.
#[derive(Default)]
struct Bases {
    /// Those that are not the name itself.
    distinct: Names,
    /// By the index of the name.
    known: Vec<Option<Base>>,
}

/// Stands for a base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Base {
    /// The name is its own.
    Name(NameId),
    /// An id of [`Bases::distinct`].
    Distinct(NameId),
}

impl Bases {
    fn of(settled: &[Settled], context: &Context<'_>) -> Bases {
        let mut bases = Bases::default();
        let by_kernel = |one: &&Settled| matches!(one.hit.cause, Cause::Kernel | Cause::KernelFor(_));
        for name in settled.iter().filter(by_kernel).filter_map(|one| name_of(context, &one.hit)) {
            bases.learn(&context.report.names, name);
        }
        bases
    }

    /// Computes the base of `name` if it is not known.
    fn learn(&mut self, names: &Names, name: NameId) {
        if self.known.is_empty() {
            self.known.resize(names.len(), None);
        }
        let known = &mut self.known[name.index()];
        if known.is_none() {
            *known = Some(match base(names.get(name)) {
                Cow::Borrowed(_) => Base::Name(name),
                Cow::Owned(base) => Base::Distinct(self.distinct.intern(&base)),
            });
        }
    }

    fn of_name(&self, name: NameId) -> Option<Base> {
        self.known.get(name.index()).copied().flatten()
    }
}

impl Verdict<'_> {
    /// Sets aside what the baseline accepts; what it accepts in vain is known then, and the rule on what changed tells the sum.
    fn accept(&mut self, against: &Against, silencer: &mut Silencer, hits: &mut Vec<Hit>) {
        let accepting::Acceptance { is_accepted, left } = accepting::accept(self, against);
        self.left = left;
        let mut is_accepted = is_accepted.into_iter();
        let accepted = self.settled.extract_if(.., |_| is_accepted.next().unwrap_or(false));
        self.baselined = accepted.collect();
        self.context.gone = Some(self.gone(against));
        let Some((index, active)) = (0_u16..).zip(self.rules).find(|(_, active)| active.rule.id == REGRESSION) else {
            return;
        };
        let mut found =
            Sorted { settled: std::mem::take(&mut self.settled), allowed: std::mem::take(&mut self.allowed) };
        found.run(&self.context, index, active, &mut Entries::new(self.allows), silencer, hits);
        found.settled.sort_by_key(|one| one.order);
        (self.settled, self.allowed) = (found.settled, found.allowed);
    }

    /// Hits by cause, the worst first.
    #[must_use]
    pub fn groups(&self) -> &[CauseGroup] {
        &self.groups.all
    }

    /// The hits of a group without the first, the worst first.
    pub fn others(&self, group: &CauseGroup) -> impl Iterator<Item = &Settled> {
        self.groups.others(group).filter_map(|at| self.settled.get(at))
    }

    /// The rule of a hit.
    #[must_use]
    pub fn active(&self, one: &Settled) -> &Active {
        &self.rules[usize::from(one.rule)]
    }

    /// Why a hit was allowed, where a comment or the configuration says.
    #[must_use]
    pub fn reason(&self, one: &Settled) -> Option<&str> {
        match one.allowed_by? {
            AllowedBy::Remark(at) => self.context.numbers.remarks.get(at as usize)?.reason.as_deref(),
            AllowedBy::Entry(at) => self.allows.get(at as usize)?.reason.as_deref(),
        }
    }

    /// What allows a hit, if anything does.
    #[must_use]
    pub fn allowance(&self, one: &Settled) -> Option<Allowance<'_>> {
        let numbers = self.context.numbers;
        match one.allowed_by {
            _ if one.level > Level::Allow => None,
            Some(AllowedBy::Remark(at)) => {
                numbers.remarks.get(at as usize).map(|remark| Allowance::Comment(remark.quote, remark.span))
            }
            Some(AllowedBy::Entry(at)) => {
                let allowed = numbers.entries.get(at as usize)?.allowed?;
                Some(Allowance::Entry(allowed.quote, allowed.span))
            }
            None => self.active(one).set_by.as_ref().map(Allowance::Level),
        }
    }

    /// A hit in words, with what it is about.
    #[must_use]
    pub fn finding(&self, one: &Settled) -> Finding {
        let mut finding = self.active(one).armed.tell(&self.context, &one.hit);
        if let Some(found) = self.context.branch_of(&one.hit).filter(|found| found.module.positions().is_some()) {
            // What a source shows holds on all architectures.
            finding.kernel = finding.kernel.or(Some(found.function.name));
        } else if let Some(kernel) = self.context.kernel_of(&one.hit) {
            finding.kernel = finding.kernel.or(kernel.name);
            finding.arch = finding.arch.or(kernel.arch);
        }
        if let Some(message) = self.context.message_of(&one.hit) {
            finding.kernel = finding.kernel.or(message.kernel);
            finding.arch = finding.arch.or(message.arch);
            finding.count = message.count;
        }
        if let Some(gpu) = self.context.gpu_of(&one.hit) {
            finding.gpu = Some(gpu.name.clone());
        }
        finding.kernel = finding.kernel.or_else(|| name_of(&self.context, &one.hit));
        placing::place(&self.context, &one.hit, &mut finding);
        finding
    }

    /// How many hits have this level.
    #[must_use]
    pub fn count(&self, level: Level) -> usize {
        self.settled.iter().filter(|one| one.level == level).count()
    }

    /// The loudest level of any hit.
    #[must_use]
    pub fn loudest(&self) -> Option<Level> {
        self.settled.first().map(|one| one.level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Kernel, Kind, Report};

    fn hits(names: &[(&str, Level)]) -> (Report, Vec<Settled>) {
        let mut report = Report::default();
        let mut settled = Vec::new();
        for (at, (name, level)) in names.iter().enumerate() {
            let name = Some(report.names.intern(name.as_bytes()));
            report.kernels.push(Kernel::new(name, Kind::Entry, None));
            let hit = Hit::kernel(at, 1);
            let order = Order { rank: 0, input: 0, offset: 0 };
            settled.push(Settled { rule: 0, level: *level, hit, allowed_by: None, order });
        }
        (report, settled)
    }

    fn groups_of(names: &[(&str, Level)]) -> Vec<(usize, Vec<usize>)> {
        let (report, settled) = hits(names);
        let numbers = crate::analyse::Numbers::default();
        let groups = group(&settled, &Context::new(&report, &numbers));
        groups.all.iter().map(|group| (group.lead, groups.others(group).collect())).collect()
    }

    #[test]
    fn members_of_one_class_template_are_not_one_cause() {
        let names = ["_ZN1AIiE1fEPf", "_ZN1AIfE1fEPf", "_ZN1AIiE1gEPf"].map(|name| (name, Level::Warn));
        assert_eq!(groups_of(&names), [(0, vec![1]), (2, vec![])]);
    }

    #[test]
    fn a_warning_swallows_no_notes() {
        let names = [("_Z1kILi1EEvv", Level::Warn), ("_Z1kILi2EEvv", Level::Note), ("_Z1kILi3EEvv", Level::Note)];
        assert_eq!(groups_of(&names), [(0, vec![]), (1, vec![2])]);
    }
}
