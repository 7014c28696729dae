//! What the code itself says of the block that it runs in, where nothing else does: by which number rows are counted, by which
//! step a loop goes on that starts at the thread's place, and whether anything but the place in the whole block matters.

use super::Shape;
use crate::parse::ptx::{Code, Cond, Instruction, Op, Operand, Reg, Special};

/// What a register holds, as far as it is told by its only definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    /// Something else.
    Other,
    /// A constant.
    Number(u64),
    /// The thread's place along an axis.
    Tid(u8),
    /// The block's size along an axis.
    Ntid(u8),
    /// `tid.z * ntid.y + tid.y`
    Plane,
    /// A place in y, times a constant.
    Rows(u64),
    /// `tid.y * ntid.x`, or that of the plane.
    Lines,
    /// The place in the block, of all axes.
    Flat,
    /// The place in a block whose rows are so long.
    InRows(u64),
    /// A sum of places along the axes, which only says whether all are 0.
    Sum,
    /// A place in y or z at first, and then another: a loop counts it.
    Counted,
}

/// What the code says of its block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hints {
    /// Threads in x: rows are counted by so many, or the lanes of a warp, who are one row then, work together.
    pub x: Option<u32>,
    /// The least step of a loop that starts at the thread's place in the block, or in x.
    pub step: Option<u32>,
    /// The same in y.
    pub down: Option<u32>,
    /// The places in y and z matter only for the place in the whole block: who writes that has blocks of one row in mind.
    pub is_flat: bool,
}

/// Threads that a block has at least: a loop in shorter steps counts the lanes of a part of a warp, or is unrolled.
const LEAST: u32 = 32;

/// Rounds over the instructions: a place is made of no more.
const ROUNDS: usize = 6;

impl Hints {
    /// Reads them off the code of a function.
    #[must_use]
    pub fn of(code: &Code<'_>) -> Hints {
        let held = held(code);
        let mut hints = Hints { is_flat: true, ..Hints::default() };
        let mut rows: Vec<u64> = Vec::new();
        for one in &code.instructions {
            let sources = code.sources(one);
            let makes = made(&held, one.op, sources);
            let uses = sources.iter().map(|operand| of(&held, operand)).any(is_below);
            // Whether it is the first thread, or one of another number.
            let tests = one.op == Op::Setp && matches!(one.cond, Cond::Eq | Cond::Ne);
            let asks = sources
                .iter()
                .all(|operand| matches!(of(&held, operand), Held::Sum | Held::Lines | Held::Number(_) | Held::Other));
            if uses && makes == Held::Other && !(tests && asks) {
                hints.is_flat = false;
            }
            if let Held::InRows(length) = makes {
                rows.push(length);
                hints.is_flat = false;
            }
        }
        // A shorter row may be that of a tile in memory as well. One of a warp or more parts no warp, however long it is.
        let counts = rows.contains(&32) && rows.iter().all(|length| *length >= 32);
        hints.x = (counts || code.instructions.iter().any(|one| is_of_warp(code, &held, one))).then_some(32);
        hints.step = step(code, &held, |held| matches!(held, Held::Tid(0) | Held::Flat | Held::InRows(_)));
        if !hints.is_flat {
            hints.down = step(code, &held, |held| held == Held::Tid(1));
        }
        hints
    }

    /// The blocks to look at in place of `all`, and whether that is all there is to ask.
    #[must_use]
    pub fn refine(self, all: &[Shape]) -> Option<Vec<Shape>> {
        let first = *all.first()?;
        let threads = first.x * first.y * first.z;
        let is_row = all.len() == 1 && first.y * first.z == 1;
        let line = |x: u32| vec![Shape { x, y: 1, z: 1, ..first }];
        if is_row || self.is_flat {
            let step = self.step.filter(|step| (LEAST..threads).contains(step));
            return match step {
                Some(step) => Some(line(step)),
                None => (!is_row).then(|| line(threads)),
            };
        }
        let x = self.x.or(self.step).filter(|x| threads.is_multiple_of(*x) && *x <= threads)?;
        let is_usual = |y: &u32| x.checked_mul(*y).is_some_and(|all| (LEAST..=threads).contains(&all));
        let y = self.down.filter(is_usual).unwrap_or(threads / x);
        Some(vec![Shape { x, y, z: 1, ..first }])
    }
}

