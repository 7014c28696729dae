//! How the warps of a block part at a branch, counted over all environments.

use super::unknowns::share;
use super::value::{Extent, LANES, Span, Value};

/// Share of warps from which on a split is no boundary.
pub(super) const PARTED: f64 = 0.25;

/// The smallest groups whose leader is no news where it does little: four lanes share a fragment of a matrix.
const GROUP: u32 = 4;

/// How warps part at a branch, over all environments.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Split {
    /// Mean share of warps that part, of those that come there.
    pub mean: f64,
    /// The warps that come there at most, as a share of all of the block.
    pub among: f64,
    /// Largest share.
    pub most: f64,
    /// The share is the same in all environments that come there.
    pub is_fixed: bool,
    /// Share of environments in which a quarter of the warps or more part.
    pub robust: f64,
    /// One fixed side never has more than one lane of a warp.
    pub leader: bool,
    /// In some environment the threads of the block part.
    pub block: bool,
    /// Share of environments in which they do.
    pub parts: f64,
    /// Share of environments in which some warp comes there.
    pub reached: f64,
    /// Mean share of lanes that take the branch, in warps that part.
    pub taking: f64,
    /// Data have a part in the condition that each lane has its own of, whether warps part here or not.
    pub by_data: bool,
    /// A comparison in the condition would part lanes with other numbers than any that were looked at.
    pub at_edge: bool,
    /// A choice has a part in it that could not be followed.
    pub guessed: bool,
    /// Never more than one of several warps parts.
    pub lone: bool,
    /// Lanes part at a threshold: from some lane on all go one way.
    pub threshold: bool,
    /// The lanes of each aligned group of so many go one way, but one of them.
    pub group: Option<u32>,
    /// A warp that parts.
    pub witness: Option<Witness>,
}

/// The lanes of one warp at a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Witness {
    /// The warp in its block.
    pub warp: u32,
    /// Lanes that come there.
    pub active: u32,
    /// Lanes that take the branch.
    pub taken: u32,
}

impl Split {
    /// Counts where the lanes of `active` part on `condition`; `several` for a table, whose index it then is.
    #[must_use]
    pub fn count(condition: &Value, active: &Value, extent: Extent, several: bool) -> Split {
        let (by_data, at_edge) = (condition.is_by_data(), condition.is_at_edge());
        let guessed = condition.is_guess() || active.is_guess();
        let marks = Split { by_data, at_edge, guessed, reached: 1.0, among: 1.0, ..Split::default() };
        if condition.span() == Span::Block && active.span() == Span::Block {
            return marks;
        }
        let rows = condition.rows().max(active.rows());
        let mut seen = Seen::nothing(rows);
        for environment in 0..rows {
            let lanes = |warp| lanes_of(condition, active, environment, warp, extent, several);
            seen.environment(share(extent.environments[environment]), (0..extent.warps()).map(lanes));
        }
        seen.counted(marks, extent.warps(), several)
    }

    /// Mean share of all warps of the block that part: those that do not come there lose nothing.
    #[must_use]
    pub fn of_all(&self) -> f64 {
        self.mean * self.among
    }
}

/// What is seen of the warps that come to a branch.
struct Seen {
    /// How much environments count, and those of them in which some warp comes there.
    everywhere: f64,
    shares: Vec<Share>,
    /// Warps that come there, those of them that part, and lanes of one of them, at most.
    warps: usize,
    split: usize,
    most_active: u32,
    most_taking: u32,
    most_others: u32,
    /// Warps that part, in all environments, and the shares of their lanes that take the branch.
    parting: f64,
    taking: f64,
    threshold: bool,
    group: Option<u32>,
    witness: Option<Witness>,
}

/// How warps part in one environment.
struct Share {
    /// How much the environment counts.
    counts: f64,
    /// Share of the warps that come there.
    of_warps: f64,
    /// Whether the threads of the block part.
    parts: bool,
}

