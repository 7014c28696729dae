//! What the configuration lets kernels cost.

use super::Numbers;
use crate::model::{Bytes, NameId, Quote};

/// A budget, and where it is set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget {
    /// The entry that sets it, an index of [`Numbers::entries`].
    pub entry: usize,
    /// What it is.
    pub limit: Limit,
    /// The line of it.
    pub quote: Quote,
    /// The bytes of the line's text that it takes.
    pub span: (usize, usize),
}

/// What a kernel may cost at most, or has to reach.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    /// Registers a thread.
    Registers(u32),
    /// Bytes of spill stores, and of spill loads, a thread.
    Spill(Bytes),
    /// Stack frame a thread.
    Stack(Bytes),
    /// Shared memory a block.
    Shared(Bytes),
    /// Occupancy, 0 to 1.
    Occupancy(f64),
}

impl Limit {
    /// The keys of all limits, in order.
    const KEYS: [&'static str; 5] =
        ["max-registers", "max-spill-bytes", "max-stack-bytes", "max-shared-bytes", "min-occupancy"];

    /// Whether a key of the configuration sets a limit.
    #[must_use]
    pub fn is_key(key: &str) -> bool {
        Limit::KEYS.contains(&key)
    }

    /// Its number among all limits.
    #[must_use]
    pub fn number(self) -> usize {
        match self {
            Limit::Registers(_) => 0,
            Limit::Spill(_) => 1,
            Limit::Stack(_) => 2,
            Limit::Shared(_) => 3,
            Limit::Occupancy(_) => 4,
        }
    }

    /// Its key in the configuration.
    #[must_use]
    pub fn key(self) -> &'static str {
        Limit::KEYS[self.number()]
    }
}

impl Numbers {
    /// The budgets of the kernel called `name`, as indices of [`Numbers::budgets`]: of several entries that set the same
    /// limit, that of the first.
    #[must_use]
    pub fn budgets_of(&self, name: Option<NameId>) -> &[usize] {
        let set = self.matched.of(name).and_then(|set| self.matched.budgets.get(set as usize));
        set.map_or(&[], Vec::as_slice)
    }
}

/// For each of `sets` of entries the budgets that hold for their kernels.
pub(super) fn of_sets(sets: &[Vec<usize>], budgets: &[Budget]) -> Vec<Vec<usize>> {
    if budgets.is_empty() {
        return Vec::new();
    }
    let of_entry = |entry: &usize| {
        let start = budgets.partition_point(|budget| budget.entry < *entry);
        let end = budgets.partition_point(|budget| budget.entry <= *entry);
        start..end
    };
    let of_set = |set: &Vec<usize>| {
        let mut known = [false; Limit::KEYS.len()];
        let own = set.iter().flat_map(of_entry);
        own.filter(|at| !std::mem::replace(&mut known[budgets[*at].limit.number()], true)).collect()
    };
    sets.iter().map(of_set).collect()
}
