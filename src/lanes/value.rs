//! Values of all threads of a block at once, in several environments: what does not vary is kept once.

use std::ops::Deref;
use std::sync::Arc;

/// The environments in which values are looked at, by number: each has its own parameters, data and iteration numbers.
pub type Environments = &'static [usize];

/// All of them.
pub const ALL: Environments =
    &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25];

/// Enough of them to see that a branch is not worth looking at in all: six of the usual ones, and two at edges.
pub const SOME: Environments = &[0, 1, 5, 7, 8, 13, 14, 22];

/// The number of the first of [`NEAR`].
const FIRST_NEAR: usize = 100;

/// Others, in which whole numbers that nobody knows are small, or near each other and the size of the block: where a condition
/// hangs on two of them that have to be near each other, few of the usual ones show it.
pub const NEAR: Environments = &near();

const fn near() -> [usize; 48] {
    let mut all = [FIRST_NEAR; 48];
    let mut at = 0;
    while at < all.len() {
        all[at] += at;
        at += 1;
    }
    all
}

/// Whether an environment is one of [`NEAR`].
pub(super) fn is_near(environment: usize) -> bool {
    environment >= FIRST_NEAR
}

/// One in which the block is the first of its grid.
pub const FIRST: Environments = &[0];

/// Lanes of a warp, on every GPU that CUDA runs on.
pub const LANES: usize = 32;

/// How far a value varies within a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Span {
    /// One value for the block.
    Block,
    /// One for each warp.
    Warp,
    /// One for each thread.
    Thread,
}

/// The bits of a register for all threads of a block in all environments.
///
/// `bits` holds one row, or one for each environment; a row holds one value, one for each warp, or one for each thread.
#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    /// 1, or how many environments there are, if they differ.
    rows: usize,
    marks: Marks,
    span: Span,
    bits: Bits,
}

/// Numbers that many values may share; one alone needs no place of its own.
#[derive(Debug, Clone, PartialEq)]
enum Bits {
    One([u64; 1]),
    Many(Arc<Vec<u64>>),
}

impl From<Vec<u64>> for Bits {
    fn from(all: Vec<u64>) -> Bits {
        if let [one] = *all { Bits::One([one]) } else { Bits::Many(Arc::new(all)) }
    }
}

impl Deref for Bits {
    type Target = [u64];

    #[inline]
    fn deref(&self) -> &[u64] {
        match self {
            Bits::One(one) => one,
            Bits::Many(all) => all,
        }
    }
}

impl Bits {
    #[inline]
    fn map(&self, f: impl Fn(u64) -> u64) -> Bits {
        match self {
            Bits::One([one]) => Bits::One([f(*one)]),
            // Of many numbers each is mapped to one.
            Bits::Many(all) => Bits::Many(Arc::new(all.iter().map(|bits| f(*bits)).collect())),
        }
    }
}

/// What has a part in a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Marks(u8);

impl Marks {
    /// Data that each lane drew its own of.
    const DATA: Marks = Marks(1);
    /// A comparison that no environment parts the lanes at, and another number would.
    const EDGE: Marks = Marks(2);
    /// A choice that stands for one which could not be followed: when lanes left a loop, and by which of its exits.
    const GUESS: Marks = Marks(4);

    fn and(self, other: Marks) -> Marks {
        Marks(self.0 | other.0)
    }

    fn has(self, mark: Marks) -> bool {
        self.0 & mark.0 != 0
    }
}

/// The threads that values are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Threads of the block.
    pub threads: usize,
    /// The environments.
    pub environments: Environments,
}

impl Extent {
    /// Warps of the block; the last may have idle lanes.
    #[must_use]
    pub fn warps(self) -> usize {
        self.threads.div_ceil(LANES)
    }

    #[inline]
    fn row(self, span: Span) -> usize {
        match span {
            Span::Block => 1,
            Span::Warp => self.warps(),
            Span::Thread => self.threads,
        }
    }
}

impl Value {
    /// The same everywhere.
    #[must_use]
    pub fn constant(bits: u64) -> Value {
        Value { rows: 1, marks: Marks::default(), span: Span::Block, bits: Bits::One([bits]) }
    }

    /// One for each thread, the same in all environments.
    #[must_use]
    pub fn of_threads(extent: Extent, value: impl FnMut(usize) -> u64) -> Value {
        let bits = (0..extent.threads).map(value).collect::<Vec<u64>>().into();
        Value { rows: 1, marks: Marks::default(), span: Span::Thread, bits }
    }

