//! What an instruction is: the first word of its opcode, which decides how the rest is read.

use super::words::{Word, Words};

/// The first word of an opcode, as far as the analysis tells instructions apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are those of the instructions in the PTX manual")]
pub enum Op {
    Abs,
    Add,
    And,
    Activemask,
    Atom,
    Bar,
    Bfe,
    Bfi,
    Bfind,
    Bra,
    Brev,
    Brx,
    Call,
    Clz,
    Cnot,
    Cos,
    Cvt,
    Cvta,
    Div,
    Elect,
    Ex2,
    Exit,
    Fma,
    Fns,
    Ld,
    Lg2,
    Lop3,
    Mad,
    Mad24,
    Match,
    Max,
    Min,
    Mov,
    Mul,
    Mul24,
    Neg,
    Not,
    Or,
    Popc,
    Prmt,
    Rcp,
    Red,
    Redux,
    Rem,
    Ret,
    Rsqrt,
    Sad,
    Selp,
    Set,
    Setp,
    Shf,
    Shfl,
    Shl,
    Shr,
    Sin,
    Slct,
    Sqrt,
    St,
    Sub,
    Tanh,
    Trap,
    Vote,
    Xor,
    /// `membar`, `fence`, and what else orders memory.
    Fence,
    /// Reads memory in another way than `ld`: textures, surfaces, matrices, multicast reductions.
    Fetch,
    /// Tensor-core work with a destination in registers.
    Tensor,
    /// Tensor-core work without one.
    TensorEffect,
    /// Changes something outside the registers and writes none.
    Effect,
    /// Any other known instruction: a function of its operands.
    Pure,
    /// An instruction that is not known, of a later version of PTX: taken for a function of its operands.
    Unknown,
}

impl Op {
    /// Whether nothing after it in its block runs, or not always.
    #[must_use]
    pub fn ends_block(self) -> bool {
        matches!(self, Op::Bra | Op::Brx | Op::Ret | Op::Exit | Op::Trap)
    }

    /// Whether it writes no register.
    #[must_use]
    pub fn has_no_destination(self) -> bool {
        use Op::{Bar, Bra, Brx, Call, Effect, Exit, Fence, Red, Ret, St, TensorEffect, Trap};
        matches!(self, St | Bar | Red | Fence | Bra | Brx | Ret | Exit | Trap | Call | Effect | TensorEffect)
    }

    /// Whether it works on the tensor cores.
    #[must_use]
    pub fn is_tensor(self) -> bool {
        matches!(self, Op::Tensor | Op::TensorEffect)
    }
}

