//! Which findings a baseline accepts: those that it has, in whatever order and on whatever lines they stand now.

use std::collections::BTreeMap;

use hashbrown::{HashMap, HashSet};

use super::fingerprint::distinction;
use super::{Settled, Verdict};
use crate::baseline::{
    Accepted, Against, Baseline, Figures, From, Key, KeyRef, LaunchFigures, Seen, name_key, normalised,
};
use crate::finding::{Fact, Finding, Hit, Level, Subject};
use crate::model::{Kernel, Place, symbol};
use crate::rules::comparable;

/// The rule that holds a build against a baseline: what it finds is not accepted but written down anew.
pub(super) const REGRESSION: &str = "regression";

/// Findings that no baseline accepts: with them a run says nothing else.
const NEVER: [&str; 4] = [REGRESSION, "budget-exceeded", "build-failed", "no-resource-report"];

/// What a baseline accepts of a run.
#[derive(Debug, Default)]
pub(super) struct Acceptance {
    /// For each hit of [`Verdict::settled`] whether it is accepted.
    pub(super) is_accepted: Vec<bool>,
    /// What the baseline accepts beyond that.
    pub(super) left: BTreeMap<Accepted, u64>,
}

/// Holds the hits of a run against what is accepted. The same finding comes first; then another of the same rule on the same
/// kernel, as its words may have changed, if it is not worse.
pub(super) fn accept(verdict: &Verdict<'_>, against: &Against) -> Acceptance {
    let mut acceptance =
        Acceptance { is_accepted: vec![false; verdict.settled.len()], left: against.baseline.findings.clone() };
    if acceptance.left.is_empty() {
        return acceptance;
    }
    let rules: HashSet<&str> = against.baseline.findings.keys().map(|accepted| &*accepted.rule).collect();
    // Words are made only of what may be accepted.
    let may_be = |one: &Settled| rules.contains(verdict.active(one).rule.id);
    let mut open: Vec<(usize, Accepted)> = Vec::new();
    for (at, one) in verdict.settled.iter().enumerate().filter(|(_, one)| may_be(one)) {
        let Some(asked) = identity(verdict, one, &against.root) else { continue };
        match acceptance.left.get_mut(&asked).filter(|count| **count > 0) {
            Some(count) => {
                *count -= 1;
                acceptance.is_accepted[at] = true;
            }
            None => open.push((at, without_compared(verdict, one, against, asked))),
        }
    }
    acceptance.left.retain(|_, count| *count > 0);
    // By what they are on, how loud they could be, and how bad they were.
    let mut alike: HashMap<Accepted, [Vec<Accepted>; 4]> = HashMap::new();
    for left in acceptance.left.keys() {
        alike.entry(loose(left)).or_default()[left.cap as usize].push(left.clone());
    }
    alike.values_mut().flatten().for_each(|list| list.sort_by_key(worst));
    // The mildest first, so that each takes the least that it needs.
    open.sort_by_key(|(_, asked)| asked.severity);
    let mut unknown = Vec::new();
    for (at, asked) in open {
        let by_cap = alike.get_mut(&loose(&asked)).into_iter().flatten().skip(asked.cap as usize);
        let mut found = by_cap.filter_map(|candidates| {
            let first = candidates.partition_point(|one| worst(one) < asked.severity.unwrap_or_default());
            (first < candidates.len()).then_some((candidates, first))
        });
        let Some((candidates, first)) = found.next() else {
            unknown.push((at, asked));
            continue;
        };
        let Some(count) = acceptance.left.get_mut(&candidates[first]) else { continue };
        *count -= 1;
        if *count == 0 {
            acceptance.left.remove(&candidates.remove(first));
        }
        acceptance.is_accepted[at] = true;
    }
    accept_across(&unknown, against, &mut acceptance);
    acceptance
}

