//! The sentences that ptxas and nvlink are known to say, and how much of one a text is: a terminal, a pager or a Markdown
//! file breaks a long sentence in pieces, at a blank, which then is gone, or within a word.

use self::Part::{Free, Name, Number, OneOf, Optional, Text, Word};

/// A part of a sentence.
#[derive(Clone, Copy)]
enum Part {
    Text(&'static str),
    OneOf(&'static [&'static str]),
    Number,
    /// A figure in hexadecimal, or an architecture.
    Word,
    /// The name of a function, which ends where the sentence goes on.
    Name,
    /// Anything, up to where the sentence goes on.
    Free,
    /// What only some releases say at the end.
    Optional(&'static [Part]),
}

const WGMMA: Part = Text("Potential Performance Loss: wgmma.mma_async instructions are serialized due to ");
const IN_LINE: Part = Optional(&[Text(" in line "), Number]);
/// Some releases name nobody.
const IN_FUNCTION: Part = Optional(&[Text(" in the function '"), Name, Text("'"), IN_LINE]);
const SETMAXNREG: Part = Text("Potential Performance Loss: 'setmaxnreg' ignored");
const INJECTED: Part = OneOf(&["warpgroup.wait", "warpgroup.arrive", "wgmma.wait_group"]);
const OUT_OF_RANGE: &str = " is out of range. ";

const TOO_MUCH: Part = Text("' uses too much ");
const TOO_LARGE: Part = OneOf(&["shared data", "local data", "parameter space", "constant data"]);
const FIRST: Part = Text("', first defined in '");
const STOP: Part = Optional(&[Text(".")]);

/// Whatever has a name, a figure or a reason that a rule tells, and so must be had whole.
static SENTENCES: [&[Part]; 30] = [
    &[
        Text("Registers are spilled to local memory in function '"),
        Name,
        Text("', "),
        Number,
        Text(" bytes spill stores, "),
        Number,
        Text(" bytes spill loads"),
    ],
    &[Text("Local memory used for function '"), Name, Text("', size of stack frame: "), Number, Text(" bytes")],
    &[Text("Stack size for entry function '"), Name, Text("' cannot be statically determined")],
    &[
        Text("Value of threads per SM for entry "),
        Name,
        Text(OUT_OF_RANGE),
        OneOf(&[".minnctapersm will be ignored", ".minnctapersm and .maxntid will be ignored"]),
    ],
    &[Text("Value of minnctapersm for entry "), Name, Text(OUT_OF_RANGE), Text("minnctapersm will be ignored")],
    &[Text(".minnctapersm is ignored when neither .maxntid nor .reqntid is specified.")],
    &[
        Text("Overriding maximum register limit "),
        Number,
        Text(" for '"),
        Name,
        Text("' with "),
        Number,
        Text(" of maxrregcount option"),
    ],
    &[
        Text("Overriding global maxrregcount "),
        Number,
        Text(" with entry-specific value "),
        Number,
        OneOf(&[" computed using thread count", " of .maxnreg"]),
    ],
    &[
        Text("For profile "),
        Word,
        Text(" adjusting per thread register count of "),
        Number,
        Text(" to lower bound of "),
        Number,
    ],
    &[Text("Too big maxrregcount value specified "), Number, Text(", will be ignored")],
    &[
        SETMAXNREG,
        OneOf(&[
            " to maintain compatibility across compilation units.",
            " to allow debugging.",
            " to maintain compatibility into 'extern' call.",
            " to maintain minimum register requirements.",
            "; unable to determine register count at entry.",
        ]),
    ],
    &[SETMAXNREG, Free, Text(".")],
    &[
        WGMMA,
        OneOf(&[
            "the presence of Extern calls",
            "wgmma pipeline crossing function boundary at a function call",
            "insufficient register resources for the wgmma pipeline",
            "non wgmma instructions defining input registers of a wgmma between start and end of the pipeline stage",
            "non wgmma instructions reading accumulator registers of a wgmma between start and end of the pipeline stage",
            "non wgmma instructions defining accumulator registers of a wgmma between start and end of the pipeline stage",
            "ill formed pipeline stage",
            "program dependence on compiler-inserted WG.AR in divergent path",
            "program dependence on compiler-inserted WG.DP in divergent path",
        ]),
        IN_FUNCTION,
    ],
    &[WGMMA, Text("insufficient register resources for the function '"), Name, Text("'"), IN_LINE],
    &[WGMMA, Free, Text(" in the function '"), Name, Text("'"), IN_LINE],
    &[
        INJECTED,
        Text(" is injected in around line "),
        Number,
        Text(" by compiler to allow use of registers "),
        OneOf(&["defined by GMMA", "in GMMA"]),
        Text(" in function '"),
        Name,
        Text("'"),
    ],
    &[INJECTED, Text(" is injected in around line "), Free, Text(" in function '"), Name, Text("'")],
    &[
        Text("Insufficient registers ("),
        Number,
        Text(") to compile instruction at line "),
        Number,
        Text(" in function "),
        Name,
        Text(". Try to compile with register target of "),
        Number,
        Text(" or higher."),
    ],
    &[
        OneOf(&["Entry function '", "entry function '"]),
        Name,
        Text("' with max regcount of "),
        Number,
        Text(" calls function '"),
        Name,
        Text("' with regcount of "),
        Number,
    ],
    &[
        Text("Entry function '"),
        Name,
        TOO_MUCH,
        TOO_LARGE,
        Text(" ("),
        Word,
        Text(" bytes, "),
        Word,
        Text(" max)"),
        STOP,
    ],
    &[
        Text("Entry function '"),
        Name,
        TOO_MUCH,
        TOO_LARGE,
        Text(" ("),
        Word,
        Text(" bytes + "),
        Word,
        Text(" bytes system, "),
        Word,
        Text(" max)"),
        STOP,
    ],
    &[Text("Entry function '"), Name, TOO_MUCH, Free, Text(" max)"), STOP],
    &[Text("Unresolved extern function '"), Name, Text("'")],
    &[Text("Undefined reference to '"), Name, Text("' in '"), Free, Text("'")],
    &[Text("Multiple definition of '"), Name, Text("' in '"), Free, FIRST, Free, Text("'")],
    &[Text("Prototype doesn't match for '"), Name, Text("' in '"), Free, FIRST, Free, Text("'")],
    &[Text("Function '"), Name, Text("' uses "), Number, Text(" bytes stack but limited to "), Number],
    &[
        Text("Register allocation failed with register count of '"),
        Number,
        Text("'. Compile the program with a higher register target"),
    ],
    &[Text("File uses too much global constant data ("), Word, Text(" bytes, "), Word, Text(" max)")],
    &[
        Text("setmaxnreg.dec has register count ("),
        Number,
        Text(") which is larger than the largest temporal register count in the program ("),
        Number,
        Text(")"),
    ],
];

/// A text in pieces: the lines that it was broken into, without the blanks at their ends.
#[derive(Default)]
pub(super) struct Pieces {
    text: Vec<u8>,
    /// Where one piece ends and the next one begins.
    joints: Vec<usize>,
}

/// How much of a sentence a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    Whole {
        goes_on: GoesOn,
    },
    Begins {
        /// It ends within what may be anything.
        open: bool,
    },
    Not,
}