/// Whether it is a place in y or z, or made of one.
fn is_below(held: Held) -> bool {
    matches!(held, Held::Tid(1 | 2) | Held::Plane | Held::Rows(_) | Held::Lines | Held::Sum | Held::Counted)
}

/// Whether all 32 lanes of a warp take part: with tensor cores, and in an exchange between the halves of the warp.
fn is_of_warp(code: &Code<'_>, held: &[Held], one: &Instruction) -> bool {
    let by = code.sources(one).get(1).map_or(Held::Other, |operand| of(held, operand));
    one.op.is_tensor() || (one.op == Op::Shfl && !one.mods.is_index() && by == Held::Number(16))
}

/// For each register what it holds: that of several definitions is only known to have been a place.
fn held(code: &Code<'_>) -> Vec<Held> {
    let mut count = vec![0_u8; code.registers as usize];
    for one in &code.instructions {
        for operand in code.destinations(one) {
            if let Operand::Register(Reg(number)) = operand {
                count[*number as usize] = count[*number as usize].saturating_add(1);
            }
        }
    }
    let mut held = vec![Held::Other; code.registers as usize];
    for _ in 0..ROUNDS {
        let mut changed = false;
        for one in &code.instructions {
            let [Operand::Register(Reg(to))] = *code.destinations(one) else { continue };
            let mut makes = made(&held, one.op, code.sources(one));
            if count[to as usize] != 1 || one.guard.is_some() {
                if !is_below(makes) {
                    continue;
                }
                makes = Held::Counted;
            }
            changed |= std::mem::replace(&mut held[to as usize], makes) != makes;
        }
        if !changed {
            break;
        }
    }
    held
}

fn of(held: &[Held], operand: &Operand) -> Held {
    match operand {
        Operand::Register(Reg(number)) => held[*number as usize],
        Operand::Constant(value) => Held::Number(*value),
        Operand::Special(Special::Tid(axis)) => Held::Tid(*axis),
        Operand::Special(Special::Ntid(axis)) => Held::Ntid(*axis),
        _ => Held::Other,
    }
}

/// What an instruction makes of what its sources hold.
fn made(held: &[Held], op: Op, sources: &[Operand]) -> Held {
    use Held::{Flat, InRows, Lines, Ntid, Number, Other, Plane, Rows, Sum, Tid};
    let of = |at: usize| sources.get(at).map_or(Other, |operand| of(held, operand));
    let constant = |at: usize| match of(at) {
        Number(value) => Some(value),
        _ => None,
    };
    let product = |a: Held, b: Held| match (a, b) {
        (Tid(1) | Plane, Ntid(0)) | (Ntid(0), Tid(1) | Plane) => Lines,
        _ => Other,
    };
    let scaled = |a: Held, by: Option<u64>| match (a, by) {
        (Tid(1), Some(by)) if by.is_power_of_two() && (8..=1024).contains(&by) => Rows(by),
        _ => Other,
    };
    let sum = |a: Held, b: Held| match (a, b) {
        (Lines, Tid(0)) | (Tid(0), Lines) => Flat,
        (Rows(by), Tid(0)) | (Tid(0), Rows(by)) => InRows(by),
        (Tid(a), Tid(b)) if a != b => Sum,
        (Sum, Tid(_)) | (Tid(_), Sum) => Sum,
        _ => Other,
    };
    match op {
        Op::Mov | Op::Cvt => of(0),
        Op::Mul => match (scaled(of(0), constant(1)), product(of(0), of(1))) {
            (Other, product) => product,
            (rows, _) => rows,
        },
        Op::Shl => scaled(of(0), constant(1).and_then(|by| 1_u64.checked_shl(u32::try_from(by).ok()?))),
        Op::Add | Op::Or => sum(of(0), of(1)),
        Op::Mad => match (of(0), of(1), of(2)) {
            (Tid(2), Ntid(1), Tid(1)) | (Ntid(1), Tid(2), Tid(1)) => Plane,
            (a, b, c) => match (product(a, b), scaled(a, constant(1))) {
                (Lines, _) => sum(Lines, c),
                (_, Rows(by)) => sum(Rows(by), c),
                _ => Other,
            },
        },
        _ => Other,
    }
}

