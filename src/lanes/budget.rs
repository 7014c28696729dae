//! How much may be computed for the branches of a function, and what is left of that.

use super::eval::Evaluator;

/// How much may be computed for a function.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// Numbers for one branch, in each mode.
    pub branch: u64,
    /// Numbers for all of them.
    pub function: u64,
}

impl Budget {
    /// What a function of `bytes` may take, one of `functions` that have branches.
    #[must_use]
    pub fn of(bytes: usize, functions: usize) -> Budget {
        let share = (100_000_000 / functions.max(1) as u64).clamp(400_000, 10_000_000);
        Budget { branch: 2_500_000, function: share + 20 * bytes as u64 }
    }

    /// What may be computed to look at some of them once more.
    pub(super) fn second(self) -> Budget {
        Budget { function: self.function / 2, ..self }
    }

    /// What whoever asks for all branches waits for.
    pub(super) fn at_leisure(self) -> Budget {
        Budget { branch: LEISURE * self.branch, function: LEISURE * self.function }
    }
}

/// Times as long as for a report that a list of all branches may take.
const LEISURE: u64 = 8;

/// What is left of what may be computed for a function.
pub(super) struct Purse {
    budget: Budget,
    left: u64,
}

impl Purse {
    /// All of a budget.
    pub(super) fn of(budget: Budget) -> Purse {
        Purse { budget, left: budget.function }
    }

    /// What `f` finds when it may compute as much as `branches` of them may take, as far as there is something left.
    pub(super) fn spend<'e, 'c, 't, T>(
        &mut self,
        branches: u64,
        evaluator: &mut Evaluator<'e, 'c, 't>,
        f: impl FnOnce(&mut Evaluator<'e, 'c, 't>) -> T,
    ) -> T {
        let allowance = (branches * self.budget.branch).min(self.left);
        evaluator.allow(allowance);
        let found = f(evaluator);
        self.left -= allowance - evaluator.left();
        found
    }
}