    /// One for each warp, the same in all environments.
    #[must_use]
    pub fn of_warps(extent: Extent, value: impl FnMut(usize) -> u64) -> Value {
        let bits = (0..extent.warps()).map(value).collect::<Vec<u64>>().into();
        Value { rows: 1, marks: Marks::default(), span: Span::Warp, bits }
    }

    /// `value(environment, place)` for every place of the span, with the number of the environment.
    #[must_use]
    pub fn sampled(extent: Extent, span: Span, mut value: impl FnMut(usize, usize) -> u64) -> Value {
        let row = extent.row(span);
        let mut bits = Vec::with_capacity(extent.environments.len() * row);
        for environment in extent.environments {
            bits.extend((0..row).map(|place| value(*environment, place)));
        }
        Value { rows: extent.environments.len(), marks: Marks::default(), span, bits: bits.into() }
    }

    /// The same as data of which each lane has its own.
    #[must_use]
    pub fn as_data(self) -> Value {
        self.marked(Marks::DATA)
    }

    /// The same as what all lanes of a warp share.
    #[must_use]
    pub fn as_shared(self) -> Value {
        Value { marks: Marks(self.marks.0 & Marks::GUESS.0), ..self }
    }

    /// The same as the outcome of a comparison that another number would part the lanes at.
    #[must_use]
    pub fn as_edge(self) -> Value {
        self.marked(Marks::EDGE)
    }

    /// The same as a choice that could not be followed.
    #[must_use]
    pub fn as_guess(self) -> Value {
        self.marked(Marks::GUESS)
    }

    fn marked(self, mark: Marks) -> Value {
        Value { marks: self.marks.and(mark), ..self }
    }

    /// Whether a choice that could not be followed has a part in it.
    #[must_use]
    pub fn is_guess(&self) -> bool {
        self.marks.has(Marks::GUESS)
    }

    /// Whether such a comparison has a part in it.
    #[must_use]
    pub fn is_at_edge(&self) -> bool {
        self.marks.has(Marks::EDGE)
    }

    /// Whether data have a part in it that each lane has its own of.
    #[must_use]
    pub fn is_by_data(&self) -> bool {
        self.marks.has(Marks::DATA)
    }

    /// The same in `some` of all environments.
    #[must_use]
    pub fn in_environments(&self, some: Environments) -> Value {
        if self.rows == 1 || some.len() == self.rows {
            return self.clone();
        }
        let bits: Vec<u64> = some.iter().flat_map(|environment| self.row(*environment)).copied().collect();
        Value { rows: some.len(), bits: bits.into(), ..*self }
    }

    /// How far it may vary within a block.
    #[must_use]
    #[inline]
    pub fn span(&self) -> Span {
        self.span
    }

    /// Whether environments may differ.
    #[must_use]
    #[inline]
    pub fn varies(&self) -> bool {
        self.rows > 1
    }

    /// The one value that it is, if it is but one.
    #[must_use]
    #[inline]
    pub fn as_constant(&self) -> Option<u64> {
        (self.rows == 1 && self.span == Span::Block).then(|| self.bits[0])
    }

    /// Numbers that are kept.
    #[must_use]
    #[inline]
    pub fn size(&self) -> usize {
        self.bits.len()
    }

    /// The row of the environment at a place of the list.
    #[must_use]
    pub fn row(&self, environment: usize) -> &[u64] {
        if self.rows == 1 {
            return &self.bits;
        }
        let row = self.bits.len() / self.rows;
        &self.bits[environment * row..][..row]
    }

    /// The value of a thread.
    #[must_use]
    #[inline]
    pub fn at(&self, environment: usize, thread: usize) -> u64 {
        let row = self.row(environment);
        match self.span {
            Span::Block => row[0],
            Span::Warp => row[thread / LANES],
            Span::Thread => row[thread],
        }
    }

    /// The values of a warp: of all its lanes, or one for all of them.
    #[must_use]
    #[inline]
    pub fn of_warp(&self, environment: usize, warp: usize) -> &[u64] {
        let row = self.row(environment);
        match self.span {
            Span::Block => row,
            Span::Warp => &row[warp..=warp],
            Span::Thread => &row[warp * LANES..((warp + 1) * LANES).min(row.len())],
        }
    }

    /// Rows that are kept.
    #[must_use]
    #[inline]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// `f` of every value.
    #[must_use]
    pub fn map(&self, f: impl Fn(u64) -> u64) -> Value {
        Value { bits: self.bits.map(f), ..*self }
    }

