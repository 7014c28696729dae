//! Reads the lines of a `cuobjdump` listing, of which only the figures say that it is one.

use std::ops::Range;

use super::{At, LOOK_BACK, LineReader, Understood};
use crate::model::Place;
use crate::parse::listing::Lead;
use crate::parse::{clean, listing, quoted, scan};

/// Lines of other tools that a listing may be interrupted by.
const LISTING_WITHIN: u32 = 16;
/// Lines of other tools that may stand between the first name of a listing and its figures.
const FOREIGN_BEFORE: u32 = 4;

/// Which part of a listing the line at hand stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Part {
    /// The header of code that figures follow.
    Header,
    /// The header of PTX or another code without figures, whose architecture is none that figures are for.
    OtherHeader,
    #[default]
    Figures,
}

impl LineReader<'_> {
    pub(super) fn read_listing(&mut self, at: At<'_>, line: &[u8]) -> Understood {
        let mut scratch = std::mem::take(&mut self.scratch);
        let understood = self.read_clean_listing(at, cleaned(line, &mut scratch));
        self.scratch = scratch;
        understood
    }

    fn read_clean_listing(&mut self, at: At<'_>, line: &[u8]) -> Understood {
        let figures = listing::figures_in(line);
        let before = figures.map_or(&b""[..], |figures| line[..figures].trim_ascii_end());
        if quoted::ends_line(before) {
            let string = memchr::memrchr(b'"', before).map_or(0, |quote| quote + 1);
            return self.read_quoted_listing(at, &line[string..]);
        }
        if let (Some(figures), Some(name)) = (figures, listing::name_before(before)) {
            return self.read_named_figures(at, line, name, figures);
        }
        match figures {
            Some(figures) if self.listing_for == 0 || self.listing_lead.end_in(line) != Some(figures) => {
                self.find_listing(at, &line[..figures]);
            }
            None if self.listing_for == 0 => return Understood::Nothing,
            _ => {}
        }
        let (column, read) = self.read_listed(line);
        self.select_stream(&line[..column]);
        if !self.list(read, |reader| reader.position.place(at.after(column)), line[column..].trim_ascii_end()) {
            self.listing_for = self.listing_for.saturating_sub(1);
            return Understood::Nothing;
        }
        self.listing_for = LISTING_WITHIN;
        Understood::Report
    }

    /// A listing inside a `string`, all of which stands on one line.
    fn read_quoted_listing(&mut self, at: At<'_>, string: &[u8]) -> Understood {
        let Some(lines) = quoted::lines(string) else { return Understood::Nothing };
        let place = self.position.place(at);
        let mut understood = Understood::Nothing;
        self.assembler.leave_listing();
        self.listing_part = Part::default();
        self.header_open = false;
        for line in lines.split(|byte| *byte == b'\n') {
            // The quote that ends the string is in no figure.
            let end = if line.trim_ascii_start().starts_with(b"REG:") { memchr::memchr(b'\'', line) } else { None };
            let line = &line[..end.unwrap_or(line.len())];
            let read = listing::read(clean::without_tail(line.trim_ascii_end()), false);
            if self.list(read, |_| place, line.trim_ascii()) {
                understood = Understood::Report;
            }
        }
        understood
    }

    /// A line with the name of a function, which is at `name`, and with its figures.
    fn read_named_figures(&mut self, at: At<'_>, line: &[u8], name: Range<usize>, figures: usize) -> Understood {
        let lead = &line[..name.start];
        if self.listing_for == 0 || self.listing_lead.end_in(line) != Some(name.start) {
            self.find_listing(at, lead);
        }
        self.select_stream(lead);
        let place = self.position.place(at.after(name.start));
        let text = clean::without_tail(line[figures..].trim_ascii_end());
        let named = listing::read(line[name].trim_ascii(), false);
        let read = listing::read(text, self.is_cut());
        if !self.list(named, |_| place, &[]) || !self.list(read, |_| place, text) {
            return Understood::Nothing;
        }
        self.listing_for = LISTING_WITHIN;
        Understood::Report
    }

    /// Figures show that there is a listing, with `lead` before each of its lines.
    fn find_listing(&mut self, at: At<'_>, lead: &[u8]) {
        if self.listing_for > 0 {
            self.assembler.leave_listing();
        }
        self.listing_part = Part::default();
        self.header_open = false;
        self.listing_lead = Lead::new(lead);
        self.look_back(at);
    }

    /// What a line of the listing holds, and where that starts.
    fn read_listed<'l>(&self, line: &'l [u8]) -> (usize, listing::Line<'l>) {
        match self.listing_lead.end_in(line) {
            Some(column) => {
                (column, listing::read(clean::without_tail(line[column..].trim_ascii_end()), self.is_cut()))
            }
            None if line.trim_ascii().is_empty() => (line.len(), listing::Line::Heading),
            None => (0, listing::Line::Foreign),
        }
    }

    /// Takes a line of a listing; false where it is none.
    fn list(&mut self, read: listing::Line<'_>, place: impl FnOnce(&mut Self) -> Place, text: &[u8]) -> bool {
        use listing::Line;
        let part = self.listing_part;
        self.listing_part = match read {
            Line::Fatbin { elf: false } => Part::OtherHeader,
            Line::Fatbin { elf: true } => Part::Header,
            Line::Arch(_) if part == Part::Figures => Part::Header,
            Line::Function(_) | Line::Figures(_) | Line::Start => Part::Figures,
            _ => part,
        };
        self.header_open = match read {
            Line::Fatbin { .. } | Line::Arch(_) => true,
            Line::Function(_) | Line::Figures(_) | Line::Start => false,
            _ => self.header_open,
        };
        match read {
            Line::Arch(arch) if self.listing_part == Part::Header => self.assembler.listed_arch(arch),
            Line::Function(name) => {
                let place = place(self);
                self.assembler.listed_function(name, place);
            }
            Line::Figures(listed) => {
                let place = place(self);
                self.assembler.listed_figures(*listed, text, place);
            }
            Line::Start => self.assembler.begin_listing(),
            Line::Fatbin { .. } => self.assembler.listed_arch(None),
            Line::Arch(_) | Line::Heading => {}
            Line::Field => return self.header_open,
            Line::Foreign => return false,
        }
        true
    }

    /// The lines of a listing before its first figures: fatbin header, headings, the function's name.
    fn look_back(&mut self, at: At<'_>) {
        let floor = at.line.saturating_sub(LOOK_BACK);
        let mut lines: Vec<(usize, Vec<u8>)> = Vec::new();
        let mut named = false;
        let mut foreign = FOREIGN_BEFORE;
        // Fields below a header that has not come yet.
        let mut fields = 0;
        let mut end = at.line;
        while end > floor {
            let start = scan::line_start(at.buffer, floor, end - 1);
            let mut scratch = Vec::new();
            let line = cleaned(&at.buffer[start..end - 1], &mut scratch);
            end = start;
            if line.is_empty() {
                // Nothing, as between a carriage return and its line feed, which is of the line before.
                continue;
            }
            let (_, read) = self.read_listed(line);
            match read {
                listing::Line::Field => fields += 1,
                listing::Line::Foreign if foreign == 0 || named => break,
                listing::Line::Foreign => foreign -= 1,
                listing::Line::Fatbin { .. } | listing::Line::Arch(_) => fields = 0,
                _ => {}
            }
            named |= matches!(read, listing::Line::Function(_));
            if !matches!(read, listing::Line::Field | listing::Line::Foreign) {
                lines.push((start, line.to_vec()));
            }
        }
        self.listing_start = lines.last().map(|(start, _)| *start).filter(|_| foreign == FOREIGN_BEFORE && fields == 0);
        let here = self.position.place(At { column: 0, ..at });
        for (start, line) in lines.into_iter().rev() {
            let (column, read) = self.read_listed(&line);
            let place = |_: &mut Self| {
                let feeds = bytecount::count(&at.buffer[start..at.line], b'\n');
                let above = u32::try_from(feeds).unwrap_or(u32::MAX);
                let offset = here.offset - (at.line - start) as u64;
                Place { line: here.line.saturating_sub(above), offset, ..here }.after(column)
            };
            // Figures before these were read when they came.
            if !matches!(read, listing::Line::Figures(_)) {
                self.select_stream(&line[..column]);
                self.list(read, place, &line);
            }
        }
    }
}

/// The line without what a terminal or a browser put there.
fn cleaned<'l>(line: &'l [u8], scratch: &'l mut Vec<u8>) -> &'l [u8] {
    if clean::may_need_it(line) && clean::clean(line, scratch) { scratch } else { line }
}
