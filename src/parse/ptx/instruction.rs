//! The instructions of one function with their operands, for whoever follows values through it.

mod opcodes;

use hashbrown::HashMap;

use self::opcodes::{Opcode, Opcodes, Said};
use super::body::Body;
use super::lexer::Cursor;
use super::opcode::Op;
use super::operand::{self, Operand, Reg, Registers};
use super::words::Words;
use crate::model::{Flow, Way};

/// The type of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the names are those of the types")]
pub enum Type {
    #[default]
    None,
    Pred,
    Bits(u8),
    Unsigned(u8),
    Signed(u8),
    F32,
    F64,
    /// A floating-point type of 16 bits or fewer, or several in one register.
    Small,
}

impl Type {
    /// Bits of a value.
    #[must_use]
    pub fn width(self) -> u32 {
        match self {
            Type::Pred => 1,
            Type::Bits(bits) | Type::Unsigned(bits) | Type::Signed(bits) => u32::from(bits),
            Type::F64 => 64,
            Type::None | Type::F32 | Type::Small => 32,
        }
    }

    /// Whether comparisons and divisions take the sign into account.
    #[must_use]
    pub fn is_signed(self) -> bool {
        matches!(self, Type::Signed(_))
    }

    /// Whether values are floating-point numbers.
    #[must_use]
    pub fn is_float(self) -> bool {
        matches!(self, Type::F32 | Type::F64 | Type::Small)
    }
}

/// Comparisons of `setp` and `set`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the names are those of the comparisons")]
pub enum Cond {
    #[default]
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// Unsigned, whatever the type.
    Lo,
    Ls,
    Hi,
    Hs,
    /// True also where an operand is not a number.
    Equ,
    Neu,
    Ltu,
    Leu,
    Gtu,
    Geu,
    Num,
    Nan,
}

/// How `setp` joins its result with a predicate, and `redux` the numbers of lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the names are those of the operations")]
pub enum Logic {
    #[default]
    None,
    And,
    Or,
    Xor,
    Add,
    Min,
    Max,
}

/// The memory that an access goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the names are those of the spaces")]
pub enum Space {
    #[default]
    Generic,
    Param,
    Global,
    Shared,
    Local,
    Const,
}

/// Modifiers, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mods(u32);

/// What a word of an opcode says, behind the first.
#[derive(Debug, Clone, Copy)]
enum Modifier {
    Kind(Type),
    Cond(Cond),
    Logic(Logic),
    Space(Space),
    Mod(Bit),
}

macro_rules! modifiers {
    ($($word:literal = $modifier:expr,)* $($name:ident = [$($words:literal),*],)*) => {
        /// The modifiers that something here asks for.
        #[derive(Debug, Clone, Copy)]
        #[allow(non_camel_case_types, reason = "the names are those of the accessors")]
        enum Bit { $($name),* }

        impl Mods {
            $(
                #[doc = concat!("Whether it has the modifier", $(" `", $words, "`",)* ".")]
                #[must_use]
                pub fn $name(self) -> bool { self.0 & (1 << Bit::$name as u32) != 0 }
            )*
        }

        /// All words that say something.
        const MODIFIERS: &[(&str, Modifier)] =
            &[$(($word, $modifier),)* $($(($words, Modifier::Mod(Bit::$name)),)*)*];
    };
}

