//! What the words of an opcode say behind its first: types, comparisons, memory, and all that changes what is done.

use super::Instruction;
use crate::parse::ptx::lexer::Cursor;
use crate::parse::ptx::opcode::Op;
use crate::parse::ptx::words::Words;

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

/// An instruction with this opcode, still without operands.
pub(super) fn modified(op: Op, opcode: &[u8]) -> Instruction {
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

impl Instruction {
    /// Whether its first operand is what it writes.
    pub(super) fn has_destination(&self) -> bool {
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