/// Whether a whole sentence may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GoesOn {
    No,
    /// With more digits of the figure that it ends with.
    Figure,
    /// With what only some releases say.
    Words,
}

/// What was found out about a text on the way through a sentence.
#[derive(Default)]
struct Trail {
    /// The joints where a blank stood.
    blanks: Vec<usize>,
    /// The name was broken where a blank may have stood, or not.
    unsure: bool,
}

/// A sentence that was put together.
pub(super) struct Joined {
    pub(super) text: Vec<u8>,
    /// Its name is the one that was printed.
    pub(super) sure: bool,
    pub(super) goes_on: GoesOn,
}

/// Where a text stops that is no more than the beginning of a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopsIn {
    Words,
    /// A name, as far as anybody can tell.
    Anything,
}

/// Where `text` stops, if it is the beginning of a sentence.
pub(super) fn beginning(text: &[u8]) -> Option<StopsIn> {
    match fit(text, &[], &mut Trail::default()) {
        Fit::Begins { open } => Some(if open { StopsIn::Anything } else { StopsIn::Words }),
        Fit::Whole { .. } | Fit::Not => None,
    }
}

/// Whether `text` may go on though it is a whole sentence.
pub(super) fn goes_on(text: &[u8]) -> GoesOn {
    // Nearly all end with another word.
    if !text.last().is_some_and(|last| last.is_ascii_digit() || b"')".contains(last)) {
        return GoesOn::No;
    }
    let Fit::Whole { goes_on } = fit(text, &[], &mut Trail::default()) else { return GoesOn::No };
    goes_on
}