/// Accepts what was read off sources alone then and is read off a log with them now, or the other way around: a source tells
/// neither all of a kernel's name nor its architecture. One such finding stands for those of all architectures and instances.
fn accept_across(asked: &[(usize, Accepted)], against: &Against, acceptance: &mut Acceptance) {
    if asked.is_empty() {
        return;
    }
    let mut known: HashMap<(&str, String), Vec<&Accepted>> = HashMap::new();
    for accepted in against.baseline.findings.keys() {
        let Some(kernel) = accepted.kernel.as_deref() else { continue };
        known.entry((&accepted.rule, in_source(kernel))).or_default().push(accepted);
    }
    for (at, asked) in asked {
        let Some(kernel) = asked.kernel.as_deref() else { continue };
        let candidates = known.get(&(&*asked.rule, in_source(kernel))).into_iter().flatten();
        let mut candidates = candidates.filter(|one| {
            let is_mangled = |one: &Accepted| one.kernel.as_deref().is_some_and(|kernel| kernel.starts_with("_Z"));
            let is_across = is_mangled(one) != is_mangled(asked) || one.arch.is_some() != asked.arch.is_some();
            is_across && one.cap >= asked.cap && worst(one) >= asked.severity.unwrap_or_default()
        });
        if let Some(found) = candidates.next() {
            acceptance.left.remove(*found);
            acceptance.is_accepted[*at] = true;
        }
    }
}

/// The name of a kernel as a source has it: without parameters, namespaces and the arguments of a template.
fn in_source(kernel: &str) -> String {
    let short = symbol::short(kernel.as_bytes());
    short.split('<').next().unwrap_or_default().to_owned()
}

/// The same without how bad it is, where it is on an occupancy that the baseline has: `regression` compares that.
fn without_compared(verdict: &Verdict<'_>, one: &Settled, against: &Against, asked: Accepted) -> Accepted {
    let judged = verdict.context.judged_of(&one.hit);
    let is_compared = judged.zip(asked.kernel.as_deref()).is_some_and(|(judged, kernel)| {
        let gpu = &verdict.context.numbers.gpu(judged).name;
        let known = against.baseline.of(kernel, asked.arch).iter().flat_map(|figures| &figures.launches);
        known.into_iter().any(|launch| *launch.gpu == **gpu && launch.block == judged.block)
    });
    Accepted { severity: asked.severity.filter(|_| !is_compared), ..asked }
}

/// How bad a finding may be for what was accepted; what an older file does not tell may be anything.
fn worst(accepted: &Accepted) -> u32 {
    accepted.severity.unwrap_or(u32::MAX)
}

/// Facts that say how bad a finding is: of several, the first. The figures of kernels, which are held against the baseline
/// themselves, are none of them.
const SEVERITIES: [&str; 7] = ["idle_share", "split_share", "exchanges", "literals", "idle_sms", "rows", "ways"];

/// The same of a message on a kernel of which there is no record.
const BYTES: [&str; 3] = ["store_bytes", "load_bytes", "stack_bytes"];

