//! A baseline and a build become the next baseline: builds are partial more often than not, so what a build did not see stays.

use std::collections::BTreeMap;

use hashbrown::{HashMap, HashSet};

use super::{Accepted, Baseline, Figures, From, Key, KeyRef};

/// What a run looked at, and so what it can say is gone.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// The kernels, and what of each was read.
    kernels: HashMap<Key, [bool; 3]>,
    /// The sources and PTX files that were given.
    pub paths: HashSet<String>,
    /// Whether options left kernels out.
    pub is_filtered: bool,
}

impl Seen {
    /// Takes note of a kernel.
    pub fn add(&mut self, key: Key, from: From) {
        self.kernels.entry(key).or_default()[from as usize] = true;
    }

    /// Whether a finding that was accepted would have been found, if it were still there.
    #[must_use]
    pub fn covers(&self, accepted: &Accepted) -> bool {
        match (&accepted.kernel, &accepted.path) {
            (Some(kernel), _) => {
                let key = KeyRef { kernel, arch: accepted.arch };
                self.kernels.get(&key).is_some_and(|read| read[accepted.from as usize])
            }
            (None, Some(path)) => !self.is_filtered && self.paths.contains(&**path),
            // Of what is of a whole log, nobody knows which log.
            (None, None) => false,
        }
    }
}

/// What became of the entries of a baseline.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Kernels that it did not have.
    pub new: usize,
    /// Kernels whose figures are others.
    pub changed: usize,
    /// Kernels that stayed though this build had none of them.
    pub kept: usize,
    /// Kernels that were dropped.
    pub dropped: usize,
    /// Findings that were dropped.
    pub findings_dropped: u64,
}

/// `old` with everything that this build saw as it is now.
#[must_use]
pub fn update(old: Baseline, now: Baseline, seen: &Seen) -> (Baseline, Counts) {
    let mut counts = Counts { kept: old.kernels.len(), ..Counts::default() };
    let Baseline { mut kernels, mut findings } = old;
    for (key, figures) in now.kernels {
        match kernels.get_mut(&key) {
            None => {
                counts.new += 1;
                kernels.insert(key, figures);
            }
            Some(known) => {
                counts.kept -= 1;
                let merged = merged(known, figures);
                let numbers = |all: &[Figures]| all.iter().map(Figures::numbers).collect::<HashSet<_>>();
                counts.changed += usize::from(numbers(known) != numbers(&merged));
                *known = merged;
            }
        }
    }
    findings.retain(|accepted, count| {
        let is_seen = seen.covers(accepted);
        if is_seen {
            let now = now.findings.get(accepted).copied().unwrap_or_default();
            counts.findings_dropped += count.saturating_sub(now);
        }
        !is_seen
    });
    for (accepted, count) in now.findings {
        let known = findings.entry(accepted).or_default();
        *known = count.max(*known);
    }
    (Baseline { kernels, findings }, counts)
}

/// The figures of the kernels of one key: where a build has fewer of them than were known, those that are known stay.
fn merged(known: &[Figures], mut now: Vec<Figures>) -> Vec<Figures> {
    if let ([known], [now]) = (known, now.as_mut_slice()) {
        fill(now, known);
    }
    let total = |all: &[Figures]| all.iter().map(|one| u64::from(one.records)).sum::<u64>();
    if total(&now) >= total(known) {
        return now;
    }
    let have: HashSet<[Option<u32>; 6]> = now.iter().map(Figures::numbers).collect();
    // Several units share a header: a build of one of them says nothing of the others.
    let more: Vec<Figures> = known.iter().filter(|one| !have.contains(&one.numbers())).cloned().collect();
    let records: HashMap<[Option<u32>; 6], u32> = known.iter().map(|one| (one.numbers(), one.records)).collect();
    for one in &mut now {
        one.records = one.records.max(records.get(&one.numbers()).copied().unwrap_or_default());
    }
    now.extend(more);
    now
}

/// What this build does not tell stays: a listing of the linker has no spills.
fn fill(now: &mut Figures, known: &Figures) {
    if now.spill().is_none() {
        (now.spill_stores, now.spill_loads) = (known.spill_stores, known.spill_loads);
    }
    if now.stack().is_none() {
        (now.stack, now.cumulative_stack) = (known.stack, known.cumulative_stack);
    }
    if now.registers.is_none() {
        (now.registers, now.barriers, now.linked) = (known.registers, known.barriers, known.linked);
        now.static_shared = known.static_shared;
        now.launches.clone_from(&known.launches);
    }
}