impl Pieces {
    pub(super) fn new(first: &[u8]) -> Pieces {
        Pieces { text: first.to_vec(), joints: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    pub(super) fn push(&mut self, piece: &[u8]) {
        self.joints.push(self.text.len());
        self.text.extend_from_slice(piece);
    }

    /// Takes the last piece off again.
    pub(super) fn pop(&mut self) {
        if let Some(joint) = self.joints.pop() {
            self.text.truncate(joint);
        }
    }

    /// Whether there is more than one.
    pub(super) fn is_broken(&self) -> bool {
        !self.joints.is_empty()
    }

    /// All of them, one behind the other.
    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    pub(super) fn fit(&self) -> Fit {
        fit(&self.text, &self.joints, &mut Trail::default())
    }

    /// The sentence that these are, if they are one.
    pub(super) fn joined(&self) -> Option<Joined> {
        let mut trail = Trail::default();
        let Fit::Whole { goes_on } = fit(&self.text, &self.joints, &mut trail) else { return None };
        let mut text = Vec::with_capacity(self.text.len() + trail.blanks.len());
        let mut from = 0;
        for joint in trail.blanks {
            text.extend_from_slice(&self.text[from..joint]);
            text.push(b' ');
            from = joint;
        }
        text.extend_from_slice(&self.text[from..]);
        Some(Joined { text, sure: !trail.unsure, goes_on })
    }
}

/// The best that `text`, broken at `joints`, is of any sentence.
fn fit(text: &[u8], joints: &[usize], trail: &mut Trail) -> Fit {
    let start = match (Follower { text, joints }).after_code(trail) {
        Ok(start) => start,
        Err(fit) => return fit,
    };
    let follower = Follower { text: without_target(text), joints };
    let mut best = Fit::Not;
    for sentence in &SENTENCES {
        let mark = trail.blanks.len();
        match follower.sentence(sentence, start, trail) {
            whole @ Fit::Whole { .. } => {
                trail.blanks.extend(joints.binary_search(&follower.text.len()).map(|at| joints[at]));
                return whole;
            }
            Fit::Begins { open } => best = Fit::Begins { open: open && best != Fit::Begins { open: false } },
            Fit::Not => {}
        }
        trail.blanks.truncate(mark);
    }
    best
}

/// `text` without ` (target: sm_80)`, which nvlink appends where it links for several architectures.
fn without_target(text: &[u8]) -> &[u8] {
    let Some(inner) = text.strip_suffix(b")") else { return text };
    memchr::memmem::rfind(inner, b"(target: ").map_or(text, |at| text[..at].trim_ascii_end())
}

/// Follows a sentence through a text.
struct Follower<'t> {
    text: &'t [u8],
    joints: &'t [usize],
}

impl Follower<'_> {
    fn is_joint(&self, at: usize) -> bool {
        self.joints.binary_search(&at).is_ok()
    }

    /// Where the text goes on behind its code, if it has one.
    fn after_code(&self, trail: &mut Trail) -> Result<usize, Fit> {
        if !self.text.starts_with(b"(") {
            return Ok(0);
        }
        let digits = self.number(self.literal("(C", 0, trail)?)?;
        self.literal(") ", digits, trail)
    }

    /// How much of the sentence that goes on with `parts` the text from `at` on is.
    fn sentence(&self, parts: &[Part], at: usize, trail: &mut Trail) -> Fit {
        let Some((part, rest)) = parts.split_first() else {
            return if at == self.text.len() { Fit::Whole { goes_on: GoesOn::No } } else { Fit::Not };
        };
        let next = match *part {
            Text(literal) => self.literal(literal, at, trail),
            Number => self.number(at),
            OneOf(literals) => return self.one_of(literals, rest, at, trail),
            Name | Free | Word => return self.slot(*part, rest, at, trail),
            Optional(_) if at == self.text.len() => return Fit::Whole { goes_on: GoesOn::Words },
            Optional(parts) => return self.sentence(parts, at, trail),
        };
        match next {
            Ok(next) if next == self.text.len() && rest.is_empty() && matches!(part, Number) => {
                Fit::Whole { goes_on: GoesOn::Figure }
            }
            Ok(next) => self.sentence(rest, next, trail),
            Err(fit) => fit,
        }
    }

