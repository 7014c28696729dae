//! Reads the lines of a `cuobjdump` listing, of which only the figures say that it is one.

use super::{At, LOOK_BACK, LineReader, Understood};
use crate::model::Place;
use crate::parse::{listing, scan};

/// Lines of other tools that a listing may be interrupted by.
const LISTING_WITHIN: u32 = 16;
/// Lines of other tools that may stand between the first name of a listing and its figures.
const FOREIGN_BEFORE: u32 = 4;

impl LineReader<'_> {
    pub(super) fn read_listing(&mut self, at: At<'_>, line: &[u8]) -> Understood {
        if self.listing_for == 0 {
            self.look_back(at);
        }
        let at = at.after(line.len() - line.trim_ascii_start().len());
        match listing::read(line) {
            listing::Line::Arch(arch) => self.assembler.listed_arch(arch),
            listing::Line::Function(name) => self.assembler.listed_function(name, self.position.place(at)),
            listing::Line::Figures(listed) => {
                self.assembler.listed_figures(*listed, line.trim_ascii(), self.position.place(at));
            }
            listing::Line::Start => self.assembler.begin_listing(),
            listing::Line::Heading => {}
            listing::Line::Foreign => {
                self.listing_for = self.listing_for.saturating_sub(1);
                return Understood::Nothing;
            }
        }
        self.listing_for = LISTING_WITHIN;
        Understood::Report
    }

    /// The lines of a listing before its first figures: fatbin header, headings, the function's name.
    fn look_back(&mut self, at: At<'_>) {
        let floor = at.line.saturating_sub(LOOK_BACK);
        let mut lines: Vec<(usize, &[u8])> = Vec::new();
        let mut foreign = FOREIGN_BEFORE;
        let mut end = at.line;
        while end > floor {
            let start = scan::line_start(at.buffer, floor, end - 1);
            let line = &at.buffer[start..end - 1];
            if line.is_empty() {
                // Nothing, as between a carriage return and its line feed, which is of the line before.
                end = start;
                continue;
            }
            if listing::read(line) != listing::Line::Foreign {
                lines.push((start, line));
            } else if foreign == 0
                || lines.iter().any(|(_, line)| matches!(listing::read(line), listing::Line::Function(_)))
            {
                break;
            } else {
                foreign -= 1;
            }
            end = start;
        }
        self.listing_start = lines.last().map(|(start, _)| *start).filter(|_| foreign == FOREIGN_BEFORE);
        let here = self.position.place(At { column: 0, ..at });
        let feeds = |from: usize| bytecount::count(&at.buffer[from..at.line], b'\n');
        for (start, line) in lines.into_iter().rev() {
            let indent = line.len() - line.trim_ascii_start().len();
            match listing::read(line) {
                listing::Line::Arch(arch) => self.assembler.listed_arch(arch),
                listing::Line::Function(name) => {
                    let above = u32::try_from(feeds(start)).unwrap_or(u32::MAX);
                    let offset = here.offset - (at.line - start) as u64;
                    let place = Place { line: here.line.saturating_sub(above), offset, ..here };
                    self.assembler.listed_function(name, place.after(indent));
                }
                listing::Line::Start => self.assembler.begin_listing(),
                _ => {}
            }
        }
    }
}
