//! The instructions of one function with their operands, for whoever follows values through it.

mod modifiers;
mod opcodes;
mod operands;
mod reader;

pub use self::modifiers::{Cond, Logic, Mods, Space, Type};
pub(super) use self::reader::{Head, Reader};
use super::body::Body;
use super::opcode::Op;
use super::operand::{Operand, Reg};
use crate::model::{Flow, Way};

/// What guards an instruction: a predicate, and whether it has to be false.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guard {
    /// The predicate.
    pub register: Reg,
    /// `@!`
    pub negated: bool,
}

/// One instruction.
#[derive(Debug, Clone, Copy)]
pub struct Instruction {
    /// What it does.
    pub op: Op,
    /// The type of the operation: the first that the opcode names, which of a conversion is what it converts to.
    pub kind: Type,
    /// The type of what is converted or compared, where the opcode names a second.
    pub from: Type,
    /// Its comparison.
    pub cond: Cond,
    /// What joins the comparison with a predicate.
    pub logic: Logic,
    /// The memory that it accesses.
    pub space: Space,
    /// Modifiers.
    pub mods: Mods,
    /// Its predicate.
    pub guard: Option<Guard>,
    /// Its byte in the module's text.
    pub at: u32,
    /// The statement that it is.
    pub statement: u32,
    first: u32,
    count: u16,
    destinations: u16,
}

/// All instructions of a function.
#[derive(Debug)]
pub struct Code<'t> {
    /// In order.
    pub instructions: Vec<Instruction>,
    /// Names of variables, functions and labels that operands mention.
    pub names: Vec<&'t [u8]>,
    /// How many registers there are; their numbers are below.
    pub registers: u32,
    /// Where control goes.
    pub flow: &'t Flow,
    operands: Vec<Operand>,
}

impl<'t> Code<'t> {
    /// Reads the function whose `{` is at `open` again, in a text that was read without a fault. It has these `parameters`
    /// (the list with its brackets) and jumps. What was in `body` makes place for its statements.
    #[must_use]
    pub fn read(text: &'t [u8], open: usize, parameters: &'t [u8], flow: &'t Flow, body: &mut Body) -> Code<'t> {
        let mut reader = Reader::new(text, parameters, flow);
        body.read_whole(text, open, &mut reader);
        reader.code.registers = reader.registers.count;
        reader.code
    }

    /// What an instruction writes, and where it branches to.
    #[must_use]
    pub fn destinations(&self, instruction: &Instruction) -> &[Operand] {
        &self.operands[instruction.first as usize..][..usize::from(instruction.destinations)]
    }

    /// What it reads.
    #[must_use]
    pub fn sources(&self, instruction: &Instruction) -> &[Operand] {
        let all = &self.operands[instruction.first as usize..][..usize::from(instruction.count)];
        &all[usize::from(instruction.destinations)..]
    }

    /// The names of the functions that are called.
    pub fn callees(&self) -> impl Iterator<Item = &'t [u8]> {
        let calls = self.instructions.iter().filter(|one| one.op == Op::Call);
        calls.filter_map(|one| match self.sources(one).first() {
            Some(Operand::Symbol(name, _)) => Some(self.names[*name as usize]),
            _ => None,
        })
    }

    /// The jumps back, each with where it leads and where it stands.
    pub fn back_jumps(&self) -> impl Iterator<Item = (u32, u32)> {
        self.flow.jumps.iter().filter_map(|jump| match jump.way {
            Way::To(to) if to <= jump.at => Some((to, jump.at)),
            _ => None,
        })
    }

    /// The instructions that a branch through a table leads to, in the order of the table.
    #[must_use]
    pub fn table(&self, instruction: u32) -> &'t [u32] {
        match self.flow.jump_at(instruction).map(|jump| jump.way) {
            Some(Way::Table(table)) => self.flow.table(table),
            _ => &[],
        }
    }
}