impl Seen {
    /// Nothing yet, of so many environments.
    fn nothing(environments: usize) -> Seen {
        Seen {
            everywhere: 0.0,
            shares: Vec::with_capacity(environments),
            warps: 0,
            split: 0,
            most_active: 0,
            most_taking: 0,
            most_others: 0,
            parting: 0.0,
            taking: 0.0,
            threshold: true,
            group: Some(u32::BITS),
            witness: None,
        }
    }

    /// Looks at the warps of one environment, which counts for so much.
    fn environment(&mut self, counts: f64, all: impl Iterator<Item = Witness>) {
        let (mut warps, mut split) = (0_usize, 0_usize);
        let (mut first, mut parts) = (None, false);
        for lanes in all.filter(|lanes| lanes.active != 0) {
            let way = self.look(lanes);
            parts |= way.is_none() || *first.get_or_insert(way) != way;
            warps += 1;
            split += usize::from(way.is_none());
        }
        self.everywhere += counts;
        if warps == 0 {
            return;
        }
        self.warps = self.warps.max(warps);
        self.split = self.split.max(split);
        self.shares.push(Share { counts, of_warps: share_of(split, warps), parts });
    }

    /// Which way a warp goes; `None` where it parts.
    fn look(&mut self, lanes: Witness) -> Option<bool> {
        let (taken, others) = (lanes.taken, lanes.active & !lanes.taken);
        let (yes, no) = (taken.count_ones(), others.count_ones());
        self.most_active = self.most_active.max(yes + no);
        (self.most_taking, self.most_others) = (self.most_taking.max(yes), self.most_others.max(no));
        if yes == 0 || no == 0 {
            return Some(yes > 0);
        }
        self.parting += 1.0;
        self.taking += f64::from(yes) / f64::from(yes + no);
        // All of one way before all of the other.
        let is_before = |one: u32, two: u32| u32::BITS - one.leading_zeros() <= two.trailing_zeros();
        self.threshold &= is_before(taken, others) || is_before(others, taken);
        self.group = self.group.and_then(|group| Some(group.min(group_of(taken, others)?)));
        self.witness.get_or_insert(lanes);
        None
    }

    /// What was counted, of a block of so many warps.
    fn counted(&self, marks: Split, warps: usize, several: bool) -> Split {
        let sum = |f: fn(&Share) -> f64| self.shares.iter().map(f).fold(0.0, std::ops::Add::add);
        let reached = sum(|one| one.counts);
        let mean = |f| if reached > 0.0 { sum(f) / reached } else { 0.0 };
        let parts = mean(|one| if one.parts { one.counts } else { 0.0 });
        Split {
            mean: mean(|one| one.counts * one.of_warps),
            among: share_of(self.warps, warps.max(1)),
            most: self.shares.iter().map(|one| one.of_warps).fold(0.0, f64::max),
            is_fixed: self.shares.iter().all(|one| one.of_warps == self.shares[0].of_warps),
            robust: mean(|one| if one.of_warps >= PARTED { one.counts } else { 0.0 }),
            leader: !several && self.most_taking.min(self.most_others) <= 1,
            block: parts > 0.0,
            parts,
            reached: if self.everywhere > 0.0 { reached / self.everywhere } else { 0.0 },
            taking: if self.parting > 0.0 { self.taking / self.parting } else { 0.0 },
            // Data of its own tell a lane from no other where it is alone.
            by_data: marks.by_data && self.most_active != 1,
            lone: self.split == 1 && warps > 1,
            threshold: !several && self.split > 0 && self.threshold,
            group: self.group.filter(|lanes| !several && self.split > 0 && *lanes >= GROUP),
            witness: self.witness,
            ..marks
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "a block has 32 warps")]
fn share_of(some: usize, warps: usize) -> f64 {
    some as f64 / warps as f64
}

/// The number of lanes of the aligned groups of each of which one lane, at the same place, goes another way.
fn group_of(taken: u32, others: u32) -> Option<u32> {
    let fewer = if taken.count_ones() <= others.count_ones() { taken } else { others };
    let group = 32 / fewer.count_ones();
    if taken | others != u32::MAX || !group.is_power_of_two() || group * fewer.count_ones() != 32 {
        return None;
    }
    let every = u32::MAX / (u32::MAX >> (32 - group));
    let first = fewer.trailing_zeros();
    (first < group && fewer == every << first).then_some(group)
}

/// The lanes of a warp at a branch, in one environment.
fn lanes_of(
    condition: &Value,
    active: &Value,
    environment: usize,
    warp: usize,
    extent: Extent,
    several: bool,
) -> Witness {
    let mut lanes = Witness { warp: u32::try_from(warp).unwrap_or(u32::MAX), active: 0, taken: 0 };
    let (conditions, actives) = (condition.of_warp(environment, warp), active.of_warp(environment, warp));
    let count = (extent.threads - warp * LANES).min(LANES);
    let mut first = None;
    for lane in 0..count {
        if actives[lane.min(actives.len() - 1)] == 0 {
            continue;
        }
        let bit = 1_u32 << lane;
        lanes.active |= bit;
        let value = conditions[lane.min(conditions.len() - 1)];
        let taken = if several { *first.get_or_insert(value) == value } else { value != 0 };
        lanes.taken |= if taken { bit } else { 0 };
    }
    lanes
}

/// What other tests take as well.
#[cfg(test)]
pub(super) mod testing {
    use super::super::value::ALL;
    use super::*;

