//! The text of a function that is being lowered.

use std::io::Write as _;
use std::ops::Range;
use std::sync::LazyLock;

use super::weigh::Weight;
use crate::parse::needles::Needles;

/// The text of one function's body, and where its parts come from.
#[derive(Debug, Default)]
pub(super) struct Output {
    pub(super) text: Vec<u8>,
    /// Registers `%v…` and `%p…`.
    pub(super) registers: u32,
    pub(super) predicates: u32,
    pub(super) parameters: u32,
    /// What was written so far costs about so much.
    pub(super) weight: u32,
    labels: u32,
    /// Branches: their bytes in `text`, and the bytes of their statements in the source.
    pub(super) branches: Vec<(u32, Range<u32>)>,
    /// Barriers likewise.
    pub(super) barriers: Vec<(u32, u32)>,
    /// Exchanges without `.sync`, and the words that they are written with.
    pub(super) exchanges: Vec<(u32, Box<[u8]>)>,
    /// The place that was written last.
    place: (usize, u32),
}

/// What a call of which nothing is known costs about.
const GUESS: u32 = 20;

/// A place in the code.
pub(super) type Label = u32;

impl Output {
    pub(super) fn at(&self) -> u32 {
        u32::try_from(self.text.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn register(&mut self) -> u32 {
        self.registers += 1;
        self.registers - 1
    }

    pub(super) fn predicate(&mut self) -> u32 {
        self.predicates += 1;
        self.predicates - 1
    }

    pub(super) fn label(&mut self) -> Label {
        self.labels += 1;
        self.labels - 1
    }

    pub(super) fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // A vector takes all that is written to it.
        let _ = self.text.write_fmt(line);
        self.weight = self.weight.saturating_add(1);
        self.text.push(b'\n');
    }

    pub(super) fn place(&mut self, place: (usize, u32)) {
        if self.place != place {
            self.place = place;
            self.line(format_args!(".loc 1 {} {}", place.0, place.1));
        }
    }

    pub(super) fn put(&mut self, label: Label) {
        self.line(format_args!("$L{label}:"));
    }

    pub(super) fn jump(&mut self, label: Label) {
        self.line(format_args!("bra.uni $L{label};"));
    }

    /// So many instructions that cost what they do, and do nothing.
    pub(super) fn fill(&mut self, count: u32) {
        self.weight = self.weight.saturating_add(count);
        for _ in 0..count {
            self.text.extend_from_slice(b"add.f32 %f0, %f0, %f0;\n");
        }
    }

    /// The same in fewer lines: what weighs so much.
    pub(super) fn fill_weight(&mut self, weight: u32) {
        // One of these weighs six.
        self.weight = self.weight.saturating_add(weight / 6 * 6);
        for _ in 0..weight / 6 {
            self.text.extend_from_slice(b"div.approx.f32 %f0, %f0, %f0;\n");
        }
        self.fill(weight % 6);
    }

    /// What a call costs.
    pub(super) fn fill_call(&mut self, weight: Weight) {
        self.fill_weight(weight.known);
        for _ in 0..weight.guesses {
            self.guess();
        }
    }

    /// A call of which nothing is known.
    pub(super) fn guess(&mut self) {
        self.weight = self.weight.saturating_add(GUESS);
        self.text.extend_from_slice(b"call.uni $unknown;\n");
    }

    /// Appends the body of the function, with its braces; where what was written begins in it.
    pub(super) fn write_body(&self, text: &mut Vec<u8>) -> usize {
        let registers = format!("{{\n.reg .pred %p<{}>;\n.reg .b64 %v<{}>;\n", self.predicates, self.registers);
        text.extend_from_slice(registers.as_bytes());
        let start = text.len();
        text.extend_from_slice(&self.text);
        text.extend_from_slice(b"ret;\n}\n");
        start
    }

    /// Sets a register to what nobody knows.
    pub(super) fn unknown(&mut self, register: u32) {
        self.line(format_args!("ld.local.b64 %v{register}, [u];"));
    }
}

/// Words without which no thread of a function is told from another, nor passes values to one.
static WORDS: LazyLock<Option<Needles>> = LazyLock::new(|| {
    Needles::new(&[
        "threadIdx",
        "thread_rank",
        "thread_index",
        "lane",
        "Lane",
        "warp",
        "Warp",
        "%tid",
        "RowMajorTid",
        "__shfl",
        "__any",
        "__all",
        "__ballot",
    ])
});

/// Whether a body may tell threads apart.
pub(super) fn may_matter(body: &[u8]) -> bool {
    WORDS.as_ref().is_none_or(|words| words.are_in(body))
}