/// The least step of the registers that hold the thread's place first and are then counted up by a constant.
fn step(code: &Code<'_>, held: &[Held], is_place: impl Fn(Held) -> bool) -> Option<u32> {
    let mut starts = vec![false; code.registers as usize];
    let mut definitions = vec![0_u8; code.registers as usize];
    for one in &code.instructions {
        let [Operand::Register(Reg(to))] = *code.destinations(one) else { continue };
        definitions[to as usize] = definitions[to as usize].saturating_add(1);
        let from = code.sources(one).first().map_or(Held::Other, |operand| of(held, operand));
        starts[to as usize] |= matches!(one.op, Op::Mov | Op::Cvt) && is_place(from);
    }
    let is_counted = |number: u32| starts[number as usize] && definitions[number as usize] > 1;
    let mut least: Option<u64> = None;
    let mut sums = hashbrown::HashMap::new();
    for one in &code.instructions {
        let ([Operand::Register(Reg(to))], sources) = (code.destinations(one), code.sources(one)) else { continue };
        match (one.op, sources) {
            (Op::Add, [Operand::Register(Reg(from)), Operand::Constant(by)]) if is_counted(*from) => {
                if from == to {
                    least = Some(least.map_or(*by, |least| least.min(*by)));
                } else {
                    sums.insert(*to, (*from, *by));
                }
            }
            // A peeled turn.
            (Op::Add, [Operand::Register(Reg(from)), Operand::Constant(by)])
                if is_counted(*to) && is_place(held[*from as usize]) =>
            {
                least = Some(least.map_or(*by, |least| least.min(*by)));
            }
            (Op::Mov, [Operand::Register(Reg(from))]) => {
                if let Some((of, by)) = sums.get(from)
                    && of == to
                {
                    least = Some(least.map_or(*by, |least| least.min(*by)));
                }
            }
            _ => {}
        }
    }
    let step = u32::try_from(least?).ok()?;
    (step >= 2 && (step.is_power_of_two() || step.is_multiple_of(32)) && step <= 1024).then_some(step)
}

#[cfg(test)]
mod tests {
    use super::super::testing::with_code;
    use super::*;

    const PLACE: &str = "mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %ntid.x;";

    fn hints(text: &str) -> Hints {
        with_code(&format!("{PLACE} {text} ret;"), Hints::of)
    }

    fn tile(x: u32, y: u32) -> Shape {
        Shape { x, y, z: 1, is_entry: true }
    }

    #[test]
    fn the_number_that_rows_are_counted_by_is_their_length() {
        assert_eq!(hints("mad.lo.s32 %r4, %r2, 32, %r1;").x, Some(32));
        assert_eq!(hints("shl.b32 %r4, %r2, 5; add.s32 %r5, %r4, %r1;").x, Some(32));
        assert_eq!(hints("shl.b32 %r4, %r2, 5; or.b32 %r5, %r1, %r4;").x, Some(32));
        assert_eq!(hints("shl.b32 %r4, %r2, 4; add.s32 %r5, %r4, %r1;").x, None, "a row of a tile in memory");
        assert_eq!(hints("mad.lo.s32 %r4, %r2, 33, %r1;").x, None, "a row with a gap behind it");
        let two = |one: u32| hints(&format!("mad.lo.s32 %r4, %r2, 32, %r1; mad.lo.s32 %r5, %r2, {one}, %r1;"));
        assert_eq!((two(16).x, two(64).x), (None, Some(32)));
        assert_eq!(
            hints("and.b32 %r5, %r2, 3; mov.u32 %r8, 16; shfl.sync.bfly.b32 %r6, %r7, %r8, 31, -1;").x,
            Some(32)
        );
        assert_eq!(hints("and.b32 %r5, %r2, 3; shfl.sync.bfly.b32 %r6, %r7, 8, 31, -1;").x, None);
        let all = [tile(16, 16), tile(32, 8)];
        assert_eq!(hints("mad.lo.s32 %r4, %r2, 32, %r1;").refine(&all), Some(vec![tile(32, 8)]));
    }