modifiers! {
    "pred" = Modifier::Kind(Type::Pred),
    "b8" = Modifier::Kind(Type::Bits(8)),
    "b16" = Modifier::Kind(Type::Bits(16)),
    "b32" = Modifier::Kind(Type::Bits(32)),
    "b64" = Modifier::Kind(Type::Bits(64)),
    "b128" = Modifier::Kind(Type::Bits(128)),
    "u8" = Modifier::Kind(Type::Unsigned(8)),
    "u16" = Modifier::Kind(Type::Unsigned(16)),
    "u32" = Modifier::Kind(Type::Unsigned(32)),
    "u64" = Modifier::Kind(Type::Unsigned(64)),
    "s8" = Modifier::Kind(Type::Signed(8)),
    "s16" = Modifier::Kind(Type::Signed(16)),
    "s32" = Modifier::Kind(Type::Signed(32)),
    "s64" = Modifier::Kind(Type::Signed(64)),
    "f32" = Modifier::Kind(Type::F32),
    "tf32" = Modifier::Kind(Type::F32),
    "f64" = Modifier::Kind(Type::F64),
    "f16" = Modifier::Kind(Type::Small),
    "f16x2" = Modifier::Kind(Type::Small),
    "bf16" = Modifier::Kind(Type::Small),
    "bf16x2" = Modifier::Kind(Type::Small),
    "e4m3" = Modifier::Kind(Type::Small),
    "e5m2" = Modifier::Kind(Type::Small),
    "e4m3x2" = Modifier::Kind(Type::Small),
    "e5m2x2" = Modifier::Kind(Type::Small),
    "eq" = Modifier::Cond(Cond::Eq),
    "ne" = Modifier::Cond(Cond::Ne),
    "lt" = Modifier::Cond(Cond::Lt),
    "le" = Modifier::Cond(Cond::Le),
    "gt" = Modifier::Cond(Cond::Gt),
    "ge" = Modifier::Cond(Cond::Ge),
    "lo" = Modifier::Cond(Cond::Lo),
    "ls" = Modifier::Cond(Cond::Ls),
    // The upper half of a product, too.
    "hi" = Modifier::Cond(Cond::Hi),
    "hs" = Modifier::Cond(Cond::Hs),
    "equ" = Modifier::Cond(Cond::Equ),
    "neu" = Modifier::Cond(Cond::Neu),
    "ltu" = Modifier::Cond(Cond::Ltu),
    "leu" = Modifier::Cond(Cond::Leu),
    "gtu" = Modifier::Cond(Cond::Gtu),
    "geu" = Modifier::Cond(Cond::Geu),
    "num" = Modifier::Cond(Cond::Num),
    "nan" = Modifier::Cond(Cond::Nan),
    "and" = Modifier::Logic(Logic::And),
    "or" = Modifier::Logic(Logic::Or),
    "xor" = Modifier::Logic(Logic::Xor),
    "add" = Modifier::Logic(Logic::Add),
    "min" = Modifier::Logic(Logic::Min),
    "max" = Modifier::Logic(Logic::Max),
    "param" = Modifier::Space(Space::Param),
    "global" = Modifier::Space(Space::Global),
    "shared" = Modifier::Space(Space::Shared),
    "local" = Modifier::Space(Space::Local),
    "const" = Modifier::Space(Space::Const),
    is_wide = ["wide"],
    is_high = [],
    is_approx = ["approx", "full"],
    is_uni = ["uni"],
    is_sync = ["sync"],
    is_volatile = ["volatile", "relaxed", "acquire", "mmio"],
    is_up = ["up"],
    is_down = ["down"],
    is_butterfly = ["bfly"],
    is_index = ["idx"],
    is_all = ["all"],
    is_any = ["any"],
    is_ballot = ["ballot"],
    is_arrive = ["arrive"],
    is_reduction = ["red"],
    is_warp = ["warp"],
    is_cluster = ["cluster"],
    is_wrap = ["wrap"],
    is_left = ["l"],
    is_shift_amount = ["shiftamt"],
    is_to = ["to"],
    is_rounded = ["rn", "rz", "rm", "rp"],
    is_rounded_to_even = ["rni"],
    is_rounded_down = ["rmi"],
    is_rounded_up = ["rpi"],
    is_predicate = [],
    is_cache_copy = ["async"],
    is_extended = ["cc"],
    is_saturating = ["sat", "satfinite"],
    is_permute_mode = ["f4e", "b4e", "rc8", "ecl", "ecr", "rc16"],
}

/// What the modifiers say, by their words.
static MEANINGS: Words<Modifier, 256> = Words::new(MODIFIERS);

impl Mods {
    fn set(&mut self, bit: Bit) {
        self.0 |= 1 << bit as u32;
    }
}

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

/// An instruction with this opcode, still without operands.
fn modified(op: Op, opcode: &[u8]) -> Instruction {
    let mut one = Instruction {
        op,
        kind: Type::None,
        from: Type::None,
        cond: Cond::Eq,
        logic: Logic::None,
        space: Space::Generic,
        mods: Mods::default(),
        guard: None,
        at: 0,
        statement: 0,
        first: 0,
        count: 0,
        destinations: 0,
    };
    let mut cursor = Cursor::new(opcode, 0);
    cursor.word();
    while cursor.take(b'.') {
        let word = cursor.keyed_word();
        // `.shared::cta`
        while cursor.take(b':') {
            cursor.word();
        }
        if let Some(modifier) = MEANINGS.find(word) {
            one.add(modifier);
        }
    }
    one
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

/// Reads instructions one after the other.
pub(super) struct Reader<'t> {
    code: Code<'t>,
    registers: Registers<'t>,
    names: HashMap<&'t [u8], u32>,
    parameters: HashMap<&'t [u8], u32>,
    opcodes: Opcodes<'t>,
    /// The text of the module.
    text: &'t [u8],
    /// Brackets and braces around the operand that is being read.
    depth: u32,
}

/// What stands before the operands of an instruction.
pub(super) struct Head {
    pub(super) opcode: Opcode,
    pub(super) guard: Option<Guard>,
    /// Its byte in the module's text.
    pub(super) at: u32,
    /// The statement that it is.
    pub(super) statement: u32,
}