    /// `f` of both, value by value.
    #[must_use]
    pub fn zip(&self, other: &Value, f: impl Fn(u64, u64) -> u64) -> Value {
        let span = self.span.max(other.span);
        let rows = self.rows.max(other.rows);
        let marks = self.marks.and(other.marks);
        // Mostly they are alike, or one is a constant: then nothing is done row by row.
        if let Some(b) = other.as_constant() {
            return Value { rows, marks, span, bits: self.bits.map(|a| f(a, b)) };
        }
        if let Some(a) = self.as_constant() {
            return Value { rows, marks, span, bits: other.bits.map(|b| f(a, b)) };
        }
        if (self.rows, self.span) == (other.rows, other.span) {
            let both = self.bits.iter().zip(other.bits.iter());
            return Value { rows, marks, span, bits: both.map(|(a, b)| f(*a, *b)).collect::<Vec<u64>>().into() };
        }
        let mut bits = Vec::with_capacity(rows * self.row(0).len().max(other.row(0).len()));
        for environment in 0..rows {
            let (a, b) = (self.row(environment), other.row(environment));
            match (self.span, other.span) {
                (one, two) if one == two => bits.extend(a.iter().zip(b).map(|(a, b)| f(*a, *b))),
                (Span::Block, _) => bits.extend(b.iter().map(|b| f(a[0], *b))),
                (_, Span::Block) => bits.extend(a.iter().map(|a| f(*a, b[0]))),
                (Span::Warp, _) => {
                    let chunks = a.iter().zip(b.chunks(LANES));
                    bits.extend(chunks.flat_map(|(a, b)| b.iter().map(|b| f(*a, *b))));
                }
                (_, _) => {
                    let chunks = a.chunks(LANES).zip(b);
                    bits.extend(chunks.flat_map(|(a, b)| a.iter().map(|a| f(*a, *b))));
                }
            }
        }
        Value { rows, marks, span, bits: bits.into() }
    }

    /// `f` of all three, value by value.
    #[must_use]
    pub fn zip3(&self, second: &Value, third: &Value, extent: Extent, f: impl Fn(u64, u64, u64) -> u64) -> Value {
        let span = self.span.max(second.span).max(third.span);
        let count = self.rows.max(second.rows).max(third.rows);
        let marks = self.marks.and(second.marks).and(third.marks);
        if [self, second, third].iter().all(|value| (value.rows, value.span) == (count, span)) {
            let all = self.bits.iter().zip(second.bits.iter()).zip(third.bits.iter());
            let bits: Vec<u64> = all.map(|((a, b), c)| f(*a, *b, *c)).collect();
            return Value { rows: count, marks, span, bits: bits.into() };
        }
        let row = extent.row(span);
        let mut bits = Vec::with_capacity(count * row);
        for environment in 0..count {
            let rows = [self, second, third].map(|value| value.row(environment));
            if rows.iter().all(|values| values.len() == row) {
                let both = rows[0].iter().zip(rows[1]).zip(rows[2]);
                bits.extend(both.map(|((a, b), c)| f(*a, *b, *c)));
                continue;
            }
            // Part by part, with what a part shares written out.
            for start in (0..row).step_by(LANES) {
                let length = (row - start).min(LANES);
                let part = |value: &Value, row: &[u64]| -> [u64; LANES] {
                    match (value.span, span) {
                        (Span::Block, _) => [row[0]; LANES],
                        (Span::Warp, Span::Thread) => [row[start / LANES]; LANES],
                        _ => {
                            let mut part = [0; LANES];
                            part[..length].copy_from_slice(&row[start..start + length]);
                            part
                        }
                    }
                };
                let [a, b, c] = [part(self, rows[0]), part(second, rows[1]), part(third, rows[2])];
                bits.extend((0..length).map(|at| f(a[at], b[at], c[at])));
            }
        }
        Value { rows: count, marks, span, bits: bits.into() }
    }

    /// `yes` where this is true, else `no`.
    #[must_use]
    pub fn choose(&self, yes: &Value, no: &Value, extent: Extent) -> Value {
        match self.as_constant() {
            Some(0) => no.clone(),
            Some(_) => yes.clone(),
            None if yes == no => yes.clone(),
            None => self.zip3(yes, no, extent, |condition, yes, no| if condition != 0 { yes } else { no }),
        }
    }

    /// For what lanes tell each other: `f` of the values of a warp (of all its lanes, or one for all), the lane's own of
    /// `other`, and the lane.
    #[must_use]
    pub fn exchange(&self, other: &Value, extent: Extent, f: impl Fn(&[u64], u64, usize) -> u64) -> Value {
        let rows = self.rows.max(other.rows);
        let mut bits = Vec::with_capacity(rows * extent.threads);
        for environment in 0..rows {
            for warp in 0..extent.warps() {
                let (values, others) = (self.of_warp(environment, warp), other.of_warp(environment, warp));
                let lanes = 0..(extent.threads - warp * LANES).min(LANES);
                bits.extend(lanes.map(|lane| f(values, others[lane.min(others.len() - 1)], lane)));
            }
        }
        Value { rows, marks: self.marks.and(other.marks), span: Span::Thread, bits: bits.into() }
    }

