//! Where in a log something stands: lines and columns are counted no further than somebody asks.

use crate::model::Place;

/// Where something stands in the buffer; its line number is counted only when it is asked for.
#[derive(Clone, Copy)]
pub(in super::super) struct At<'b> {
    pub(super) buffer: &'b [u8],
    /// Start of the line.
    pub(super) line: usize,
    /// Bytes before it on the line.
    pub(super) column: usize,
}

impl At<'_> {
    pub(in super::super) fn after(self, bytes: usize) -> Self {
        At { column: self.column + bytes, ..self }
    }
}

/// Line numbers, counted no further than asked for.
pub(super) struct Position {
    input: u32,
    /// Offset in the log of the buffer's first byte.
    base: u64,
    /// Bytes of the buffer whose line feeds are counted.
    counted: usize,
    /// Line feeds before that.
    lines: u32,
    /// How far into its line, by offset, the columns were counted last, and how many they are.
    columns: Columns,
}

#[derive(Clone, Copy, Default)]
struct Columns {
    line: u64,
    bytes: usize,
    columns: u32,
}

impl Position {
    pub(super) fn new(input: u32) -> Position {
        Position { input, base: 0, counted: 0, lines: 0, columns: Columns::default() }
    }

    /// Whether the buffer holds the log from its start.
    pub(super) fn is_from_start(&self) -> bool {
        self.base == 0
    }

    /// The first `keep` bytes of the buffer go, none of which is after `done`.
    pub(super) fn forget(&mut self, buffer: &[u8], done: usize, keep: usize) {
        self.count(buffer, done);
        self.counted -= keep;
        self.base += keep as u64;
    }

    fn count(&mut self, buffer: &[u8], to: usize) {
        if self.counted < to {
            let feeds = bytecount::count(&buffer[self.counted..to], b'\n');
            self.lines = self.lines.saturating_add(u32::try_from(feeds).unwrap_or(u32::MAX));
            self.counted = to;
        }
    }

    pub(super) fn place(&mut self, at: At<'_>) -> Place {
        self.count(at.buffer, at.line);
        Place {
            input: self.input,
            line: self.lines.saturating_add(1),
            column_offset: self.columns(at),
            offset: self.base + (at.line + at.column) as u64,
        }
    }

    /// The columns before `at`; a line may hold thousands of records, so that they are counted on from the last.
    fn columns(&mut self, at: At<'_>) -> u32 {
        let line = self.base + at.line as u64;
        let known = Some(self.columns).filter(|known| known.line == line && known.bytes <= at.column);
        let known = known.unwrap_or(Columns { line, ..Columns::default() });
        let Some(text) = at.buffer.get(at.line + known.bytes..at.line + at.column) else { return 0 };
        let columns = known.columns.saturating_add(Place::columns(text));
        self.columns = Columns { line, bytes: at.column, columns };
        columns
    }

    /// The same for a line that is known to be `below` lines below the one asked for last.
    pub(super) fn place_below(&mut self, below: u32, at: At<'_>) -> Place {
        self.lines = self.lines.saturating_add(below);
        self.counted = at.line;
        self.place(at)
    }
}
