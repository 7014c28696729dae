//! The last lines of a log, where a build that was killed says so in words without a colon.
//!
//! Elsewhere such lines are not looked for: that would take another pass over every log, and where a build goes on after
//! them, the build tool says in its own words that a step failed.

use super::nvcc;
use super::reader::LineReader;
use super::{clean, envelope, scan};
use crate::model::Unread;

/// How much of the end of a log is looked at; that much is in the buffer, however the log was read.
const WITHIN: usize = 4096;

impl LineReader<'_> {
    /// Looks at the end of the log, which is the end of `buffer`.
    pub(super) fn take_last_words(&mut self, buffer: &[u8]) {
        let mut at = self.first_line_within(buffer);
        while at < buffer.len() {
            let end = scan::line_end(buffer, at, buffer.len());
            let line = &buffer[at..end];
            // A line with the colon of an error, or with damage, was read when it came.
            let new = !scan::holds_error(line) && !clean::may_need_it(line);
            if new && let Some(failure) = nvcc::failure_in_words(line) {
                let place = self.place_before(buffer, at);
                self.keep_failure(failure, line, place);
            }
            at = end + 1;
        }
    }

    /// Tells that the log ends within what stands before every message of a CUDA tool, which is the end of `buffer`.
    pub(super) fn note_stub(&mut self, buffer: &[u8]) {
        let floor = buffer.len().saturating_sub(WITHIN);
        let start = scan::line_start(buffer, floor, buffer.len());
        let line = &buffer[start..];
        let follows_records = self.facts().records > 0;
        if self.is_cut()
            && let Some(stub) = envelope::stub_in(line, follows_records)
        {
            let place = self.place_before(buffer, start).after(stub);
            self.assembler.unread(Unread::Cut, line[stub..].trim_ascii_end(), place);
        }
    }

    /// The first whole line of those that are looked at.
    fn first_line_within(&self, buffer: &[u8]) -> usize {
        let floor = buffer.len().saturating_sub(WITHIN);
        if floor == 0 && self.has_whole_log() {
            return 0;
        }
        scan::line_end(buffer, floor, buffer.len()) + 1
    }
}