/// What an opcode says of its operands.
#[derive(Clone, Copy)]
struct Form {
    op: Op,
    /// The first operand is what it writes.
    writes: bool,
    /// Numbers are of double precision.
    double: bool,
    space: Space,
}

/// Brackets and braces around an operand at most: the coordinates of a tensor have two.
const NESTED: u32 = 8;

impl<'t> Reader<'t> {
    fn new(text: &'t [u8], parameters: &'t [u8], flow: &'t Flow) -> Reader<'t> {
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

    fn name(&mut self, name: &'t [u8]) -> u32 {
        let names = &mut self.code.names;
        *self.names.entry(name).or_insert_with(|| {
            names.push(name);
            u32::try_from(names.len() - 1).unwrap_or(u32::MAX)
        })
    }

    /// A scope of registers begins.
    pub(super) fn open(&mut self) {
        self.registers.open();
    }

    /// It ends.
    pub(super) fn close(&mut self) {
        self.registers.close();
    }

    /// `.reg .b32 %r<100>`
    pub(super) fn declare(&mut self, declaration: &'t [u8]) {
        self.registers.declare(declaration);
    }

    /// The opcode at the cursor, if it was met before; the cursor goes over it. It may be a label of that name.
    #[inline]
    pub(super) fn known_opcode(&self, cursor: &mut Cursor<'t>, guarded: bool) -> Option<Opcode> {
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
    pub(super) fn new_opcode(&mut self, cursor: &mut Cursor<'t>, op: Op) -> Opcode {
        self.opcodes.add(cursor, op)
    }

    /// Reads an instruction, whose operands are at the cursor, which goes to its end.
    #[inline]
    pub(super) fn instruction(&mut self, cursor: &mut Cursor<'t>, head: &Head) -> Op {
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

    /// Reads any operands, and finds the end first, whatever is in them. Returns how many are destinations.
    fn unusual_operands(&mut self, cursor: &mut Cursor<'t>, form: Form) -> usize {
        let start = cursor.at;
        cursor.known_end();
        let mut within = Cursor::new(&cursor.text[..cursor.at], start);
        match form.op {
            // Where it leads is known from the flow.
            Op::Bra => 0,
            Op::Call => {
                self.call(&mut within);
                0
            }
            _ => self.operands(&mut within, form),
        }
    }

    /// Reads registers, numbers, memory at a register, and vectors and pairs of registers as compilers write them, which most
    /// operands are: without a comment, and with one blank at most behind a comma. Returns where they end, and how many are
    /// destinations; `None` where there is anything else.
    #[inline]
    fn usual_operands(&mut self, mut at: usize, form: Form) -> Option<(usize, usize)> {
        let text = self.text;
        let first = self.code.operands.len();
        let mut is_first = form.writes;
        let mut destinations = 0;
        while matches!(text.get(at)?, b' ' | b'\t') {
            at += 1;
        }
        loop {
            at = match text.get(at)? {
                b'%' => {
                    let (register, length) = self.registers.at(text, at)?;
                    self.code.operands.push(Operand::Register(register));
                    at + length
                }
                b'[' => {
                    let (register, length) = self.registers.at(text, at + 1)?;
                    let mut end = at + 1 + length;
                    let mut distance = 0;
                    if *text.get(end)? == b'+' {
                        (distance, end) = operand::decimal(text, end + 1)?;
                    }
                    if *text.get(end)? != b']' {
                        return None;
                    }
                    self.code.operands.push(Operand::Memory(register, i64::from(distance)));
                    end + 1
                }
                b'{' => {
                    let mut end = at;
                    while text.get(end)? != &b'}' {
                        end += 1 + usize::from(text.get(end + 1)? == &b' ');
                        let (register, length) = self.registers.at(text, end)?;
                        self.code.operands.push(Operand::Register(register));
                        end += length;
                        if !matches!(text.get(end)?, b',' | b'}') {
                            return None;
                        }
                    }
                    end + 1
                }
                b'0'..=b'9' => {
                    let (number, end) = match operand::decimal(text, at) {
                        Some((number, end)) => (u64::from(number), end),
                        None => number(text, at, form.double)?,
                    };
                    self.code.operands.push(Operand::Constant(number));
                    end
                }
                b'-' => {
                    let (number, end) = operand::decimal(text, at + 1)?;
                    self.code.operands.push(Operand::Constant(u64::from(number).wrapping_neg()));
                    end
                }
                // It has none.
                b';' if self.code.operands.len() == first => return Some((at, 0)),
                _ => return None,
            };
            let next = *text.get(at)?;
            if next == b'|' && is_first {
                at += 1;
                continue;
            }
            if is_first {
                destinations = self.code.operands.len() - first;
                is_first = false;
            }
            match next {
                b',' => at += 1 + usize::from(text.get(at + 1)? == &b' '),
                b';' => return Some((at, destinations)),
                _ => return None,
            }
        }
    }

    /// The guard at the cursor, if there is one, with the blanks behind it.
    #[inline]
    pub(super) fn guard(&mut self, cursor: &mut Cursor<'t>) -> Option<Guard> {
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

    /// The name of what is called, and the names of the parameters that are passed: `(r), f, (a, b), prototype`.
    fn call(&mut self, cursor: &mut Cursor<'t>) {
        if cursor.skip_blank().is_err() {
            return;
        }
        if cursor.take(b'(') {
            skip_past(cursor, b')');
            skip_past(cursor, b',');
        }
        if cursor.skip_blank().is_err() {
            return;
        }
        let callee = cursor.word();
        let callee = match self.registers.known(callee) {
            Some(register) => Operand::Register(register),
            None => Operand::Symbol(self.name(callee), 0),
        };
        self.code.operands.push(callee);
        skip_past(cursor, b'(');
        while cursor.skip_blank().is_ok() {
            let word = cursor.word();
            if word.is_empty() {
                return;
            }
            let name = self.name(word);
            self.code.operands.push(Operand::Symbol(name, 0));
            if cursor.skip_blank().is_err() || !cursor.take(b',') {
                return;
            }
        }
    }

    /// The operand list; the first operand is the destination, unless the instruction has none. Returns how many operands
    /// that is.
    fn operands(&mut self, cursor: &mut Cursor<'t>, form: Form) -> usize {
        let first = self.code.operands.len();
        let mut is_first = form.writes;
        let mut destinations = 0;
        loop {
            if cursor.skip_blank().is_err() || cursor.is_at_end() {
                return destinations;
            }
            self.operand(cursor, form.double, form.space);
            if is_first {
                while cursor.skip_blank().is_ok() && cursor.take(b'|') && cursor.skip_blank().is_ok() {
                    self.operand(cursor, form.double, form.space);
                }
                destinations = self.code.operands.len() - first;
                is_first = false;
            }
            if cursor.skip_blank().is_err() || !cursor.take(b',') {
                return destinations;
            }
        }
    }

    /// The register at the cursor, which goes over it, unless that is read in slower ways.
    #[inline]
    fn register(&self, cursor: &mut Cursor<'t>) -> Option<Reg> {
        let (register, length) = self.registers.at(self.text, cursor.at)?;
        cursor.at += length;
        Some(register)
    }

    fn operand(&mut self, cursor: &mut Cursor<'t>, double: bool, space: Space) {
        if let Some(register) = self.register(cursor) {
            self.code.operands.push(Operand::Register(register));
            return;
        }
        if self.depth == NESTED {
            // Nothing that exists: the rest of the statement is passed over.
            cursor.at = cursor.text.len();
            return;
        }
        self.depth += 1;
        self.operand_within(cursor, double, space);
        self.depth -= 1;
    }

    fn operand_within(&mut self, cursor: &mut Cursor<'t>, double: bool, space: Space) {
        match cursor.peek() {
            b'{' => {
                cursor.at += 1;
                loop {
                    if cursor.skip_blank().is_err() || cursor.take(b'}') || cursor.is_at_end() {
                        return;
                    }
                    let before = cursor.at;
                    self.operand(cursor, double, space);
                    if cursor.skip_blank().is_err() || !(cursor.take(b',') || cursor.at > before) {
                        return;
                    }
                }
            }
            b'[' => {
                cursor.at += 1;
                self.memory(cursor, space);
                skip_past(cursor, b']');
            }
            b'!' => {
                cursor.at += 1;
                let _ = cursor.skip_blank();
                let register = self.registers.of(cursor.word());
                self.code.operands.push(Operand::Not(register));
            }
            b'-' => {
                cursor.at += 1;
                let _ = cursor.skip_blank();
                let word = number_or_word(cursor);
                let operand = match operand::constant(word, true, double) {
                    Some(value) => Operand::Constant(value),
                    None => Operand::Minus(self.registers.of(word)),
                };
                self.code.operands.push(operand);
            }
            b'(' => {
                // An expression of constants; nothing here needs its value.
                skip_past(cursor, b')');
                self.code.operands.push(Operand::Sink);
            }
            _ => {
                let word = number_or_word(cursor);
                if word.is_empty() {
                    // Something that no operand begins with: the statement was checked, so it is passed over.
                    cursor.at += usize::from(!cursor.is_at_end());
                    return;
                }
                let operand = self.plain(word, cursor, double);
                self.code.operands.push(operand);
            }
        }
    }

    fn plain(&mut self, word: &'t [u8], cursor: &mut Cursor<'t>, double: bool) -> Operand {
        if word == b"_" {
            return Operand::Sink;
        }
        if word[0].is_ascii_digit() {
            return operand::constant(word, false, double).map_or(Operand::Sink, Operand::Constant);
        }
        if let Some(register) = self.registers.known(word) {
            skip_element(cursor);
            return Operand::Register(register);
        }
        if word[0] == b'%' || word == b"WARP_SZ" {
            if let Some(special) = operand::special(word, None) {
                let axis = axis(cursor);
                return Operand::Special(operand::special(word, axis).unwrap_or(special));
            }
            skip_element(cursor);
            return Operand::Register(self.registers.of(word));
        }
        let distance = distance(cursor);
        Operand::Symbol(self.name(word), distance)
    }

    /// What stands within `[ ]`.
    fn memory(&mut self, cursor: &mut Cursor<'t>, space: Space) {
        let _ = cursor.skip_blank();
        let operand = match self.register(cursor) {
            Some(register) => Operand::Memory(register, distance(cursor)),
            None => self.address(cursor, space),
        };
        self.code.operands.push(operand);
        // Coordinates of a texture, or of a tensor, follow the handle.
        while cursor.skip_blank().is_ok() && cursor.take(b',') {
            let _ = cursor.skip_blank();
            let before = cursor.at;
            self.operand(cursor, false, space);
            if cursor.at == before {
                return;
            }
        }
    }

    /// What a `[` is followed by, unless that is one of the usual registers.
    fn address(&mut self, cursor: &mut Cursor<'t>, space: Space) -> Operand {
        let word = number_or_word(cursor);
        if word.is_empty() {
            return Operand::Sink;
        }
        let _ = cursor.skip_blank();
        if word[0].is_ascii_digit() {
            Operand::Fixed(operand::constant(word, false, false).unwrap_or(0))
        } else if let Some(register) = self.registers.known(word) {
            Operand::Memory(register, distance(cursor))
        } else if word[0] == b'%' {
            Operand::Memory(self.registers.of(word), distance(cursor))
        } else if let Some(position) = self.parameters.get(word).filter(|_| space == Space::Param) {
            Operand::Parameter(*position, distance(cursor))
        } else {
            let name = self.name(word);
            Operand::Symbol(name, distance(cursor))
        }
    }
}

impl Instruction {
    /// Whether its first operand is what it writes.
    fn has_destination(&self) -> bool {
        !self.op.has_no_destination() || (self.op == Op::Bar && self.mods.is_reduction())
    }

    fn add(&mut self, modifier: Modifier) {
        match modifier {
            Modifier::Kind(kind) => {
                if kind == Type::Pred {
                    self.mods.set(Bit::is_predicate);
                }
                if self.kind == Type::None {
                    self.kind = kind;
                } else if self.from == Type::None {
                    self.from = kind;
                }
            }
            Modifier::Cond(cond) => {
                if cond == Cond::Hi {
                    self.mods.set(Bit::is_high);
                }
                if matches!(self.op, Op::Setp | Op::Set) {
                    self.cond = cond;
                }
            }
            Modifier::Logic(logic) => self.logic = logic,
            Modifier::Space(space) => self.space = space,
            Modifier::Mod(bit) => self.mods.set(bit),
        }
    }
}

/// A number without a point, and where it ends.
fn number(text: &[u8], at: usize, double: bool) -> Option<(u64, usize)> {
    let mut cursor = Cursor::new(text, at);
    let value = operand::constant(cursor.word(), false, double)?;
    (cursor.peek() != b'.').then_some((value, cursor.at))
}

/// A word; a number with its fraction and exponent is one too.
fn number_or_word<'t>(cursor: &mut Cursor<'t>) -> &'t [u8] {
    let start = cursor.at;
    let word = cursor.word();
    let is_decimal = !word.is_empty() && word.iter().all(u8::is_ascii_digit);
    if is_decimal && cursor.take(b'.') {
        let fraction = cursor.word();
        if matches!(fraction.last(), Some(b'e' | b'E')) && (cursor.take(b'-') || cursor.take(b'+')) {
            cursor.word();
        }
        return &cursor.text[start..cursor.at];
    }
    word
}

fn skip_past(cursor: &mut Cursor<'_>, byte: u8) {
    let rest = &cursor.text[cursor.at..];
    cursor.at += memchr::memchr(byte, rest).map_or(rest.len(), |at| at + 1);
}

/// Over `.x` of a vector register.
fn skip_element(cursor: &mut Cursor<'_>) {
    if cursor.take(b'.') {
        cursor.word();
    }
}

fn axis(cursor: &mut Cursor<'_>) -> Option<u8> {
    cursor.take(b'.').then(|| match cursor.word() {
        b"y" => 1,
        b"z" => 2,
        _ => 0,
    })
}

/// `+8` or `-8` after a name.
fn distance(cursor: &mut Cursor<'_>) -> i64 {
    let _ = cursor.skip_blank();
    let negative = match cursor.peek() {
        b'+' => false,
        b'-' => true,
        _ => return 0,
    };
    cursor.at += 1;
    let _ = cursor.skip_blank();
    let negative = negative ^ cursor.take(b'-');
    operand::constant(cursor.word(), negative, false).unwrap_or(0).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::ptx::Special;

    const PARAMETERS: &[u8] =
        b"(.param .u64 .ptr .global .align 16 k_param_0, .param .align 4 .b8 k_param_1[12], .param .u32 n)";

    fn with_code<T>(text: &str, f: impl FnOnce(&Code<'_>) -> T) -> T {
        let text = format!("{{ .reg .pred %p<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>; {text} }}");
        let mut body = Body::default();
        body.read(text.as_bytes(), 0).unwrap_or_else(|fault| panic!("{fault:?}: {text}"));
        let flow = body.flow.clone();
        let code = Code::read(text.as_bytes(), 0, PARAMETERS, &flow, &mut body);
        assert_eq!(body.end, text.len(), "the whole of it is read: {text}");
        f(&code)
    }

    /// Operands in words, destinations before `=`.
    fn told(text: &str) -> String {
        with_code(text, |code| {
            let one = code.instructions.last().expect("an instruction");
            let words = |operands: &[Operand]| operands.iter().map(|one| word(code, one)).collect::<Vec<_>>().join(" ");
            let guard = one.guard.map_or_else(String::new, |guard| {
                format!("{}p{} ", if guard.negated { "not " } else { "if " }, guard.register.0)
            });
            format!("{guard}{} = {}", words(code.destinations(one)), words(code.sources(one)))
        })
    }

    /// Registers are `p0` to `p8`, `r0` to `r8`, `d0` to `d8`, and `x` with what is beyond.
    fn word(code: &Code<'_>, operand: &Operand) -> String {
        let name = |register: &Reg| match register.0 {
            number @ 0..9 => format!("p{number}"),
            number @ 9..18 => format!("r{}", number - 9),
            number @ 18..27 => format!("d{}", number - 18),
            number => format!("x{}", number - 27),
        };
        let symbol = |at: &u32| String::from_utf8_lossy(code.names[*at as usize]).into_owned();
        match operand {
            Operand::Register(register) => name(register),
            Operand::Not(register) => format!("!{}", name(register)),
            Operand::Minus(register) => format!("-{}", name(register)),
            Operand::Constant(value) => format!("{value:#x}"),
            Operand::Special(special) => format!("{special:?}"),
            Operand::Memory(register, distance) => format!("[{}{distance:+}]", name(register)),
            Operand::Symbol(at, distance) => format!("{}{distance:+}", symbol(at)),
            Operand::Parameter(position, distance) => format!("[parameter {position}{distance:+}]"),
            Operand::Fixed(value) => format!("[{value:#x}]"),
            Operand::Sink => "_".to_owned(),
        }
    }

    #[test]
    fn every_form_of_an_operand_is_read() {
        for (text, expected) in [
            ("mov.u32 %r1, %r2;", "r1 = r2"),
            ("mov.u32 %r1, -1;", "r1 = 0xffffffffffffffff"),
            ("mov.u32 %r1, 0x1F;", "r1 = 0x1f"),
            ("mov.u32 %r1, 4294967295U;", "r1 = 0xffffffff"),
            ("mov.f32 %r1, 0f3F800000;", "r1 = 0x3f800000"),
            ("mov.f64 %rd1, 0d3FF0000000000000;", "d1 = 0x3ff0000000000000"),
            ("mov.f32 %r1, 0.5;", "r1 = 0x3f000000"),
            ("mov.f64 %rd1, 2.5e-1;", "d1 = 0x3fd0000000000000"),
            ("neg.s32 %r1, -%r2;", "r1 = -r2"),
            ("ld.global.u32 %r1, [%rd1+8];", "r1 = [d1+8]"),
            ("ld.global.u32 %r1, [%rd1+-8];", "r1 = [d1-8]"),
            ("ld.global.u32 %r1, [ %rd1 + 0 ];", "r1 = [d1+0]"),
            ("ld.shared.u32 %r1, [tile+4];", "r1 = tile+4"),
            ("ld.global.u32 %r1, [4096];", "r1 = [0x1000]"),
            ("ld.param.u32 %r1, [n];", "r1 = [parameter 2+0]"),
            ("ld.param.b32 %r1, [k_param_1+4];", "r1 = [parameter 1+4]"),
            ("ld.param.u64 %rd1, [k_param_0];", "d1 = [parameter 0+0]"),
            ("ld.param.b32 %r1, [retval0];", "r1 = retval0+0"),
            ("ld.global.v2.u32 {%r1, %r2}, [%rd1];", "r1 r2 = [d1+0]"),
            ("ld.global.v4.u32 {%r1, _, %r3, _}, [%rd1];", "r1 _ r3 _ = [d1+0]"),
            ("st.global.v2.u32 [%rd1+16], {%r1, %r2};", " = [d1+16] r1 r2"),
            ("mov.b64 {%r1,%r2}, %rd1;", "r1 r2 = d1"),
            ("mov.b64 %rd1, { %r1 , %r2 };", "d1 = r1 r2"),
            ("mov.b64{%r1,%r2},%rd1;", "r1 r2 = d1"),
            ("mov.u32 %r1, 1; $L_1:mov.u32 %r2, 2;", "r2 = 0x2"),
            ("ret; ret: mov.u32 %r1, 1;", "r1 = 0x1"),
            ("ret; ret$1 : mov.u32 %r1, 1;", "r1 = 0x1"),
            ("ret; ret /**/ : mov.u32 %r1, 1;", "r1 = 0x1"),
            ("ret; ret:mov.u32 %r1, 1;", "r1 = 0x1"),
            ("add.cc.u32%r, %r1, 1;", " = "),
            ("ld.global.v2.u32 {%r1,_}, [%rd1+-4];", "r1 _ = [d1-4]"),
            ("ld.global.u32 %r1,[%rd1+12345678];", "r1 = [d1+12345678]"),
            ("ld.global.u32 %r1, [%rd1+8];mov.u32 %r2, 8;", "r2 = 0x8"),
            ("mov.u32 %r1, 8/**/;", "r1 = 0x8"),
            ("fma.rn.f32 %r1, %r2, %r3, 0f3F800000;", "r1 = r2 r3 0x3f800000"),
            ("mov.f32 %r1, 1.5;", "r1 = 0x3fc00000"),
            ("setp.ne.s32 %p1|_, %r1, 0;", "p1 _ = r1 0x0"),
            ("bar.sync 0|1;", " = 0x0"),
            ("vote.sync.all.pred %p1|%p2|%p3, %p4, -1;", "p1 p2 p3 = p4 0xffffffffffffffff"),
            ("mov.u32 %r1, 5; membar.cta;", " = "),
            ("mov.u32 %r1, 5; membar.cta ;", " = "),
            ("mov.u32 %r1, 08;", "r1 = _"),
            ("mov.u32 %r1, 010;", "r1 = 0x8"),
            ("add.s32 %r1, %r2, -2147483648;", "r1 = r2 0xffffffff80000000"),
            ("add.s32 %r1, %r2, -7;", "r1 = r2 0xfffffffffffffff9"),
            ("st.global.v2.u32 [%rd1], {%r1,%r2};", " = [d1+0] r1 r2"),
            ("st.global.v4.u32 [%rd1], {%r1, %r2, %r3 , %r4};", " = [d1+0] r1 r2 r3 r4"),
            ("setp.ne.s32 %p1, %r1, 0 ;", "p1 = r1 0x0"),
            ("setp.lt.s32 %p1|%p2, %r1, %r2;", "p1 p2 = r1 r2"),
            ("setp.lt.and.s32 %p1 | %p2, %r1, 5, !%p3;", "p1 p2 = r1 0x5 !p3"),
            ("shfl.sync.down.b32 %r1|%p1, %r2, 16, 31, -1;", "r1 p1 = r2 0x10 0x1f 0xffffffffffffffff"),
            ("elect.sync _|%p1, %r1;", "_ p1 = r1"),
            ("mov.u32 %r1, %tid.y;", "r1 = Tid(1)"),
            ("mov.u32 %r1, %ctaid.z;", "r1 = Ctaid(2)"),
            ("mov.u32 %r1, %laneid;", "r1 = Laneid"),
            ("mov.u32 %r1, WARP_SZ;", "r1 = WarpSize"),
            ("mov.u64 %rd1, table+8;", "d1 = table+8"),
            ("mov.u32 %r1, %r2.x;", "r1 = r2"),
            ("@%p1 bra $L1; $L1:", "if p1  = "),
            ("@!%p2 st.global.u32 [%rd1], 0;", "not p2  = [d1+0] 0x0"),
            ("@ ! %p2 mov.u32 %r1, 1;", "not p2 r1 = 0x1"),
            ("bar.sync 0;", " = 0x0"),
            ("bar.red.popc.u32 %r1, 0, %p1;", "r1 = 0x0 p1"),
            ("tex.2d.v4.f32.f32 {%r1, %r2, %r3, %r4}, [image, {%r5, %r6}];", "r1 r2 r3 r4 = image+0 r5 r6"),
            ("mov.u32 %r1, (1+2)*3;", "r1 = _"),
            ("add.u32 undeclared, %r1, 1;", "undeclared+0 = r1 0x1"),
            ("add.u32 %x, %r1, 1;", "x0 = r1 0x1"),
        ] {
            assert_eq!(told(text), expected, "{text}");
        }
    }

    #[test]
    fn calls_tell_whom_and_with_what() {
        for (text, expected) in [
            ("call f;", " = f+0"),
            ("call.uni f, (a, b);", " = f+0 a+0 b+0"),
            ("call.uni (retval0), \n f, \n (\n param0, \n param1\n );", " = f+0 param0+0 param1+0"),
            ("call (retval0), %rd1, (param0), prototype;", " = d1 param0+0"),
        ] {
            assert_eq!(told(text), expected, "{text}");
        }
        with_code("call f; call (r), g, (a); call %rd1, (a), p;", |code| {
            assert_eq!(code.callees().collect::<Vec<_>>(), [&b"f"[..], b"g"]);
        });
    }

    #[test]
    fn modifiers_say_what_is_done_to_what() {
        with_code(
            "cvt.rzi.s32.f32 %r1, %r2; setp.geu.or.f64 %p1, %rd1, %rd2, %p2; ld.volatile.shared::cta.u8 %r1, [%r2];",
            |code| {
                let [cvt, setp, ld] = code.instructions.as_slice() else { panic!("three instructions") };
                assert_eq!((cvt.op, cvt.kind, cvt.from), (Op::Cvt, Type::Signed(32), Type::F32));
                assert_eq!((setp.cond, setp.logic, setp.kind), (Cond::Geu, Logic::Or, Type::F64));
                assert_eq!((ld.space, ld.kind, ld.mods.is_volatile()), (Space::Shared, Type::Unsigned(8), true));
            },
        );
        with_code("mul.hi.u32 %r1, %r2, %r3; mul.wide.s16 %r1, %r2, %r3; setp.hi.u32 %p1, %r1, %r2;", |code| {
            let [high, wide, compared] = code.instructions.as_slice() else { panic!("three instructions") };
            assert!(high.mods.is_high() && wide.mods.is_wide() && compared.cond == Cond::Hi);
        });
    }

    #[test]
    fn names_in_a_scope_are_other_registers_than_those_outside() {
        let text = "{ .reg .pred p; setp.eq.u32 p, %r1, 0; } { .reg .pred p; setp.eq.u32 p, %r2, 0; } setp.eq.u32 %p1, %r3, 0;";
        with_code(text, |code| {
            let written: Vec<&Operand> = code.instructions.iter().map(|one| &code.destinations(one)[0]).collect();
            assert!(written[0] != written[1] && *written[2] == Operand::Register(Reg(1)));
        });
        let ranges = "mov.u32 %r1, 1; { .reg .b32 %r<4>; mov.u32 %r1, 2; mov.u32 %r7, 3; } mov.u32 %r1, 4;";
        with_code(ranges, |code| {
            let written: Vec<&Operand> = code.instructions.iter().map(|one| &code.destinations(one)[0]).collect();
            assert!(written[0] == written[3] && written[0] != written[1]);
            assert_eq!(
                *written[2],
                Operand::Register(Reg(9 + 7)),
                "a number beyond the inner range is of the outer one"
            );
        });
    }

    #[test]
    fn a_branch_through_a_table_leads_to_what_the_table_names() {
        let text = "A: B: mov.u32 %r1, 1; T: .branchtargets A, C, B; C: brx.idx %r1, T; bra B;";
        with_code(text, |code| {
            assert_eq!([0, 1, 2].map(|at| code.table(at)), [&[][..], &[0, 1, 0], &[]]);
        });
    }

    #[test]
    fn comments_between_operands_change_nothing() {
        let plain = told("mad.lo.s32 %r1, %r2, %r3, [%rd1+8];");
        assert_eq!(
            told("mad.lo.s32 /**/ %r1 /* , */ , // x\r\n %r2,%r3\t,\n[ /**/ %rd1 /**/ + /**/ 8 /**/ ] ;"),
            plain
        );
    }

    #[test]
    fn brackets_nested_beyond_what_exists_take_no_stack() {
        for (open, close) in [("{", "}"), ("[a, ", "]")] {
            let text = format!("mov.b32 %r1, {}%r2{};", open.repeat(100_000), close.repeat(100_000));
            with_code(&text, |code| assert_eq!(code.instructions.len(), 1));
        }
    }

    #[test]
    fn an_operand_list_that_is_cut_anywhere_is_read_as_far_as_it_goes() {
        let text =
            "@!%p1 ld.global.v4.f32 {%r1, _, %r3|%p1, -%r4}, [%rd1+0x8, {%tid.x, 0f3F800000, (1+2)}], !%p2, 2.5e-1";
        for at in 0..text.len() {
            let mut body = Body::default();
            let cut = format!("{{ {}; }}", &text[..at]);
            let _ = Code::read(cut.as_bytes(), 0, PARAMETERS, &Flow::default(), &mut body);
        }
        assert_eq!(operand::special(b"%tid", None), Some(Special::Tid(0)));
    }
}