    #[test]
    fn where_only_the_place_in_the_block_is_used_its_shape_does_not_matter() {
        let flat = hints("mad.lo.s32 %r4, %r2, %r3, %r1; and.b32 %r5, %r4, 31;");
        assert!(flat.is_flat);
        assert_eq!(flat.refine(&[tile(16, 16), tile(32, 8)]), Some(vec![tile(256, 1)]));
        assert!(hints("mad.lo.s32 %r4, %r2, %r3, %r1; and.b32 %r5, %r1, 31;").is_flat);
        assert!(!hints("mad.lo.s32 %r4, %r2, %r3, %r1; and.b32 %r5, %r2, 31;").is_flat);
        assert!(hints("mad.lo.s32 %r4, %r2, %r3, %r1; or.b32 %r5, %r1, %r2; setp.eq.u32 %p1, %r5, 0;").is_flat);
    }

    #[test]
    fn a_loop_that_starts_at_the_place_steps_by_the_block() {
        let strided = |step: u32| {
            hints(&format!("mov.u32 %r4, %r1; L: add.s32 %r4, %r4, {step}; setp.lt.s32 %p1, %r4, %r9; @%p1 bra L;"))
        };
        assert_eq!(strided(64).step, Some(64));
        assert_eq!(strided(64).refine(&[tile(256, 1)]), Some(vec![tile(64, 1)]));
        assert_eq!(strided(512).refine(&[tile(256, 1)]), None, "several at a time");
        assert_eq!(strided(1).step, None, "every thread to the end");
        for short in [4, 8, 16] {
            assert_eq!(strided(short).refine(&[tile(256, 1)]), None, "{short} lanes of a warp share the work");
        }
        let unrolled = "mov.u32 %r4, %r1; @%p2 bra L; add.s32 %r4, %r1, 32;
            L: add.s32 %r5, %r4, 64; mov.u32 %r4, %r5; setp.lt.s32 %p1, %r4, %r9; @%p1 bra L;";
        assert_eq!(hints(unrolled).step, Some(32));
    }

    #[test]
    fn loops_in_both_directions_step_by_the_block_in_each() {
        let strided = |step: &str| {
            hints(&format!(
                "mov.u32 %r4, %tid.x; mov.u32 %r5, %r2; L: add.s32 %r4, %r4, 16; {step}
                 setp.lt.s32 %p1, %r4, %r9; setp.lt.s32 %p2, %r5, %r8; @%p1 bra L; @%p2 bra L;"
            ))
        };
        let all = [tile(16, 16), tile(32, 8)];
        let both = strided("add.s32 %r5, %r5, 16;");
        assert_eq!((both.is_flat, both.step, both.down), (false, Some(16), Some(16)));
        assert_eq!(both.refine(&all), Some(vec![tile(16, 16)]));
        assert_eq!(strided("add.s32 %r5, %r5, 4;").refine(&all), Some(vec![tile(16, 4)]));
        assert_eq!(strided("add.s32 %r5, %r5, 1;").refine(&all), Some(vec![tile(16, 16)]), "no step of a block");
        for step in ["64", "268435458", "4294967295"] {
            let found = strided(&format!("add.s32 %r5, %r5, {step};")).refine(&all);
            assert_eq!(found, Some(vec![tile(16, 16)]), "{step} are more than there are");
        }
    }
}
