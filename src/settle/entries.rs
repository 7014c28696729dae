//! What the entries of the configuration allow, and what of that allows nothing.

use hashbrown::HashSet;

use super::accepting::REGRESSION;
use super::{Active, Allow, Target, UNUSED, name_of};
use crate::finding::{Basis, Hit};
use crate::rules::{Context, Group, IdleEntry};

/// The entries, and which of their targets allowed something.
pub(super) struct Entries<'a> {
    allows: &'a [Allow],
    /// An entry, and a target of its list, by their indices.
    used: HashSet<(usize, usize)>,
}

impl<'a> Entries<'a> {
    pub(super) fn new(allows: &'a [Allow]) -> Entries<'a> {
        Entries { allows, used: HashSet::new() }
    }

    /// The targets that allow a rule for the kernels of their entries, as indices of both.
    pub(super) fn allowing(&self, active: &Active) -> Vec<(usize, usize)> {
        let targets = |(at, allow): (usize, &'a Allow)| {
            allow.targets.iter().enumerate().map(move |(number, target)| (at, number, *target))
        };
        let all = self.allows.iter().enumerate().flat_map(targets);
        all.filter(|(.., target)| target.covers(active.rule, active.group))
            .map(|(at, number, _)| (at, number))
            .collect()
    }

    /// The first of the entries `allowing` that names the kernel of a hit. All that would do so count as used.
    pub(super) fn allow(&mut self, context: &Context<'_>, hit: &Hit, allowing: &[(usize, usize)]) -> Option<u32> {
        if allowing.is_empty() {
            return None;
        }
        let entries = context.numbers.entries_of(name_of(context, hit));
        let ours = || allowing.iter().filter(|(at, _)| entries.contains(at));
        self.used.extend(ours());
        ours().next().and_then(|(at, _)| u32::try_from(*at).ok())
    }

    /// What allows nothing though the run would have told it of every kernel that the entry names.
    pub(super) fn idle(&self, context: &Context<'_>, rules: &[Active]) -> Vec<IdleEntry> {
        // What is left out may have it.
        if context.report.is_filtered || self.allows.iter().all(|allow| allow.targets.is_empty()) {
            return Vec::new();
        }
        let mut named: Vec<Vec<usize>> = vec![Vec::new(); self.allows.len()];
        for (at, kernel) in context.report.kernels.iter().enumerate() {
            for entry in context.numbers.entries_of(kernel.name) {
                named[*entry].extend(Some(at));
            }
        }
        let mut all = Vec::new();
        let is_judged = |(entry, allow): &(usize, &Allow)| {
            let says_so = [Target::Rule(UNUSED), Target::Group(Group::Hygiene)];
            !named[*entry].is_empty() && !allow.targets.iter().any(|target| says_so.contains(target))
        };
        for (entry, allow) in self.allows.iter().enumerate().filter(is_judged) {
            let is_idle = |(number, target): &(usize, &Target)| {
                !self.used.contains(&(entry, *number)) && would_tell(context, rules, **target, &named[entry])
            };
            let idle = allow.targets.iter().enumerate().filter(is_idle);
            let names: Vec<&'static str> = idle.map(|(_, target)| target.name()).collect();
            if !names.is_empty() {
                all.push(IdleEntry { entry, names });
            }
        }
        all
    }
}

/// Whether all rules of `target` that this run asks for would have told what they find of all these kernels.
fn would_tell(context: &Context<'_>, rules: &[Active], target: Target, kernels: &[usize]) -> bool {
    let mut asked = rules.iter().filter(|active| target.covers(active.rule, active.group)).peekable();
    let tells = |active: &Active| {
        // What is held against a baseline is told later.
        let is_last = [UNUSED, REGRESSION].contains(&active.rule.id);
        !is_last && !active.is_off() && kernels.iter().all(|at| is_judged(context, active, *at))
    };
    asked.peek().is_some() && asked.all(tells)
}

/// Whether all is there that a rule needs to judge a kernel. What depends on the product, or on launches, may be told of
/// another run.
fn is_judged(context: &Context<'_>, active: &Active, at: usize) -> bool {
    let Some(kernel) = context.report.kernels.get(at) else { return false };
    if matches!(active.group, Group::Launch | Group::Memory | Group::Hygiene) || kernel.ambiguous {
        return false;
    }
    match active.basis {
        Basis::Measured => kernel.evidence.usage.is_some() && kernel.evidence.frame.is_some(),
        Basis::Computed => context.numbers.has_block(at),
        Basis::Inferred => kernel.evidence.head.is_some(),
    }
}
