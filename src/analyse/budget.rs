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
    pub fn budgets_of(&self, name: Option<NameId>) -> impl Iterator<Item = usize> {
        let mut known = [false; Limit::KEYS.len()];
        let entries = if self.budgets.is_empty() { &[] } else { self.entries_of(name) };
        let own = entries.iter().flat_map(|entry| {
            let start = self.budgets.partition_point(|budget| budget.entry < *entry);
            (start..self.budgets.len()).take_while(|at| self.budgets[*at].entry == *entry)
        });
        own.filter(move |at| !std::mem::replace(&mut known[self.budgets[*at].limit.number()], true))
    }
}
