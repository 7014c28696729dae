//! From hits to what is shown: levels, groups of one cause, order, counts.

mod settings;

use std::cmp::Reverse;

use hashbrown::HashMap;

use crate::finding::{Basis, Cause, Finding, Hit, Level, Subject};
use crate::model::{NameId, Names, Place, Report, base};
use crate::rules::{Armed, Context, Group, RULES, Rule};

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
    /// True where a person set the level to allow: its findings are counted, not shown.
    pub allowed: bool,
    /// True where a person set the level.
    pub asked: bool,
    armed: Box<dyn Armed>,
}

/// Every rule with its level and options.
#[must_use]
pub fn activate(settings: &Settings) -> Vec<Active> {
    let arm = |rule: &'static Rule| {
        let page = rule.page();
        let set = settings.level(rule, page.group).map(|(level, _)| level);
        let armed = rule.arm(settings.options(rule, &page)).expect("bug: options that were checked do not fit a rule");
        let level = set.unwrap_or(page.level);
        Active {
            rule,
            level,
            basis: page.basis,
            group: page.group,
            allowed: set == Some(Level::Allow),
            asked: set.is_some(),
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

/// A hit of one of the active rules.
#[derive(Debug, Clone, Copy)]
pub struct Settled {
    /// An index of [`Verdict::rules`].
    pub rule: u16,
    /// Its level: the rule's, or less where the hit says so.
    pub level: Level,
    /// The hit.
    pub hit: Hit,
    /// The entry that allows it for its kernel, an index of [`crate::analyse::Numbers::entries`].
    pub allowed_by: Option<usize>,
    place: Place,
}

/// Hits of one cause.
#[derive(Debug, Clone)]
pub struct CauseGroup {
    /// The worst: an index of [`Verdict::settled`].
    pub lead: usize,
    /// The others, the worst first.
    pub also: Vec<usize>,
}

/// What the run found.
pub struct Verdict<'a> {
    /// The rules, as applied.
    pub rules: &'a [Active],
    /// All hits that are not allowed, the worst first.
    pub settled: Vec<Settled>,
    /// Hits that a person allowed.
    pub allowed: Vec<Settled>,
    /// Hits by cause, the worst first.
    pub groups: Vec<CauseGroup>,
    /// What was read and computed.
    pub context: Context<'a>,
    allows: &'a [Allow],
}

/// Runs the rules and settles what they found; `allows` are those of the entries, in the same order.
#[must_use]
pub fn settle<'a>(context: Context<'a>, rules: &'a [Active], allows: &'a [Allow]) -> Verdict<'a> {
    let mut settled = Vec::new();
    let mut allowed = Vec::new();
    let mut hits = Vec::new();
    for (index, active) in (0_u16..).zip(rules) {
        if active.level == Level::Allow && !active.allowed {
            continue;
        }
        hits.clear();
        active.armed.check(&context, &mut hits);
        let allowing = allowing(active, allows);
        for hit in &hits {
            let allowed_by = allowed_by(&context, hit, &allowing);
            let cap = if hit.cap_yields && active.asked { Level::Deny } else { hit.cap };
            let level = if allowed_by.is_some() { Level::Allow } else { active.level.min(cap) };
            let one = Settled { rule: index, level, hit: *hit, allowed_by, place: place_of(&context, hit) };
            if one.level == Level::Allow { allowed.push(one) } else { settled.push(one) }
        }
    }
    sort(&mut settled, rules);
    sort(&mut allowed, rules);
    let groups = group(&settled, context.report);
    Verdict { rules, settled, allowed, groups, context, allows }
}

/// The entries that allow a rule for their kernels.
fn allowing(active: &Active, allows: &[Allow]) -> Vec<usize> {
    let covers = |allow: &Allow| allow.targets.iter().any(|target| target.covers(active.rule, active.group));
    (0..allows.len()).filter(|at| covers(&allows[*at])).collect()
}

/// The first of the entries `allowing` that names the kernel of a hit.
fn allowed_by(context: &Context<'_>, hit: &Hit, allowing: &[usize]) -> Option<usize> {
    if allowing.is_empty() {
        return None;
    }
    let entries = context.numbers.entries_of(name_of(context.report, hit));
    entries.iter().copied().find(|at| allowing.binary_search(at).is_ok())
}