/// `old` without the kernels that `now`, a full build, does not have, and without the findings that are `left` over.
#[must_use]
pub fn prune(old: Baseline, now: &Baseline, left: &BTreeMap<Accepted, u64>) -> (Baseline, Counts) {
    let mut counts = Counts::default();
    let Baseline { mut kernels, mut findings } = old;
    let before = kernels.len();
    kernels.retain(|key, known| match now.kernels.get(key) {
        None => false,
        Some(figures) => {
            let have: HashSet<[Option<u32>; 6]> = figures.iter().map(Figures::numbers).collect();
            if known.iter().any(|one| have.contains(&one.numbers())) && known.len() > figures.len() {
                known.retain(|one| have.contains(&one.numbers()));
            }
            true
        }
    });
    counts.dropped = before - kernels.len();
    findings.retain(|accepted, count| {
        let gone = left.get(accepted).copied().unwrap_or_default().min(*count);
        counts.findings_dropped += gone;
        *count -= gone;
        *count > 0
    });
    (Baseline { kernels, findings }, counts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Level;
    use crate::model::Bytes;

    fn key(name: &str) -> Key {
        Key { kernel: name.into(), arch: "sm_80".parse().ok() }
    }

    fn figures(registers: u32) -> Figures {
        Figures { registers: Some(registers), spill_stores: Some(Bytes(8)), records: 1, ..Figures::default() }
    }

    fn baseline(kernels: &[(&str, &[u32])], findings: &[(&str, &str, u64)]) -> Baseline {
        let mut made = Baseline::default();
        for (name, registers) in kernels {
            made.kernels.insert(key(name), registers.iter().copied().map(figures).collect());
        }
        for (rule, kernel, count) in findings {
            made.findings.insert(accepted(rule, kernel), *count);
        }
        made
    }

    fn accepted(rule: &str, kernel: &str) -> Accepted {
        Accepted {
            kernel: (!kernel.is_empty()).then(|| kernel.into()),
            arch: "sm_80".parse().ok(),
            rule: rule.into(),
            gpu: None,
            path: None,
            from: From::Log,
            fingerprint: None,
            cap: Level::Deny,
            severity: None,
        }
    }

    fn seen(kernels: &[&str]) -> Seen {
        let mut seen = Seen::default();
        kernels.iter().for_each(|name| seen.add(key(name), From::Log));
        seen
    }

    fn registers(baseline: &Baseline, name: &str) -> Vec<u32> {
        let mut all: Vec<u32> = baseline.kernels[&key(name)].iter().filter_map(|one| one.registers).collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn what_a_build_saw_is_as_it_is_now_and_the_rest_stays() {
        let old = baseline(&[("a", &[32]), ("b", &[40])], &[("r", "a", 1), ("r", "b", 2), ("s", "", 1)]);
        let now = baseline(&[("b", &[48]), ("c", &[16])], &[("q", "b", 1)]);
        let (next, counts) = update(old, now, &seen(&["b", "c"]));
        assert_eq!([registers(&next, "a"), registers(&next, "b"), registers(&next, "c")], [[32], [48], [16]]);
        let expected = [(accepted("r", "a"), 1), (accepted("q", "b"), 1), (accepted("s", ""), 1)];
        assert_eq!(next.findings, BTreeMap::from(expected));
        assert_eq!(counts, Counts { new: 1, changed: 1, kept: 1, dropped: 0, findings_dropped: 2 });
    }

    #[test]
    fn a_build_with_fewer_kernels_of_a_key_keeps_those_it_did_not_see() {
        let next = |old: &[u32], now: &[u32]| {
            let (old, now) = (baseline(&[("k", old)], &[]), baseline(&[("k", now)], &[]));
            registers(&update(old, now, &seen(&["k"])).0, "k")
        };
        assert_eq!(next(&[32, 40], &[40]), [32, 40]);
        assert_eq!(next(&[32, 40], &[33, 40]), [33, 40]);
        // Which of them it is now, nobody knows.
        assert_eq!(next(&[32, 40], &[48]), [32, 40, 48]);
        assert_eq!(next(&[32], &[32, 40]), [32, 40]);
    }

    #[test]
    fn what_a_build_does_not_tell_stays() {
        let old = baseline(&[("k", &[32])], &[]);
        let mut now = old.clone();
        now.kernels.get_mut(&key("k")).expect("k")[0].spill_stores = None;
        let (next, counts) = update(old, now, &seen(&["k"]));
        assert_eq!(next.kernels[&key("k")][0].spill_stores, Some(Bytes(8)));
        assert_eq!(counts, Counts::default());
    }

    #[test]
    fn pruning_drops_what_a_full_build_does_not_have_and_takes_nothing_new() {
        let old = baseline(&[("a", &[32]), ("b", &[40])], &[("r", "a", 1), ("r", "b", 3)]);
        let now = baseline(&[("b", &[48]), ("c", &[16])], &[]);
        let left = BTreeMap::from([(accepted("r", "a"), 1), (accepted("r", "b"), 1)]);
        let (next, counts) = prune(old, &now, &left);
        assert_eq!(registers(&next, "b"), [40]);
        assert_eq!(next.kernels.len(), 1);
        assert_eq!(next.findings, BTreeMap::from([(accepted("r", "b"), 2)]));
        assert_eq!(counts, Counts { dropped: 1, findings_dropped: 2, ..Counts::default() });
    }
}
