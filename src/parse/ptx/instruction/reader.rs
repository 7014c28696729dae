//! Reads the instructions of one function, one after the other: guards, opcodes, registers and their scopes.

use hashbrown::HashMap;

use super::modifiers::Type;
use super::opcodes::{Opcode, Opcodes, Said};
use super::operands::Form;
use super::{Code, Guard, Instruction};
use crate::model::Flow;
use crate::parse::ptx::lexer::Cursor;
use crate::parse::ptx::opcode::Op;
use crate::parse::ptx::operand::{Reg, Registers};

/// Reads instructions one after the other.
pub(in super::super) struct Reader<'t> {
    pub(super) code: Code<'t>,
    pub(super) registers: Registers<'t>,
    names: HashMap<&'t [u8], u32>,
    pub(super) parameters: HashMap<&'t [u8], u32>,
    opcodes: Opcodes<'t>,
    /// The text of the module.
    pub(super) text: &'t [u8],
    /// Brackets and braces around the operand that is being read.
    pub(super) depth: u32,
}

/// What stands before the operands of an instruction.
pub(in super::super) struct Head {
    pub(in super::super) opcode: Opcode,
    pub(in super::super) guard: Option<Guard>,
    /// Its byte in the module's text.
    pub(in super::super) at: u32,
    /// The statement that it is.
    pub(in super::super) statement: u32,
}

impl<'t> Reader<'t> {
    pub(super) fn new(text: &'t [u8], parameters: &'t [u8], flow: &'t Flow) -> Reader<'t> {
        let count = flow.instructions as usize;
        let operands = Vec::with_capacity(count * 3);
        let instructions = Vec::with_capacity(count);
        Reader {
            code: Code { instructions, names: Vec::new(), registers: 0, flow, operands },
            registers: Registers::new(),
            names: HashMap::new(),
            parameters: parameter_names(parameters),
            opcodes: Opcodes::new(),
            text,
            depth: 0,
        }
    }

    pub(super) fn name(&mut self, name: &'t [u8]) -> u32 {
        let names = &mut self.code.names;
        *self.names.entry(name).or_insert_with(|| {
            names.push(name);
            u32::try_from(names.len() - 1).unwrap_or(u32::MAX)
        })
    }

    /// A scope of registers begins.
    pub(in super::super) fn open(&mut self) {
        self.registers.open();
    }

    /// It ends.
    pub(in super::super) fn close(&mut self) {
        self.registers.close();
    }

    /// `.reg .b32 %r<100>`
    pub(in super::super) fn declare(&mut self, declaration: &'t [u8]) {
        self.registers.declare(declaration);
    }

    /// The opcode at the cursor, if it was met before; the cursor goes over it. It may be a label of that name.
    #[inline]
    pub(in super::super) fn known_opcode(&self, cursor: &mut Cursor<'t>, guarded: bool) -> Option<Opcode> {
        let opcode = self.opcodes.known(cursor)?;
        if !guarded && self.opcodes.said(opcode).is_bare {
            let mut behind = *cursor;
            behind.skip_blank().ok()?;
            if behind.peek() == b':' {
                return None;
            }
        }
        Some(opcode)
    }

    /// The same for one that is new.
    pub(in super::super) fn new_opcode(&mut self, cursor: &mut Cursor<'t>, op: Op) -> Opcode {
        self.opcodes.add(cursor, op)
    }

    /// Reads an instruction, whose operands are at the cursor, which goes to its end.
    #[inline]
    pub(in super::super) fn instruction(&mut self, cursor: &mut Cursor<'t>, head: &Head) -> Op {
        let first = self.code.operands.len();
        let Said { said, writes, .. } = self.opcodes.said(head.opcode);
        let form = Form { op: said.op, writes: *writes, double: said.kind == Type::F64, space: said.space };
        let has_operands = !matches!(form.op, Op::Bra | Op::Call);
        let destinations = match has_operands.then(|| self.usual_operands(cursor.at, form)).flatten() {
            Some((end, destinations)) => {
                cursor.at = end;
                destinations
            }
            None => {
                self.code.operands.truncate(first);
                self.unusual_operands(cursor, form)
            }
        };
        let count = self.code.operands.len() - first;
        let count = u16::try_from(count).unwrap_or(u16::MAX);
        self.code.operands.truncate(first + usize::from(count));
        self.code.instructions.push(Instruction {
            guard: head.guard,
            at: head.at,
            statement: head.statement,
            first: u32::try_from(first).unwrap_or(u32::MAX),
            count,
            destinations: u16::try_from(destinations).unwrap_or(u16::MAX),
            ..self.opcodes.said(head.opcode).said
        });
        form.op
    }

    /// The guard at the cursor, if there is one, with the blanks behind it.
    #[inline]
    pub(in super::super) fn guard(&mut self, cursor: &mut Cursor<'t>) -> Option<Guard> {
        if !cursor.take(b'@') {
            return None;
        }
        cursor.skip_blank().ok()?;
        let negated = cursor.take(b'!');
        cursor.skip_blank().ok()?;
        let register = match self.register(cursor) {
            Some(register) => register,
            None => self.registers.of(cursor.word()),
        };
        cursor.skip_blank().ok()?;
        Some(Guard { register, negated })
    }

    /// The register at the cursor, which goes over it, unless that is read in slower ways.
    #[inline]
    pub(super) fn register(&self, cursor: &mut Cursor<'t>) -> Option<Reg> {
        let (register, length) = self.registers.at(self.text, cursor.at)?;
        cursor.at += length;
        Some(register)
    }
}

/// The names in a parameter list, in order: the last word of each declaration that is no number.
fn parameter_names(list: &[u8]) -> HashMap<&[u8], u32> {
    let mut names = HashMap::new();
    let inner = list.strip_prefix(b"(").and_then(|list| list.strip_suffix(b")")).unwrap_or(list);
    for (number, declaration) in (0..).zip(inner.split(|byte| *byte == b',')) {
        let mut cursor = Cursor::new(declaration, 0);
        let mut name: &[u8] = &[];
        while cursor.skip_blank().is_ok() && !cursor.is_at_end() {
            if cursor.take(b'.') {
                cursor.word();
                continue;
            }
            if cursor.take(b'[') {
                break;
            }
            let word = cursor.word();
            match word.first() {
                Some(byte) if !byte.is_ascii_digit() => name = word,
                Some(_) => {}
                None => cursor.at += 1,
            }
        }
        names.insert(name, number);
    }
    names
}