/// The worst first; among equals the order of the inputs, so that the same input gives the same report.
fn sort(settled: &mut [Settled], rules: &[Active]) {
    settled.sort_by_key(|one| {
        (Reverse(one.level), rules[usize::from(one.rule)].group, one.rule, Reverse(one.hit.weight), one.place)
    });
}

fn place_of(context: &Context<'_>, hit: &Hit) -> Place {
    let report = context.report;
    let place = match hit.subject {
        Subject::Kernel(at) => report.kernels.get(at as usize).and_then(|kernel| kernel.evidence.first()),
        Subject::Message(at) => report.messages.get(at as usize).map(|message| message.place),
        Subject::Input(at) => Some(Place { input: at, ..Place::default() }),
        Subject::Entry(at) => context.numbers.entries.get(at as usize).map(|entry| entry.quote.place),
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
    base: Option<NameId>,
}

fn group(settled: &[Settled], report: &Report) -> Vec<CauseGroup> {
    let mut groups: Vec<CauseGroup> = Vec::new();
    let mut by_key: HashMap<Key, usize> = HashMap::new();
    let mut bases = Bases::default();
    for (at, one) in settled.iter().enumerate() {
        let of_rule = |reason| Some(Key { rule: one.rule, level: one.level, reason, base: None });
        let mut of_kernel = |reason| {
            let base = bases.of(&report.names, name_of(report, &one.hit)?);
            Some(Key { rule: one.rule, level: one.level, reason, base: Some(base) })
        };
        let key = match one.hit.cause {
            Cause::Kernel => of_kernel(None),
            Cause::KernelFor(reason) => of_kernel(Some(reason)),
            Cause::Reason(reason) => of_rule(Some(reason)),
            Cause::Rule => of_rule(None),
            Cause::Single => None,
        };
        let known = key.as_ref().and_then(|key| by_key.get(key).copied());
        match known {
            Some(index) => groups[index].also.push(at),
            None => {
                if let Some(key) = key {
                    by_key.insert(key, groups.len());
                }
                groups.push(CauseGroup { lead: at, also: Vec::new() });
            }
        }
    }
    groups
}

fn name_of(report: &Report, hit: &Hit) -> Option<NameId> {
    match hit.subject {
        Subject::Kernel(at) => report.kernels.get(at as usize)?.name,
        Subject::Message(at) => report.messages.get(at as usize)?.kernel,
        Subject::Input(_) | Subject::Gpu(_) | Subject::Entry(_) | Subject::Run => None,
    }
}

/// The base of each name is computed once.
#[derive(Default)]
struct Bases {
    distinct: Names,
    known: Vec<Option<NameId>>,
}

impl Bases {
    fn of(&mut self, names: &Names, name: NameId) -> NameId {
        if self.known.is_empty() {
            self.known.resize(names.len(), None);
        }
        *self.known[name.index()].get_or_insert_with(|| self.distinct.intern(&base(names.get(name))))
    }
}

impl Verdict<'_> {
    /// The rule of a hit.
    #[must_use]
    pub fn active(&self, one: &Settled) -> &Active {
        &self.rules[usize::from(one.rule)]
    }

    /// Why a hit was allowed, where the configuration says.
    #[must_use]
    pub fn reason(&self, one: &Settled) -> Option<&str> {
        self.allows.get(one.allowed_by?)?.reason.as_deref()
    }

    /// A hit in words, with what it is about.
    #[must_use]
    pub fn finding(&self, one: &Settled) -> Finding {
        let mut finding = self.active(one).armed.tell(&self.context, &one.hit);
        if let Some(kernel) = self.context.kernel_of(&one.hit) {
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
    use crate::model::{Kernel, Kind};

    fn hits(names: &[(&str, Level)]) -> (Report, Vec<Settled>) {
        let mut report = Report::default();
        let mut settled = Vec::new();
        for (at, (name, level)) in names.iter().enumerate() {
            let name = Some(report.names.intern(name.as_bytes()));
            report.kernels.push(Kernel::new(name, Kind::Entry, None));
            let hit = Hit::kernel(at, 1);
            settled.push(Settled { rule: 0, level: *level, hit, allowed_by: None, place: Place::default() });
        }
        (report, settled)
    }

    fn groups_of(names: &[(&str, Level)]) -> Vec<(usize, Vec<usize>)> {
        let (report, settled) = hits(names);
        group(&settled, &report).into_iter().map(|group| (group.lead, group.also)).collect()
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
