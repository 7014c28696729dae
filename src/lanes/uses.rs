//! What registers are used as, where the instruction that writes them does not tell.

use crate::parse::ptx::{Code, Instruction, Op, Operand, Reg, Space, Type};

/// What a register is used as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// As an address, or to make one by adding to it.
    Pointer,
    /// By an operation on floating-point numbers.
    Float,
    /// In no way that tells it from a whole number.
    Other,
}

/// What the registers of a function are used as.
#[derive(Debug)]
pub struct Uses(Vec<Use>);

/// Times that uses are handed up: an address is mostly a sum of two or three.
const ROUNDS: usize = 3;

impl Uses {
    /// Looks at all that is done with the registers.
    #[must_use]
    pub fn of_code(code: &Code<'_>) -> Uses {
        let mut uses = Uses(vec![Use::Other; code.registers as usize]);
        for one in &code.instructions {
            let is_of_floats = is_of_floats(one);
            for operand in code.sources(one).iter().chain(code.destinations(one)) {
                match *operand {
                    Operand::Memory(register, _) if one.space != Space::Param => uses.set(register, Use::Pointer),
                    Operand::Register(register) if one.op == Op::Cvta && one.mods.is_to() => {
                        uses.set(register, Use::Pointer);
                    }
                    Operand::Register(register) | Operand::Minus(register) if is_of_floats => {
                        uses.set(register, Use::Float);
                    }
                    _ => {}
                }
            }
        }
        for _ in 0..ROUNDS {
            code.instructions.iter().for_each(|one| uses.hand_up(code, one));
        }
        uses
    }

    /// What a register is used as.
    #[must_use]
    pub fn of(&self, register: Reg) -> Use {
        self.0.get(register.0 as usize).copied().unwrap_or(Use::Other)
    }

    fn set(&mut self, register: Reg, one: Use) {
        if let Some(known) = self.0.get_mut(register.0 as usize).filter(|known| **known != Use::Pointer) {
            *known = one;
        }
    }

    /// What is made of a register tells what it is.
    fn hand_up(&mut self, code: &Code<'_>, one: &Instruction) {
        let is_sum = matches!(one.op, Op::Add | Op::Mov | Op::Cvta) && one.kind.width() == 64;
        let made =
            |this: &Uses, one_use| registers(code.destinations(one)).any(|register| this.of(register) == one_use);
        if is_sum && made(self, Use::Pointer) {
            registers(code.sources(one)).take(1).for_each(|register| self.set(register, Use::Pointer));
        } else if matches!(one.op, Op::Mov | Op::Selp) && made(self, Use::Float) {
            registers(code.sources(one)).for_each(|register| self.set(register, Use::Float));
        }
    }
}

fn registers(operands: &[Operand]) -> impl Iterator<Item = Reg> {
    operands.iter().filter_map(|operand| if let Operand::Register(register) = operand { Some(*register) } else { None })
}

/// Whether the operands are floating-point numbers of 32 or 64 bits; of a conversion, what it converts.
fn is_of_floats(one: &Instruction) -> bool {
    let kind = if one.op == Op::Cvt { one.from } else { one.kind };
    matches!(kind, Type::F32 | Type::F64)
}

#[cfg(test)]
mod tests {
    use super::super::testing::with_cfg;
    use super::*;

    /// What the first register that is read from a parameter is used as.
    fn used(rest: &str) -> Use {
        with_cfg(&format!("ld.param.b32 %r1, [n]; ld.param.b64 %rd1, [p]; {rest} ret;"), |code, _| {
            let at = usize::from(rest.contains("%rd1"));
            let Operand::Register(register) = code.destinations(&code.instructions[at])[0] else {
                panic!("a register")
            };
            Uses::of_code(code).of(register)
        })
    }

    #[test]
    fn bits_are_what_is_done_with_them() {
        assert_eq!(used("setp.gt.f32 %p1, %r1, 0f00000000;"), Use::Float);
        assert_eq!(used("fma.rn.f32 %r2, %r3, %r1, %r3;"), Use::Float);
        assert_eq!(used("mov.b32 %r2, %r1; selp.b32 %r4, %r2, %r3, %p1; add.f32 %r5, %r4, %r4;"), Use::Float);
        assert_eq!(used("cvt.rzi.s32.f32 %r2, %r1;"), Use::Float);
        assert_eq!(used("cvt.rn.f32.s32 %r2, %r1;"), Use::Other);
        assert_eq!(used("setp.ge.s32 %p1, %r2, %r1;"), Use::Other);
        assert_eq!(used("cvta.to.global.u64 %rd2, %rd1; add.s64 %rd3, %rd2, 8;"), Use::Pointer);
        assert_eq!(used("add.s64 %rd2, %rd1, %rd3; ld.global.f32 %f1, [%rd2];"), Use::Pointer);
        assert_eq!(used("fma.rn.f64 %fd1, %rd1, %rd1, %rd1;"), Use::Float);
        assert_eq!(used("setp.lt.s64 %p1, %rd1, 0;"), Use::Other);
    }
}