/// How bad a finding is, where its facts tell: shares in thousandths.
fn severity(hit: &Hit, finding: &Finding) -> Option<u32> {
    let fact = |name: &&str| finding.facts.iter().find(|(known, _)| known == name).map(|(_, fact)| fact);
    let names = if matches!(hit.subject, Subject::Message(_)) { &BYTES[..] } else { &SEVERITIES };
    let occupancy = finding.facts.iter().find(|(known, _)| *known == "occupancy").map(|(_, fact)| fact);
    if let Some(Fact::Fraction(occupancy)) = occupancy {
        return thousandths(1.0 - occupancy);
    }
    names.iter().filter_map(fact).find_map(|fact| match fact {
        Fact::Count(count) => u32::try_from(*count).ok(),
        Fact::Fraction(share) => thousandths(*share),
        Fact::Word(_) | Fact::Words(_) | Fact::Unknown => None,
    })
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share is 0 to 1")]
fn thousandths(share: f64) -> Option<u32> {
    (0.0..=1.0).contains(&share).then(|| (share * 1000.0).round() as u32)
}

/// Rule, kernel and architecture alone; of what is on no kernel all but how loud it was.
fn loose(accepted: &Accepted) -> Accepted {
    let on_kernel = accepted.kernel.is_some();
    Accepted {
        fingerprint: accepted.fingerprint.clone().filter(|_| !on_kernel),
        gpu: accepted.gpu.clone().filter(|_| !on_kernel),
        cap: Level::Allow,
        severity: None,
        ..accepted.clone()
    }
}

/// What a hit is accepted as; `None` for what cannot be.
fn identity(verdict: &Verdict<'_>, one: &Settled, root: &str) -> Option<Accepted> {
    let rule = verdict.active(one).rule.id;
    if NEVER.contains(&rule) {
        return None;
    }
    let report = verdict.context.report;
    let finding = verdict.finding(one);
    let path = if finding.kernel.is_none() { path_of(verdict, one, &finding) } else { None };
    Some(Accepted {
        kernel: finding.kernel.map(|name| name_key(report.names.get(name)).into()),
        arch: finding.arch,
        rule: rule.into(),
        // One that follows the architecture says nothing more.
        gpu: finding
            .gpu
            .as_deref()
            .filter(|gpu| finding.arch.is_none_or(|arch| arch.device().to_string() != **gpu))
            .map(Into::into),
        path: path.map(|path| normalised(path, root).into()),
        from: from(verdict, one),
        fingerprint: distinction(report, &one.hit, &finding).map(String::into_boxed_str),
        cap: one.hit.cap,
        severity: severity(&one.hit, &finding),
    })
}

/// The file of a finding on no kernel; none for a log, which is a pipe today and a file tomorrow.
fn path_of<'v>(verdict: &'v Verdict<'_>, one: &Settled, finding: &Finding) -> Option<&'v str> {
    let report = verdict.context.report;
    let place = match (&finding.label, one.hit.subject) {
        (Some(label), _) => label.quote.place,
        (None, Subject::Input(at)) => Place { input: at, ..Place::default() },
        _ => return None,
    };
    let is_log = place.input < Place::SOURCE && of_input(verdict, place.input) == From::Log;
    (!is_log).then(|| report.file_of(place))
}

fn of_input(verdict: &Verdict<'_>, input: u32) -> From {
    let report = verdict.context.report;
    match report.inputs.get(input as usize) {
        Some(input) if input.is_source => From::Source,
        _ if input >= Place::SOURCE => From::Source,
        _ if report.modules.iter().any(|module| module.input == input) => From::Ptx,
        _ => From::Log,
    }
}

fn of_kernel(kernel: &Kernel) -> From {
    let evidence = &kernel.evidence;
    match (evidence.usage.is_some() || evidence.frame.is_some(), evidence.head.is_some()) {
        (true, _) => From::Log,
        (false, true) => From::Ptx,
        (false, false) => From::Source,
    }
}

fn from(verdict: &Verdict<'_>, one: &Settled) -> From {
    let context = &verdict.context;
    let of_module = |is_source: bool| if is_source { From::Source } else { From::Ptx };
    match one.hit.subject {
        Subject::Kernel(at) => context.report.kernels.get(at as usize).map_or(From::Log, of_kernel),
        Subject::Input(at) => of_input(verdict, at),
        Subject::Branch(_) => {
            of_module(context.branch_of(&one.hit).is_some_and(|found| found.module.positions().is_some()))
        }
        Subject::Exchange(at) => {
            let loose = context.numbers.branches.exchanges.get(at as usize);
            let module = loose.and_then(|loose| context.report.modules.get(loose.module as usize));
            of_module(module.is_some_and(|module| module.positions().is_some()))
        }
        Subject::Launch(_) | Subject::Family(_) => From::Source,
        Subject::Remark(_) => {
            context.remark_of(&one.hit).map_or(From::Source, |remark| of_input(verdict, remark.quote.place.input))
        }
        Subject::Message(_) | Subject::Gpu(_) | Subject::Entry(_) | Subject::Budget(_) | Subject::Run => From::Log,
    }
}

impl Verdict<'_> {
    /// This run as a baseline: the figures of its kernels, and every finding that is neither allowed nor beyond acceptance.
    #[must_use]
    pub fn baseline(&self, root: &str) -> Baseline {
        let context = &self.context;
        let mut baseline = Baseline::default();
        for (at, kernel) in comparable(context) {
            let Some(key) = Key::of(context.report, kernel) else { continue };
            let Some(figures) = Figures::of(context.report, context.numbers, at).filter(Figures::is_known) else {
                continue;
            };
            // What is doubtful in part would take the place of what is sure.
            if !kernel.ambiguous {
                baseline.kernels.entry(key).or_default().push(figures);
            }
        }
        for one in self.settled.iter().chain(&self.baselined) {
            if let Some(accepted) = identity(self, one, root) {
                *baseline.findings.entry(accepted).or_default() += 1;
            }
        }
        baseline
    }

    /// What this run looked at, and so what it can say is gone.
    #[must_use]
    pub fn seen(&self, root: &str) -> Seen {
        let report = self.context.report;
        let mut seen = Seen::default();
        seen.is_filtered = report.is_filtered;
        for kernel in &report.kernels {
            if let Some(key) = Key::of(report, kernel) {
                seen.add(key, of_kernel(kernel));
            }
        }
        for module in &report.modules {
            let from = if module.positions().is_some() { From::Source } else { From::Ptx };
            for function in &module.functions {
                let arch = function.kernel.and_then(|at| report.kernels.get(at as usize)).and_then(|one| one.arch);
                let kernel: Box<str> = name_key(report.names.get(function.name)).into();
                // What a source shows holds on all architectures.
                let arch = arch.filter(|_| from == From::Ptx);
                seen.add(Key { kernel, arch }, from);
            }
        }
        for family in &report.families {
            let is_given = family.main(report).is_some_and(|main| main.quote.place.input < Place::SOURCE);
            if let Some(name) = self.context.name_of_family(family).filter(|_| is_given) {
                seen.add(Key { kernel: name_key(report.names.get(name)).into(), arch: None }, From::Source);
            }
        }
        let is_log = |at: u32| of_input(self, at) == From::Log;
        let given = (0_u32..).zip(&report.inputs).filter(|(at, _)| !is_log(*at));
        seen.paths = given.map(|(_, input)| normalised(&input.name, root)).collect();
        seen
    }

    /// The kernels whose block the baseline knows and this run does not: what depends on it is not gone, but out of sight.
    fn without_block(&self, against: &Against) -> HashSet<Key> {
        let (report, numbers) = (self.context.report, self.context.numbers);
        let mut blind = HashSet::new();
        for (at, kernel) in report.kernels.iter().enumerate() {
            let Some(key) = Key::of(report, kernel) else { continue };
            let known = against.baseline.of(&key.kernel, key.arch);
            let tells = |figures: &Figures| figures.launches.iter().any(LaunchFigures::is_told);
            if known.iter().any(tells) && !Figures::of(report, numbers, at).is_some_and(|now| tells(&now)) {
                blind.insert(key);
            }
        }
        blind
    }

    /// Kernels of the baseline that this run has not.
    #[must_use]
    pub fn vanished(&self) -> usize {
        let Some(against) = self.context.against else { return 0 };
        let report = self.context.report;
        let ours: HashSet<Key> = report.kernels.iter().filter_map(|kernel| Key::of(report, kernel)).collect();
        against.baseline.kernels.keys().filter(|key| !ours.contains(*key)).count()
    }

    /// Accepted findings that would have been found if they were still there, by rules that this run asks for.
    pub(super) fn gone(&self, against: &Against) -> u64 {
        if self.left.is_empty() {
            return 0;
        }
        let seen = self.seen(&against.root);
        let runs = |rule: &str| self.rules.iter().any(|active| active.rule.id == rule && active.level > Level::Allow);
        // A finding whose place another has taken is no improvement.
        let report = self.context.report;
        let on = |one: &Settled| {
            let name = super::name_of(&self.context, &one.hit)?;
            let arch = self.context.kernel_of(&one.hit).and_then(|kernel| kernel.arch);
            Some(Key { kernel: name_key(report.names.get(name)).into(), arch })
        };
        let new: HashSet<Key> = self.settled.iter().filter_map(on).collect();
        let is_replaced = |accepted: &Accepted| {
            let key = accepted.kernel.as_deref().map(|kernel| KeyRef { kernel, arch: accepted.arch });
            key.is_some_and(|key| new.contains(&key))
        };
        let blind = self.without_block(against);
        let is_gone = |accepted: &Accepted| {
            let key = accepted.kernel.as_deref().map(|kernel| KeyRef { kernel, arch: accepted.arch });
            let is_blind = key.is_some_and(|key| blind.contains(&key));
            seen.covers(accepted) && runs(&accepted.rule) && !is_replaced(accepted) && !is_blind
        };
        let gone = self.left.iter().filter(|(accepted, _)| is_gone(accepted));
        gone.map(|(_, count)| count).sum()
    }
}