/// Every first word that PTX ISA 3.0 to 9.5 has (PTX ISA manual, chapter "Instruction Set").
const NAMES: &[(&str, Op)] = &[
    ("abs", Op::Abs),
    ("activemask", Op::Activemask),
    ("add", Op::Add),
    ("addc", Op::Pure),
    ("alloca", Op::Pure),
    ("and", Op::And),
    ("applypriority", Op::Effect),
    ("atom", Op::Atom),
    ("bar", Op::Bar),
    ("barrier", Op::Bar),
    ("bfe", Op::Bfe),
    ("bfi", Op::Bfi),
    ("bfind", Op::Bfind),
    ("bmsk", Op::Pure),
    ("bra", Op::Bra),
    ("brev", Op::Brev),
    ("brkpt", Op::Effect),
    ("brx", Op::Brx),
    ("call", Op::Call),
    ("clusterlaunchcontrol", Op::Pure),
    ("clz", Op::Clz),
    ("cnot", Op::Cnot),
    ("copysign", Op::Pure),
    ("cos", Op::Cos),
    ("cp", Op::Effect),
    ("createpolicy", Op::Pure),
    ("cvt", Op::Cvt),
    ("cvta", Op::Cvta),
    ("discard", Op::Effect),
    ("div", Op::Div),
    ("dp2a", Op::Pure),
    ("dp4a", Op::Pure),
    ("elect", Op::Elect),
    ("ex2", Op::Ex2),
    ("exit", Op::Exit),
    ("fence", Op::Fence),
    ("fma", Op::Fma),
    ("fns", Op::Fns),
    ("getctarank", Op::Pure),
    ("griddepcontrol", Op::Effect),
    ("isspacep", Op::Pure),
    ("istypep", Op::Pure),
    ("ld", Op::Ld),
    ("ldmatrix", Op::Fetch),
    ("ldu", Op::Ld),
    ("lg2", Op::Lg2),
    ("lop3", Op::Lop3),
    ("mad", Op::Mad),
    ("mad24", Op::Mad24),
    ("madc", Op::Pure),
    ("mapa", Op::Pure),
    ("match", Op::Match),
    ("max", Op::Max),
    ("mbarrier", Op::Fetch),
    ("membar", Op::Fence),
    ("min", Op::Min),
    ("mma", Op::Tensor),
    ("mov", Op::Mov),
    ("movmatrix", Op::Fetch),
    ("mul", Op::Mul),
    ("mul24", Op::Mul24),
    ("multimem", Op::Fetch),
    ("nanosleep", Op::Effect),
    ("neg", Op::Neg),
    ("not", Op::Not),
    ("or", Op::Or),
    ("pmevent", Op::Effect),
    ("popc", Op::Popc),
    ("prefetch", Op::Effect),
    ("prefetchu", Op::Effect),
    ("prmt", Op::Prmt),
    ("rcp", Op::Rcp),
    ("red", Op::Red),
    ("redux", Op::Redux),
    ("rem", Op::Rem),
    ("ret", Op::Ret),
    ("rsqrt", Op::Rsqrt),
    ("sad", Op::Sad),
    ("selp", Op::Selp),
    ("set", Op::Set),
    ("setmaxnreg", Op::Effect),
    ("setp", Op::Setp),
    ("shf", Op::Shf),
    ("shfl", Op::Shfl),
    ("shl", Op::Shl),
    ("shr", Op::Shr),
    ("sin", Op::Sin),
    ("slct", Op::Slct),
    ("sqrt", Op::Sqrt),
    ("st", Op::St),
    ("stackrestore", Op::Effect),
    ("stacksave", Op::Pure),
    ("stmatrix", Op::Effect),
    ("sub", Op::Sub),
    ("subc", Op::Pure),
    ("suld", Op::Fetch),
    ("suq", Op::Pure),
    ("sured", Op::Effect),
    ("sust", Op::Effect),
    ("szext", Op::Pure),
    ("tanh", Op::Tanh),
    ("tcgen05", Op::TensorEffect),
    ("tensormap", Op::Effect),
    ("testp", Op::Pure),
    ("tex", Op::Fetch),
    ("tld4", Op::Fetch),
    ("trap", Op::Trap),
    ("txq", Op::Pure),
    ("vabsdiff", Op::Pure),
    ("vabsdiff2", Op::Pure),
    ("vabsdiff4", Op::Pure),
    ("vadd", Op::Pure),
    ("vadd2", Op::Pure),
    ("vadd4", Op::Pure),
    ("vavrg2", Op::Pure),
    ("vavrg4", Op::Pure),
    ("vmad", Op::Pure),
    ("vmax", Op::Pure),
    ("vmax2", Op::Pure),
    ("vmax4", Op::Pure),
    ("vmin", Op::Pure),
    ("vmin2", Op::Pure),
    ("vmin4", Op::Pure),
    ("vote", Op::Vote),
    ("vset", Op::Pure),
    ("vset2", Op::Pure),
    ("vset4", Op::Pure),
    ("vshl", Op::Pure),
    ("vshr", Op::Pure),
    ("vsub", Op::Pure),
    ("vsub2", Op::Pure),
    ("vsub4", Op::Pure),
    ("wgmma", Op::TensorEffect),
    ("wmma", Op::Tensor),
    ("xor", Op::Xor),
];

/// The instructions by their first word.
static TABLE: Words<Op, 512> = Words::new(NAMES);

/// The instruction that the first word of an opcode names, if it is one.
#[inline]
pub(super) fn named(word: Word<'_>) -> Option<Op> {
    TABLE.find(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_instruction_is_found_by_its_word_and_nothing_else_is() {
        for (name, op) in NAMES {
            assert_eq!(named(Word::of(name.as_bytes())), Some(*op), "{name}");
        }
        for word in ["", "garbage", "brx2", "b", "BRA", "clusterlaunchcontro"] {
            assert_eq!(named(Word::of(word.as_bytes())), None, "{word}");
        }
    }
}
