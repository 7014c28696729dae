//! Takes what is whole and has nothing to do with what is open, as nearly all of a log is, without reading it line by line.

use super::texts::repeated_sentence;
use super::{At, LineReader, Understood};
use crate::parse::assemble::Places;
use crate::parse::envelope::{self, Envelope, Severity};
use crate::parse::log::LONG_LINE;
use crate::parse::{block, scan};

impl LineReader<'_> {
    /// Reads what stands at `start` if it is an undamaged message of ptxas that nothing open has a claim on: a whole report
    /// of a kernel or device function, or the line of a warning. Where that ends.
    pub(in crate::parse) fn take_plain(&mut self, buffer: &[u8], start: usize) -> Option<(usize, Understood)> {
        let text = &buffer[start..];
        let envelope = envelope::plain(text)?;
        if self.wants_every_line() {
            return None;
        }
        if envelope.severity == Severity::Info {
            return Some((start + self.take_block(buffer, start)?, Understood::Report));
        }
        let end = scan::line_end(buffer, start, buffer.len());
        let line = &buffer[start..end];
        if line.len() >= LONG_LINE {
            return None;
        }
        let at = At { buffer, line: start, column: 0 };
        if self.take_sentence(at, line, envelope) {
            return Some((end, Understood::Message));
        }
        Some((end, self.read_message(at, line, envelope)))
    }

    /// A sentence that is known to its end, so that nothing else can be on its line.
    fn take_sentence(&mut self, at: At<'_>, line: &[u8], envelope: Envelope) -> bool {
        let (lead, text) = line.split_at(envelope.text);
        let Some(sentence) = repeated_sentence(envelope.severity, text.trim_ascii_end()) else { return false };
        self.assembler.sentence(&sentence, lead, || self.position.place(at.after(lead.len())));
        true
    }

    fn take_block(&mut self, buffer: &[u8], start: usize) -> Option<usize> {
        if !self.assembler.is_idle() {
            return None;
        }
        let text = &buffer[start..];
        let (lines, end) = match text.get(16) {
            Some(b'C') => self.take_kernel(buffer, start)?,
            Some(b'F') => (2, self.take_function(buffer, start)?),
            _ => return None,
        };
        self.met_records = true;
        self.assembler.facts().records += lines;
        Some(end)
    }

    /// How many lines, and where they end, counted from `start`.
    fn take_kernel(&mut self, buffer: &[u8], start: usize) -> Option<(u64, usize)> {
        let block = block::kernel(&buffer[start..], &mut self.assembler)?;
        let position = &mut self.position;
        let at = |line: usize, column: usize| At { buffer, line: start + line, column };
        let places = || Places {
            name: position.place(at(0, 0)),
            frame: position.place_below(2, at(block.frame_line, 4)),
            used: position.place_below(1, at(block.used_line, 16)),
        };
        if !self.assembler.whole_kernel(&block, places) {
            return None;
        }
        let after = block.end + 1;
        match block::time(&buffer[start + after..]) {
            Some((ms, end)) => {
                self.assembler.compile_time(ms);
                Some((5, after + end))
            }
            None => Some((4, block.end)),
        }
    }

    fn take_function(&mut self, buffer: &[u8], start: usize) -> Option<usize> {
        let block = block::function(&buffer[start..], &mut self.assembler)?;
        let position = &mut self.position;
        let at = |line: usize, column: usize| At { buffer, line: start + line, column };
        let places = || (position.place(at(0, 0)), position.place_below(1, at(block.frame_line, 4)));
        self.assembler.whole_function(&block, places).then_some(block.end)
    }
}
