//! What changed between two builds, kernel by kernel: one notion of worse, for the rule and for `diff`.

use hashbrown::HashMap;

use super::occupancy::{At, AtBlock, Occupancies, places};
use super::{Baseline, Figures, Key};
use crate::gpu::Gpu;
use crate::model::{Arch, Toolkit};

/// What became of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// More spill bytes, or lower occupancy.
    Worse,
    /// Fewer spill bytes, or higher occupancy, and nothing worse.
    Better,
    /// Other figures, and neither.
    Changed,
    /// It is new.
    Added,
    /// It is gone.
    Removed,
}

impl Status {
    /// All, in the order in which they are shown.
    pub const ALL: [Status; 5] = [Status::Worse, Status::Better, Status::Changed, Status::Added, Status::Removed];

    /// Its name in JSON, and for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Status::Worse => "worse",
            Status::Better => "better",
            Status::Changed => "changed",
            Status::Added => "added",
            Status::Removed => "removed",
        }
    }
}

/// How two builds of one kernel differ.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Difference {
    /// Spill bytes before and after, where they differ.
    pub spill: Option<(u64, u64)>,
    /// The place where occupancy falls most.
    pub fall: Option<AtBlock>,
    /// The place where it rises most.
    pub rise: Option<AtBlock>,
    /// The first place of all, where figures that occupancy depends on were compared.
    pub first: Option<AtBlock>,
}

impl Difference {
    /// How `after` differs from `before` at these places.
    #[must_use]
    pub fn of(before: &Figures, after: &Figures, at: &[At<'_>], known: &mut Occupancies) -> Difference {
        let spill = before.spill().zip(after.spill()).filter(|(before, after)| before != after);
        let mut difference = Difference { spill, ..Difference::default() };
        for at in at {
            let Some(found) = known.at(before, after, at) else { continue };
            let by = |known: &Option<AtBlock>| known.as_ref().map_or(0, |known| known.after.abs_diff(known.before));
            let moved = found.after.abs_diff(found.before);
            if found.after < found.before && moved > by(&difference.fall) {
                difference.fall = Some(found.clone());
            }
            if found.after > found.before && moved > by(&difference.rise) {
                difference.rise = Some(found.clone());
            }
            difference.first.get_or_insert(found);
        }
        difference
    }

    /// Whether something is worse.
    #[must_use]
    pub fn is_worse(&self) -> bool {
        self.fall.is_some() || self.spill.is_some_and(|(before, after)| after > before)
    }

    /// Whether something is better, and nothing worse.
    #[must_use]
    pub fn is_better(&self) -> bool {
        !self.is_worse() && (self.rise.is_some() || self.spill.is_some())
    }
}

/// Whether a figure that occupancy depends on may differ: most kernels need no table.
#[must_use]
pub fn may_move(before: &Figures, after: &Figures) -> bool {
    let of = |one: &Figures| (one.registers, one.static_shared, one.counted_barriers());
    of(before) != of(after)
}

/// One kernel that changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// What became of it.
    pub status: Status,
    /// The kernel.
    pub key: Key,
    /// Its figures before.
    pub before: Option<Figures>,
    /// Its figures after.
    pub after: Option<Figures>,
    /// Occupancy before and after at the place that tells most, where both are known.
    pub occupancy: Option<AtBlock>,
}

impl Change {
    /// The name that people call it by.
    #[must_use]
    pub fn name(&self) -> &str {
        let named = [&self.after, &self.before].into_iter().flatten().find_map(|figures| figures.name.as_deref());
        named.unwrap_or(&self.key.kernel)
    }
}

/// All that changed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Changes {
    /// Each change: what is worse first, then by name.
    pub all: Vec<Change>,
    /// Kernels that both have.
    pub compared: usize,
    /// The toolkits, where both are known and differ.
    pub toolkits: Option<(Toolkit, Toolkit)>,
}

impl Changes {
    /// How many are of a status.
    #[must_use]
    pub fn count(&self, status: Status) -> usize {
        self.all.iter().filter(|change| change.status == status).count()
    }
}

