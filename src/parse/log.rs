//! Reads a build log as it streams by: one pass, no copy of the input, whatever is in it.

use std::io::{self, Read, Write};

use super::decode::Decoded;
use super::envelope;
use super::nvcc;
use super::reader::{LineReader, Understood};
use super::scan::{self, Scanner};
use crate::model::{InputFacts, Report};

/// Bytes asked for at once.
const READ: usize = 256 * 1024;
/// Longest line that is carried from one read to the next; of a longer one the beginning is read and the rest skipped.
pub(super) const LONG_LINE: usize = 1024 * 1024;
/// Bytes before the unread ones that stay in the buffer, for the header of a listing.
const BEHIND: usize = 4096;

/// Bytes at the start of a log in which a NUL shows that it is none.
const BINARY_WITHIN: u64 = 8192;

/// What becomes of lines that are no resource report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EchoMode {
    /// They are dropped.
    #[default]
    None,
    /// They are passed on.
    Others,
    /// All lines are passed on.
    All,
}

/// Passes lines on while the log is read.
pub struct Echo<'w> {
    mode: EchoMode,
    to: &'w mut dyn Write,
}

impl<'w> Echo<'w> {
    /// Passes on to `to` what `mode` says. Errors of `to` are ignored: a closed stderr must not stop a lint.
    pub fn new(mode: EchoMode, to: &'w mut dyn Write) -> Echo<'w> {
        Echo { mode, to }
    }

    fn write(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            let _ = self.to.write_all(bytes);
        }
    }
}

/// Reads a log to its end into `report`, under `name`.
///
/// # Errors
///
/// What `source` returns; all that was read before it is kept.
pub fn read_log(source: &mut dyn Read, name: &str, report: &mut Report, echo: &mut Echo<'_>) -> io::Result<()> {
    let input = u32::try_from(report.inputs.len()).unwrap_or(u32::MAX);
    report.inputs.push(InputFacts { name: name.to_owned(), ..InputFacts::default() });
    let mut log = Log {
        lines: LineReader::new(report, input),
        echo,
        echoed: 0,
        swallowed_return: false,
        reports: false,
        commands: nvcc::MAX_COMMANDS,
    };
    let result = log.pump(&mut Decoded::new(source));
    log.lines.finish();
    result
}

struct Log<'r, 'e, 'w> {
    lines: LineReader<'r>,
    echo: &'e mut Echo<'w>,
    /// Bytes of the buffer that are echoed or swallowed.
    echoed: usize,
    /// What was swallowed last ended in a carriage return whose line feed had not come.
    swallowed_return: bool,
    /// A report was read.
    reports: bool,
    /// Commands that are still to be looked at.
    commands: usize,
}

/// The bytes at hand, of which those from `start` to `fill` are not read yet.
struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    fill: usize,
}