    pub(in crate::lanes) const EXTENT: Extent = Extent { threads: 256, environments: ALL };

    /// How a block of that many threads parts where all come to a branch.
    pub(in crate::lanes) fn split(condition: impl FnMut(usize) -> u64) -> Split {
        Split::count(&Value::of_threads(EXTENT, condition), &Value::constant(1), EXTENT, false)
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{EXTENT, split};
    use super::*;

    #[test]
    fn warps_are_counted_that_part() {
        let odd = split(|thread| (thread % 2) as u64);
        assert_eq!((odd.mean, odd.most, odd.robust, odd.leader, odd.block), (1.0, 1.0, 1.0, false, true));
        assert_eq!((odd.taking, odd.witness.map(|lanes| lanes.taken)), (0.5, Some(0xaaaa_aaaa)));
        let tail = split(|thread| u64::from(thread < 40));
        assert_eq!((tail.mean, tail.robust, tail.block), (0.125, 0.0, true));
        assert_eq!(tail.witness, Some(Witness { warp: 1, active: u32::MAX, taken: 0xff }));
        let roles = split(|thread| u64::from(thread < 64));
        assert_eq!((roles.most, roles.block, roles.witness), (0.0, true, None));
        let none = split(|_| 1);
        assert_eq!((none.most, none.block), (0.0, false));
        assert!(split(|thread| u64::from(thread == 0)).leader && split(|thread| u64::from(thread % 32 != 7)).leader);
    }

    #[test]
    fn lanes_that_do_not_come_there_part_nobody() {
        let odd = Value::of_threads(EXTENT, |thread| (thread % 2) as u64);
        assert_eq!(Split::count(&odd, &odd, EXTENT, false).most, 0.0);
        let nobody = Split::count(&odd, &Value::of_threads(EXTENT, |_| 0), EXTENT, false);
        assert_eq!((nobody.mean, nobody.most), (0.0, 0.0));
    }

    #[test]
    fn a_table_parts_where_indices_differ() {
        let index = |part: usize| Value::of_threads(EXTENT, move |thread| (thread / part) as u64);
        let parted = |part| Split::count(&index(part), &Value::constant(1), EXTENT, true).mean;
        assert_eq!((parted(8), parted(32)), (1.0, 0.0));
    }

    #[test]
    fn a_group_has_one_lane_that_differs_at_the_same_place() {
        let group = |taken: u32| group_of(taken, !taken);
        assert_eq!((group(0x1111_1111), group(0x8080_8080), group(0x5555_5555)), (Some(4), Some(8), Some(2)));
        assert_eq!((group(!0x0001_0001), group(1), group(0x0000_0003)), (Some(16), Some(32), None));
        assert_eq!(group_of(0x0000_0101, 0x0000_fefe), None, "half of the warp comes there");
    }
}