/// What changed from `old` to `new`, on these GPUs, or on each kernel's own where there are none.
#[must_use]
pub fn compare(old: &Baseline, new: &Baseline, gpus: &[Gpu]) -> Changes {
    let mut pairs = Pairs { gpus, own: HashMap::new(), known: Occupancies::default() };
    let mut changes = Changes { toolkits: toolkits(old, new), ..Changes::default() };
    for (key, news) in &new.kernels {
        match old.kernels.get(key) {
            Some(olds) => {
                changes.compared += 1;
                changes.all.extend(pairs.change(key, olds, news));
            }
            None => changes.all.extend(alone(Status::Added, key, news)),
        }
    }
    let gone = old.kernels.iter().filter(|(key, _)| !new.kernels.contains_key(*key));
    changes.all.extend(gone.filter_map(|(key, olds)| alone(Status::Removed, key, olds)));
    changes.all.sort_by(|one, other| (one.status, &one.key).cmp(&(other.status, &other.key)));
    changes
}

/// The toolkit of all kernels of either side, where each side has one, and another.
fn toolkits(old: &Baseline, new: &Baseline) -> Option<(Toolkit, Toolkit)> {
    let only = |side: &Baseline| {
        let mut all = side.kernels.values().flatten().map(|figures| figures.toolkit);
        let first = all.next()??;
        all.all(|one| one == Some(first)).then_some(first)
    };
    only(old).zip(only(new)).filter(|(old, new)| old != new)
}

fn alone(status: Status, key: &Key, figures: &[Figures]) -> Option<Change> {
    let worst = Figures::worst(figures)?;
    let (before, after) = if status == Status::Removed { (Some(worst), None) } else { (None, Some(worst)) };
    Some(Change { status, key: key.clone(), before, after, occupancy: None })
}

struct Pairs<'g> {
    gpus: &'g [Gpu],
    own: HashMap<Arch, Option<Gpu>>,
    known: Occupancies,
}

impl Pairs<'_> {
    /// What became of the kernels of one key. Those that are alike on both sides did not change; of what is left, the worst
    /// are compared, so that nothing looks worse because two kernels were mixed up.
    fn change(&mut self, key: &Key, olds: &[Figures], news: &[Figures]) -> Option<Change> {
        let [left_old, left_new] = [without(olds, news), without(news, olds)];
        let total = |all: &[Figures]| all.iter().map(|one| u64::from(one.records)).sum::<u64>();
        let (before, after) = match (left_old.is_empty(), left_new.is_empty()) {
            (true, true) => return None,
            (true, false) if total(news) > total(olds) => return alone(Status::Added, key, &owned(&left_new)),
            (false, true) if total(news) < total(olds) => return alone(Status::Removed, key, &owned(&left_old)),
            (true, false) => (Figures::worst(olds)?, Figures::worst(left_new)?),
            (false, true) => (Figures::worst(left_old)?, Figures::worst(news)?),
            (false, false) => (Figures::worst(left_old)?, Figures::worst(left_new)?),
        };
        if !before.differs_from(&after) {
            return None;
        }
        let own = key.arch.and_then(|arch| self.own.entry(arch).or_insert_with(|| Gpu::of(arch)).as_ref());
        let asked = self.gpus.iter().filter(|gpu| key.arch.is_none_or(|arch| gpu.runs(arch)));
        let gpus: Vec<&Gpu> = if self.gpus.is_empty() { own.into_iter().collect() } else { asked.collect() };
        let difference = Difference::of(&before, &after, &places(gpus, &before, &after), &mut self.known);
        let status = match (difference.is_worse(), difference.is_better()) {
            (true, _) => Status::Worse,
            (false, true) => Status::Better,
            (false, false) => Status::Changed,
        };
        let occupancy = difference.fall.or(difference.rise).or(difference.first);
        Some(Change { status, key: key.clone(), before: Some(before), after: Some(after), occupancy })
    }
}

fn owned(figures: &[&Figures]) -> Vec<Figures> {
    figures.iter().map(|one| (*one).clone()).collect()
}

