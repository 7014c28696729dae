//! What instructions weigh, in units of one machine instruction: one table for compiled code and for sources.

use super::{Code, Instruction, Op, Operand, Space, Type};

/// Turns that are assumed of a loop.
pub const TRIPS: f64 = 8.0;

/// What a call weighs whose callee is not seen, and what a slow path adds.
pub const CALL: f64 = 20.0;

/// An integer's remainder by a constant: the quotient, which is multiplied and subtracted.
const REMAINDER: f64 = 8.0;

/// Machine instructions that one instruction becomes, without those of a function that it calls.
#[must_use]
pub fn weight(code: &Code<'_>, one: &Instruction) -> f64 {
    let slow = if is_slow(code, one) { CALL } else { 0.0 };
    slow + match one.op {
        Op::Mov => match code.sources(one).first() {
            Some(Operand::Constant(_)) => 0.5,
            _ => 0.0,
        },
        Op::Cvta | Op::Ret | Op::Exit => 0.0,
        Op::Bra if one.guard.is_none() => 0.0,
        Op::Ld if one.space == Space::Param => 0.0,
        Op::Sin | Op::Cos | Op::Ex2 | Op::Lg2 | Op::Tanh | Op::Rsqrt | Op::Rcp | Op::Sqrt => 2.0,
        Op::Div => 6.0,
        Op::Rem if is_by_constant(code, one) => REMAINDER,
        _ if one.kind == Type::F64 => 2.0,
        _ => 1.0,
    }
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
