//! What instructions weigh, in units of one machine instruction: one table for compiled code and for sources.

use super::{Code, Instruction, Op, Operand, Space, Type};

/// Turns that are assumed of a loop.
pub const TRIPS: f64 = 8.0;

/// What a call weighs whose callee is not seen, and what a slow path adds.
pub const CALL: f64 = 20.0;

/// A constant that is moved to a register; many an instruction takes it as it is.
const MOVED: f64 = 0.5;

/// An integer's remainder by a constant: the quotient, which is multiplied and subtracted.
const REMAINDER: f64 = 8.0;

/// A product of 64-bit integers, which the hardware makes of four of 32 bits.
const PRODUCT: f64 = 4.0;

/// Machine instructions that one instruction becomes, without those of a function that it calls.
#[must_use]
pub fn weight(code: &Code<'_>, one: &Instruction) -> f64 {
    let slow = if is_slow(code, one) { CALL } else { 0.0 };
    slow + match one.op {
        Op::Mov => match code.sources(one).first() {
            Some(Operand::Constant(_)) => MOVED,
            _ => 0.0,
        },
        Op::Cvta | Op::Ret | Op::Exit => 0.0,
        Op::Bra if one.guard.is_none() => 0.0,
        Op::Ld if one.space == Space::Param => 0.0,
        Op::Sin | Op::Cos | Op::Ex2 | Op::Lg2 | Op::Tanh | Op::Rsqrt | Op::Rcp | Op::Sqrt => 2.0,
        Op::Div => 6.0,
        Op::Rem if is_by_constant(code, one) => REMAINDER,
        Op::St => 1.0 + stored_constants(code, one),
        Op::Mul | Op::Mad if is_of_long(one) && !one.mods.is_wide() => PRODUCT,
        // Sums are addresses nearly always, which one instruction makes with the product before them.
        Op::And | Op::Or | Op::Xor | Op::Not | Op::Shl | Op::Shr if is_of_long(one) => 2.0,
        _ => 1.0,
    }
}

/// Whether it works on integers of 64 bits, which take two registers.
fn is_of_long(one: &Instruction) -> bool {
    one.kind.width() == 64 && !one.kind.is_float()
}

/// What constants cost that are stored: each but 0 has to be in a register, as if it were moved there.
fn stored_constants(code: &Code<'_>, one: &Instruction) -> f64 {
    let is_moved = |operand: &&Operand| matches!(operand, Operand::Constant(value) if *value != 0);
    MOVED * code.sources(one).iter().skip(1).filter(is_moved).count() as f64
}

/// Whether the instruction has a slow path: exact division and roots, and integer division by what only a run tells. By a
/// constant an integer is multiplied.
#[must_use]
pub fn is_slow(code: &Code<'_>, one: &Instruction) -> bool {
    match one.op {
        Op::Div | Op::Rem => !one.mods.is_approx() && !is_by_constant(code, one),
        Op::Sqrt | Op::Rcp => one.mods.is_rounded(),
        _ => false,
    }
}

/// Whether an integer is divided by a constant.
fn is_by_constant(code: &Code<'_>, one: &Instruction) -> bool {
    matches!(one.kind, Type::Signed(_) | Type::Unsigned(_))
        && matches!(code.sources(one).get(1), Some(Operand::Constant(_)))
}