/// Those of `all` whose like is not among `others`.
fn without<'f>(all: &'f [Figures], others: &[Figures]) -> Vec<&'f Figures> {
    if let ([one], [other]) = (all, others) {
        return if one.differs_from(other) { vec![one] } else { Vec::new() };
    }
    let known: hashbrown::HashSet<[Option<u32>; 6]> = others.iter().map(Figures::numbers).collect();
    all.iter().filter(|one| !known.contains(&one.numbers())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Bytes;

    fn figures(registers: u32, spill: u32) -> Figures {
        Figures {
            registers: Some(registers),
            spill_stores: Some(Bytes(spill)),
            spill_loads: Some(Bytes(spill)),
            static_shared: Some(Bytes(0)),
            stack: Some(Bytes(0)),
            records: 1,
            ..Figures::default()
        }
    }

    fn side(kernels: &[(&str, u32, u32)]) -> Baseline {
        let mut side = Baseline::default();
        for (name, registers, spill) in kernels {
            let key = Key { kernel: (*name).into(), arch: "sm_80".parse().ok() };
            side.kernels.entry(key).or_default().push(figures(*registers, *spill));
        }
        side
    }

    fn changes(old: &[(&str, u32, u32)], new: &[(&str, u32, u32)]) -> Vec<(String, &'static str)> {
        let changes = compare(&side(old), &side(new), &[]);
        changes.all.iter().map(|change| (change.key.kernel.to_string(), change.status.name())).collect()
    }

    fn one(old: (u32, u32), new: (u32, u32)) -> Option<&'static str> {
        changes(&[("k", old.0, old.1)], &[("k", new.0, new.1)]).first().map(|(_, status)| *status)
    }

    #[test]
    fn worse_is_more_spill_or_lower_occupancy_and_nothing_else() {
        assert_eq!(one((32, 0), (32, 0)), None);
        assert_eq!(one((32, 0), (32, 16)), Some("worse"));
        assert_eq!(one((32, 0), (40, 0)), Some("worse"));
        assert_eq!(one((32, 16), (32, 0)), Some("better"));
        assert_eq!(one((40, 0), (32, 0)), Some("better"));
        assert_eq!(one((33, 0), (34, 0)), Some("changed"));
        assert_eq!(one((40, 16), (32, 20)), Some("worse"));
    }

    #[test]
    fn kernels_of_one_name_are_never_mixed_up() {
        let two = [("k", 32, 0), ("k", 32, 16)];
        assert_eq!(changes(&two, &two), []);
        assert_eq!(changes(&two, &[two[1], two[0]]), []);
        assert_eq!(changes(&two, &two[1..]), [("k".into(), "removed")]);
        assert_eq!(changes(&two[..1], &two), [("k".into(), "added")]);
        assert_eq!(changes(&two, &[("k", 32, 8), ("k", 32, 16)]), [("k".into(), "worse")]);
        assert_eq!(changes(&[two[0], two[0]], &two), [("k".into(), "worse")]);
        assert_eq!(changes(&two, &[two[0], two[0]]), [("k".into(), "better")]);
    }

    #[test]
    fn what_is_new_and_what_is_gone_is_neither_better_nor_worse_and_comes_last() {
        let found = changes(&[("a", 32, 0), ("b", 32, 0), ("c", 40, 0)], &[("b", 32, 8), ("c", 32, 0), ("d", 32, 8)]);
        let expected = [("b", "worse"), ("c", "better"), ("d", "added"), ("a", "removed")];
        assert_eq!(found, expected.map(|(name, status)| (name.to_owned(), status)));
    }

    #[test]
    fn registers_of_the_linker_are_not_compared_with_those_of_ptxas() {
        let (old, mut new) = (side(&[("k", 32, 0)]), side(&[("k", 64, 0)]));
        old.kernels.values().flatten().for_each(|figures| assert_eq!(figures.linked, None));
        let status = |new: &Baseline, old: &Baseline| compare(old, new, &[]).all[0].status;
        assert_eq!(status(&new, &old), Status::Worse);
        new.kernels.values_mut().flatten().for_each(|figures| figures.linked = Some(true));
        let mut old = old;
        old.kernels.values_mut().flatten().for_each(|figures| figures.linked = Some(false));
        assert_eq!(status(&new, &old), Status::Changed);
    }
}
