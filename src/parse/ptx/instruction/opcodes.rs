//! What opcodes say, kept for the next time that they are met.

use hashbrown::HashMap;

use super::super::lexer::{Cursor, is_in_opcode, is_in_word};
use super::super::opcode::Op;
use super::Instruction;
use super::modifiers::modified;

/// Opcodes with their modifiers, and what they say: a function has few, and each of them often.
pub(super) struct Opcodes<'t> {
    known: HashMap<&'t [u8], Opcode>,
    /// Those of at most 16 bytes, which are two numbers.
    short: Vec<(u64, u64, Opcode)>,
    said: Vec<Said>,
}

/// An opcode, by its place in the list.
#[derive(Clone, Copy)]
pub(in super::super) struct Opcode(u32);

/// What an opcode says.
pub(super) struct Said {
    /// An instruction with it, still without operands.
    pub(super) said: Instruction,
    /// Its first operand is what it writes.
    pub(super) writes: bool,
    /// It has no modifiers, and could be a label.
    pub(super) is_bare: bool,
}

/// Slots for short opcodes.
const OPCODES: usize = 256;

impl<'t> Opcodes<'t> {
    pub(super) fn new() -> Opcodes<'t> {
        Opcodes { known: HashMap::new(), short: vec![(0, 0, Opcode(0)); OPCODES], said: Vec::new() }
    }

    #[inline]
    pub(super) fn said(&self, opcode: Opcode) -> &Said {
        &self.said[opcode.0 as usize]
    }

    /// The opcode at the cursor, if it was met before; the cursor goes over it.
    #[inline]
    pub(super) fn known(&self, cursor: &mut Cursor<'t>) -> Option<Opcode> {
        let start = cursor.at;
        let opcode = cursor.opcode();
        if opcode.is_empty() || is_in_word(cursor.peek()) {
            return None;
        }
        match two(cursor.text, start, opcode.len()) {
            Some(key) => {
                let (low, high, known) = self.short[slot(key)];
                if [low, high] == key { Some(known) } else { self.known.get(opcode).copied() }
            }
            None => self.known.get(opcode).copied(),
        }
    }

    /// Adds the opcode at the cursor, which goes over it.
    pub(super) fn add(&mut self, cursor: &mut Cursor<'t>, op: Op) -> Opcode {
        let start = cursor.at;
        let found = cursor.opcode();
        let length = cursor.text[start..].iter().position(|byte| !is_in_opcode(*byte)).unwrap_or(found.len());
        let opcode = &cursor.text[start..start + length];
        let said = modified(op, opcode);
        let number = Opcode(u32::try_from(self.said.len()).unwrap_or(u32::MAX));
        self.said.push(Said { said, writes: said.has_destination(), is_bare: !opcode.contains(&b'.') });
        cursor.at = start + length;
        // An operand without a blank before it is no part of it.
        if length == found.len() {
            self.known.insert(opcode, number);
            if let Some(key) = two(cursor.text, start, length) {
                self.short[slot(key)] = (key[0], key[1], number);
            }
        }
        number
    }
}

fn slot([low, high]: [u64; 2]) -> usize {
    ((low ^ high.rotate_left(7)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as usize % OPCODES
}

/// The bytes of a word of at most 16 bytes as numbers, if the text goes on for so long.
#[inline]
fn two(text: &[u8], start: usize, length: usize) -> Option<[u64; 2]> {
    let bytes = text.get(start..)?.first_chunk::<16>().filter(|_| length <= 16)?;
    let all = u128::from_le_bytes(*bytes);
    let word = if length < 16 { all & ((1 << (8 * length)) - 1) } else { all };
    Some([word as u64, (word >> 64) as u64])
}