    /// What each lane of a warp reads of the lane that `from` tells, of values that differ from lane to lane; the last of an
    /// incomplete warp in place of one that is not there.
    #[must_use]
    pub fn gathered(&self, extent: Extent, from: &[usize; LANES]) -> Value {
        let mut bits = Vec::with_capacity(self.bits.len());
        for environment in 0..self.rows {
            for values in self.row(environment).chunks(LANES) {
                match <&[u64; LANES]>::try_from(values) {
                    Ok(values) => bits.extend(from.iter().map(|from| values[*from & (LANES - 1)])),
                    Err(_) => {
                        bits.extend(from.iter().take(values.len()).map(|from| values[(*from).min(values.len() - 1)]))
                    }
                }
            }
        }
        debug_assert!(self.span == Span::Thread && bits.len() == self.rows * extent.threads);
        Value { bits: bits.into(), ..*self }
    }

    /// `f` of the values of each warp (of all its lanes, or one for all) and the number of its lanes.
    #[must_use]
    pub fn by_warp(&self, extent: Extent, f: impl Fn(&[u64], usize) -> u64) -> Value {
        let mut bits = Vec::with_capacity(self.rows * extent.warps());
        for environment in 0..self.rows {
            for warp in 0..extent.warps() {
                let lanes = (extent.threads - warp * LANES).min(LANES);
                bits.push(f(self.of_warp(environment, warp), lanes));
            }
        }
        Value { rows: self.rows, marks: Marks(self.marks.0 & Marks::GUESS.0), span: Span::Warp, bits: bits.into() }
    }

    /// The same value with no more kept than varies.
    #[must_use]
    pub fn condensed(self, extent: Extent) -> Value {
        let span = if self.span == Span::Block {
            return self;
        } else {
            let rows = || (0..self.rows).map(|environment| self.row(environment));
            if rows().all(are_equal) {
                Span::Block
            } else if self.span == Span::Thread && rows().all(|row| row.chunks(LANES).all(are_equal)) {
                Span::Warp
            } else {
                return self;
            }
        };
        let step = match (self.span, span) {
            (Span::Thread, Span::Warp) => LANES,
            _ => extent.row(self.span),
        };
        let rows = (0..self.rows).flat_map(|environment| self.row(environment).iter().step_by(step).copied());
        Value { span, bits: rows.collect::<Vec<u64>>().into(), ..self }
    }
}

/// Whether all numbers are one. Those of a warp are looked at together: the compiler makes a few instructions of it.
fn are_equal(all: &[u64]) -> bool {
    let Some(first) = all.first() else { return true };
    all.chunks(LANES).all(|part| part.iter().fold(0, |differs, bits| differs | (bits ^ first)) == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXTENT: Extent = Extent { threads: 70, environments: ALL };

    #[test]
    fn values_of_every_span_meet_thread_by_thread() {
        let threads = Value::of_threads(EXTENT, |thread| thread as u64);
        let warps = Value::of_warps(EXTENT, |warp| 1000 * warp as u64);
        let block = Value::sampled(EXTENT, Span::Block, |environment, _| 100_000 * environment as u64);
        let all = [threads, warps, block];
        for (a, b, c) in [(0, 1, 2), (1, 0, 2), (2, 0, 1), (2, 1, 0), (1, 2, 0), (0, 2, 1)] {
            let sum = all[a].zip(&all[b], |a, b| a + b).zip(&all[c], |a, b| a + b);
            let same = all[a].zip3(&all[b], &all[c], EXTENT, |a, b, c| a + b + c);
            assert_eq!(sum, same);
            assert_eq!((sum.at(3, 69), sum.at(0, 31), sum.at(23, 32)), (302_069, 31, 2_301_032));
        }
    }

    #[test]
    fn what_does_not_vary_is_kept_once() {
        let threads = Value::of_threads(EXTENT, |thread| thread as u64);
        let warp = threads.map(|thread| thread / 32).condensed(EXTENT);
        assert_eq!((warp.span(), warp.size(), warp.at(0, 69)), (Span::Warp, 3, 2));
        let block = threads.map(|_| 7).condensed(EXTENT);
        assert_eq!(block.as_constant(), Some(7));
        assert_eq!(threads.clone().condensed(EXTENT), threads);
    }
}