    /// Where `literal`, which starts at `at`, ends. A break stands for its blank, or for nothing.
    fn literal(&self, literal: &str, at: usize, trail: &mut Trail) -> Result<usize, Fit> {
        let mut at = at;
        let mut in_blanks = false;
        for byte in literal.bytes() {
            if byte == b' ' && std::mem::replace(&mut in_blanks, true) {
                continue;
            }
            in_blanks = byte == b' ';
            let here = self.text.get(at);
            match here {
                None => return Err(Fit::Begins { open: false }),
                Some(b' ') if in_blanks => at += self.text[at..].iter().take_while(|b| **b == b' ').count(),
                Some(_) if in_blanks && self.is_joint(at) => trail.blanks.push(at),
                Some(there) if *there == byte => at += 1,
                Some(_) => return Err(Fit::Not),
            }
        }
        Ok(at)
    }

    fn number(&self, at: usize) -> Result<usize, Fit> {
        let digits = self.text[at..].iter().take_while(|b| b.is_ascii_digit()).count();
        match digits {
            0 if at == self.text.len() => Err(Fit::Begins { open: false }),
            0 => Err(Fit::Not),
            _ => Ok(at + digits),
        }
    }

    fn one_of(&self, literals: &[&str], rest: &[Part], at: usize, trail: &mut Trail) -> Fit {
        let mut best = Fit::Not;
        for literal in literals {
            let mark = trail.blanks.len();
            let fit = match self.literal(literal, at, trail) {
                Ok(next) => self.sentence(rest, next, trail),
                Err(fit) => fit,
            };
            match fit {
                Fit::Not => trail.blanks.truncate(mark),
                Fit::Whole { .. } => return fit,
                Fit::Begins { .. } => best = fit,
            }
        }
        best
    }

    /// What may be anything ends at the first place where the sentence goes on: with its last words, or with words that
    /// something else follows that may be anything.
    fn slot(&self, slot: Part, rest: &[Part], start: usize, trail: &mut Trail) -> Fit {
        let open = Fit::Begins { open: true };
        let mut best = None;
        let mark = trail.blanks.len();
        for end in start + 1..self.text.len() {
            if matches!(slot, Word) && !is_of_word(self.text[end - 1]) {
                return best.unwrap_or(Fit::Not);
            }
            if !self.may_start(rest, end) {
                continue;
            }
            if matches!(slot, Free) {
                self.break_at_blanks(start, end, trail);
            }
            match self.sentence(rest, end, trail) {
                Fit::Not => {}
                _ if matches!(slot, Name) && !is_balanced(&self.text[start..end]) => {}
                Fit::Whole { goes_on } => {
                    trail.unsure = matches!(slot, Name) && self.breaks_doubtfully(start, end);
                    return Fit::Whole { goes_on };
                }
                fit if fit == open => return open,
                fit @ Fit::Begins { .. } => best = Some(fit),
            }
            trail.blanks.truncate(mark);
        }
        best.unwrap_or(open)
    }

    /// Whether what begins with `rest` may stand at `at`.
    fn may_start(&self, rest: &[Part], at: usize) -> bool {
        let Some(Text(literal)) = rest.first() else { return true };
        match literal.as_bytes().first() {
            Some(b' ') => self.text[at] == b' ' || self.is_joint(at),
            first => first == self.text.get(at),
        }
    }

    /// Where a sentence was broken that is not known word for word, there was a blank more often than not.
    fn break_at_blanks(&self, start: usize, end: usize, trail: &mut Trail) {
        let known = trail.blanks.last().copied();
        let joints = self.joints.iter().copied().filter(|joint| (start..end).contains(joint) && known != Some(*joint));
        trail.blanks.extend(joints);
    }

    /// Whether the name from `start` to `end` is broken where a blank may have stood: one that a filter made readable.
    fn breaks_doubtfully(&self, start: usize, end: usize) -> bool {
        let is_plain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$' | b'.');
        let is_broken = self.joints.iter().any(|joint| (start + 1..end).contains(joint));
        is_broken && !self.text[start..end].iter().all(is_plain)
    }
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Whether `name` does not end within its parameters, where it may hold quotes.
fn is_balanced(name: &[u8]) -> bool {
    let pairs = |open, close| bytecount::count(name, open) == bytecount::count(name, close);
    pairs(b'(', b')') && (pairs(b'<', b'>') || memchr::memmem::find(name, b"operator").is_some())
}
