//! What is lost where lanes part: instructions that a warp could issue and does not, and from which on that is worth a word.

use super::cost::{Side, Traits};
use super::split::Split;

/// Share of lane-iterations lost from which on a loop is worth a word.
pub(super) const IDLE: f64 = 0.10;

/// The least that a warp which parts has to lose at a visit, in instructions that it could issue.
pub(super) const LOSS: f64 = 8.0;

/// The smaller of two sides, and the only one, from which on a split is worth a word.
const TWO_SIDED: f64 = 8.0;
const ONE_SIDED: f64 = 16.0;

/// Instructions that a warp could issue and does not, at a visit in the mean of all warps.
#[must_use]
pub fn loss(split: &Split, sides: Option<(Side, Side)>) -> f64 {
    split.of_all() * loss_of_parted(split, sides)
}

/// The same of a warp that parts: the instructions of the lesser side, where all lanes have something to do, else those of
/// the only side, for the lanes that idle meanwhile.
pub(super) fn loss_of_parted(split: &Split, sides: Option<(Side, Side)>) -> f64 {
    let Some((taken, other)) = sides else { return 0.0 };
    let (less, more) = (taken.weight.min(other.weight), taken.weight.max(other.weight));
    if !is_mostly_one(less) {
        return less;
    }
    more * idle(split, taken, other)
}

/// The share of lanes that wait while the heavier side runs, in warps that part.
#[must_use]
pub fn idle(split: &Split, taken: Side, other: Side) -> f64 {
    if taken.weight > other.weight { 1.0 - split.taking } else { split.taking }
}

/// A side of an instruction or two is no second side.
#[must_use]
pub fn is_mostly_one(less: f64) -> bool {
    less <= 2.0
}

/// Whether what stands on two sides is so much that parting lanes there is worth a word.
pub(super) fn are_worth_a_word(taken: Side, other: Side) -> bool {
    let (less, more) = (taken.weight.min(other.weight), taken.weight.max(other.weight));
    let is_enough = if is_mostly_one(less) { more >= ONE_SIDED } else { less >= TWO_SIDED };
    is_enough || are_slow(taken, other)
}

/// Whether two sides are so light that no verdict on a branch to them could be worth a word.
pub(super) fn are_light(taken: Side, other: Side) -> bool {
    let (less, more) = (taken.weight.min(other.weight), taken.weight.max(other.weight));
    more < ONE_SIDED && less < TWO_SIDED && !are_slow(taken, other)
}

/// Whether one of two sides calls a function, or computes what takes long.
fn are_slow(taken: Side, other: Side) -> bool {
    let slow = Traits::CALL.and(Traits::SLOW);
    taken.has.any(slow) || other.has.any(slow)
}