impl Log<'_, '_, '_> {
    fn pump(&mut self, source: &mut dyn Read) -> io::Result<()> {
        let mut buffer = Buffer { bytes: vec![0; BEHIND + READ], start: 0, fill: 0 };
        let mut skipping = false;
        loop {
            let read = match source.read(&mut buffer.bytes[buffer.fill..]) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    self.process(&buffer.bytes[..buffer.fill], buffer.start, buffer.fill);
                    return Err(error);
                }
            };
            let new = buffer.fill..buffer.fill + read;
            buffer.fill += read;
            self.swallow_line_feed(&buffer.bytes[..buffer.fill], new.start);
            self.look_at(&buffer.bytes[new.clone()]);
            let end = memchr::memrchr2(b'\n', b'\r', &buffer.bytes[new.clone()]).map(|at| new.start + at + 1);
            match end {
                Some(end) => {
                    if skipping {
                        buffer.start = scan::line_end(&buffer.bytes, new.start, end);
                        skipping = false;
                    }
                    self.process(&buffer.bytes[..buffer.fill], buffer.start, end);
                    buffer.start = end;
                }
                None if skipping => buffer.start = buffer.fill,
                None if buffer.fill - buffer.start > LONG_LINE => {
                    let end = buffer.start + LONG_LINE;
                    self.process(&buffer.bytes[..end], buffer.start, end);
                    buffer.start = buffer.fill;
                    skipping = true;
                }
                None => {}
            }
            self.echo_rest(&buffer.bytes, buffer.start);
            self.make_room(&mut buffer);
        }
        self.lines.ends_cut(buffer.start < buffer.fill && !skipping);
        self.process(&buffer.bytes[..buffer.fill], buffer.start, buffer.fill);
        self.lines.take_last_words(&buffer.bytes[..buffer.fill]);
        self.lines.note_stub(&buffer.bytes[..buffer.fill]);
        self.echo_rest(&buffer.bytes, buffer.fill);
        Ok(())
    }

    /// Moves what is not done with to the front, when the buffer's end is near.
    fn make_room(&mut self, buffer: &mut Buffer) {
        if buffer.bytes.len() - buffer.fill >= READ / 2 {
            return;
        }
        let keep = buffer.start.saturating_sub(BEHIND).min(self.echoed);
        self.lines.forget(&buffer.bytes, buffer.start, keep);
        buffer.bytes.copy_within(keep..buffer.fill, 0);
        buffer.start -= keep;
        buffer.fill -= keep;
        self.echoed -= keep;
        if buffer.bytes.len() - buffer.fill < READ / 2 {
            buffer.bytes.resize(buffer.bytes.len() + READ, 0);
        }
    }

    /// Facts of new bytes as such.
    fn look_at(&mut self, new: &[u8]) {
        let facts = self.lines.facts();
        let head = usize::try_from(BINARY_WITHIN.saturating_sub(facts.bytes)).unwrap_or(0).min(new.len());
        facts.binary |= memchr::memchr(0, &new[..head]).is_some();
        facts.bytes += new.len() as u64;
    }

    fn echo_rest(&mut self, buffer: &[u8], to: usize) {
        if self.echoed < to {
            if self.echo.mode != EchoMode::None {
                self.echo.write(&buffer[self.echoed..to]);
            }
            self.echoed = to;
        }
    }

    /// Reads whole lines.
    fn process(&mut self, buffer: &[u8], start: usize, end: usize) {
        let mut first_report = None;
        let mut scanner = Scanner::new(end);
        let mut at = start;
        while at < end {
            // Records come in bursts: the next line is often one too, and then needs no search.
            let (line, found) = if self.lines.wants_every_line() || envelope::plain(&buffer[at..end]).is_some() {
                (at, at)
            } else {
                match scanner.find(buffer, at, self.lines.wants_rare_signs()) {
                    Some(found) => (scan::line_start(buffer, at, found), found),
                    None => break,
                }
            };
            let (line_end, understood) = match self.lines.take_plain(&buffer[..end], line) {
                Some(taken) => taken,
                None => {
                    let line_end = scan::line_end(buffer, found, end);
                    let long = found - line >= LONG_LINE;
                    let understood =
                        if long { Understood::Nothing } else { self.lines.take(buffer, line..line_end, found - line) };
                    (line_end, understood)
                }
            };
            let from = self.lines.report_start(line);
            if understood == Understood::Report {
                if self.echo.mode == EchoMode::Others {
                    self.swallow(buffer, from, line_end);
                }
                first_report.get_or_insert(line);
            }
            at = line_end + 1;
        }
        self.look_at_commands(&buffer[start..first_report.unwrap_or(end)]);
        self.reports |= first_report.is_some();
    }

    /// Facts that only what comes before the first report of a log tells.
    fn look_at_commands(&mut self, text: &[u8]) {
        if self.reports || text.is_empty() {
            return;
        }
        let facts = self.lines.facts();
        facts.compiles_cuda = facts.compiles_cuda || nvcc::compiles_cuda(text);
        facts.toolkit = facts.toolkit.or_else(|| nvcc::toolkit(text));
        let options = nvcc::options(text, &mut self.commands);
        facts.debug |= options.debug;
        facts.separate |= options.separate;
    }

    /// Takes a line, with its end, out of what is echoed.
    fn swallow(&mut self, buffer: &[u8], start: usize, end: usize) {
        self.echo_rest(buffer, start);
        let crlf = buffer[end..].starts_with(b"\r\n");
        self.echoed = (end + 1 + usize::from(crlf)).min(buffer.len());
        self.swallowed_return = &buffer[end..] == b"\r";
    }

    /// The line feed of a line that was swallowed when its carriage return was the last byte at hand.
    fn swallow_line_feed(&mut self, buffer: &[u8], new: usize) {
        if std::mem::take(&mut self.swallowed_return) && buffer[new..].starts_with(b"\n") && self.echoed == new {
            self.echoed += 1;
        }
    }
}
