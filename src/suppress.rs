//! Comments that speak to warplint: what they allow, the block that they tell, and where they have effect.
//!
//! `// warplint: allow(rule, group) reason`, `// warplint: allow-file(rule)` and `// warplint: block=16x16`, in PTX and in
//! CUDA sources alike. Bytes in, comments with their places out; what the names mean is settled later.

mod quoted;

use std::ops::Range;

use hashbrown::{HashMap, HashSet};
use memchr::{memchr, memchr2, memmem, memrchr2};

use crate::model::{BlockSize, Declaration, Module, Names, Place, Quote, Report, Spot, Unit};

/// What every such comment begins with.
const MARK: &[u8] = b"warplint:";

/// One comment, as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    /// What it says.
    pub said: Vec<Said>,
    /// Why.
    pub reason: Option<String>,
    /// Its line, from 1.
    pub line: u32,
    /// Its bytes.
    pub span: Range<usize>,
    /// Whether nothing else stands on its line.
    pub is_alone: bool,
    /// The first byte of code after it, comments and blanks between left out; the length of the text where none follows.
    pub next: usize,
    /// The line of that byte.
    pub next_line: u32,
}

/// One thing that a comment says, with the bytes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// What.
    pub what: What,
    /// Its bytes in the text.
    pub span: Range<usize>,
}

/// What can be said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// That findings of this rule or group are fine.
    Allow {
        /// The name as written.
        name: String,
        /// Whether that holds for all of the file.
        in_file: bool,
    },
    /// The block that the kernel is launched with.
    Block(BlockSize),
    /// Nothing that could be understood.
    Fault(Fault),
}

/// What is wrong with a comment, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong, as a sentence without a full stop.
    pub message: String,
    /// What to do.
    pub help: String,
}

/// Something that a comment says, at its place among all inputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// What.
    pub what: What,
    /// Why.
    pub reason: Option<String>,
    /// The line of the comment.
    pub quote: Quote,
    /// Its bytes in the text of the line.
    pub span: (usize, usize),
    /// What it has effect on.
    pub scope: Scope,
    /// Whether the run looked at all of that, so that what it silences would have been seen.
    pub is_seen: bool,
}

impl Remark {
    /// Whether its file was given, or is one of those that were `placed`: of files that were searched for, those that
    /// something of the run stands in.
    #[must_use]
    pub fn is_of_run(&self, placed: &HashSet<u32>) -> bool {
        let input = self.quote.place.input;
        input < Place::SOURCE || placed.contains(&input)
    }
}

/// What a comment has effect on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// A file, by its number among inputs and sources.
    File(u32),
    /// A kernel, an index of [`crate::model::Report::kernels`].
    Kernel(u32),
    /// All kernels of a declaration in a source, an index of [`crate::model::Report::families`].
    Family(u32),
    /// A line of a file.
    Line(u32, u32),
    /// A kernel that a filter left out.
    Nothing,
}

/// Finds every comment in a file that speaks to warplint, in order.
#[must_use]
pub fn read(text: &[u8]) -> Vec<Comment> {
    let mut comments: Vec<Comment> = Vec::new();
    let mut lines = Lines { text, counted: 0, line: 1 };
    let mut past = 0;
    // Most files do not speak to warplint, and then nothing of this is asked.
    let mut strings: Option<Vec<Range<usize>>> = None;
    for at in memmem::find_iter(text, MARK) {
        if at < past {
            // A part of what was read as a reason.
            continue;
        }
        // The slash that closes a comment opens none.
        let Some(opening) = opening(text, at).filter(|opening| opening.at >= past) else { continue };
        let strings = strings.get_or_insert_with(|| quoted::quoted(text));
        let before = strings.partition_point(|string| string.start < opening.at);
        if before.checked_sub(1).is_some_and(|before| strings[before].end > opening.at) {
            continue;
        }
        let mut comment = comment(text, at, opening);
        comment.line = lines.of(comment.span.start);
        past = comment.span.end;
        comments.push(comment);
    }
    follow(text, &mut comments);
    comments
}

/// What the comments of all PTX modules say. Their lines are kept in `report`, whose functions were told their kernels.
#[must_use]
pub fn of_modules(report: &mut Report) -> Vec<Remark> {
    let mut remarks = Vec::new();
    for module in &report.modules {
        let is_whole = module.functions.iter().all(|function| function.kernel.is_some());
        for comment in read(&module.text) {
            let (own, is_seen) = scope(module, &comment);
            let quote = quote(&module.text, &comment, module.input, &mut report.texts);
            remarks.extend(comment.said.iter().map(|said| {
                let (scope, is_seen) = match said.what {
                    What::Allow { in_file: true, .. } => (Scope::File(module.input), is_whole),
                    _ => (own, is_seen),
                };
                remark(&comment, said, quote, scope, is_seen)
            }));
        }
    }
    tell_misplaced(&mut remarks);
    remarks
}

/// What a comment in a module has effect on, and whether the run looked at all of it.
fn scope(module: &Module, comment: &Comment) -> (Scope, bool) {
    let functions = &module.functions;
    let kernel = |at: usize| match functions[at].kernel {
        Some(kernel) => (Scope::Kernel(kernel), true),
        None => (Scope::Nothing, false),
    };
    if comment.is_alone
        && let Ok(at) = functions.binary_search_by_key(&comment.next, |function| function.head.0)
    {
        return kernel(at);
    }
    // The last function whose head line begins before the comment does.
    let at =
        functions.partition_point(|function| function.head.0 <= comment.span.start || function.head.1 == comment.line);
    let around = at.checked_sub(1).map(|at| (at, &functions[at]));
    let line = if comment.is_alone { comment.next_line } else { comment.line };
    match around {
        Some((at, function)) if comment.span.start < function.body.start || function.body_line == comment.line => {
            kernel(at)
        }
        Some((_, function)) if comment.span.start < function.body.end && function.kernel.is_none() => {
            (Scope::Nothing, false)
        }
        _ => (Scope::Line(module.input, line), true),
    }
}

/// The line of a comment.
fn quote(text: &[u8], comment: &Comment, input: u32, texts: &mut Names) -> Quote {
    let line = line_around(text, comment);
    let place = Place { input, line: comment.line, column_offset: 0, offset: line.start as u64 };
    Quote { place, text: texts.intern(&text[line]) }
}

/// The bytes of the line of a comment.
fn line_around(text: &[u8], comment: &Comment) -> Range<usize> {
    let at = comment.span.start;
    // Of a line without an end, what is far from the comment matters less.
    let first = at.saturating_sub(LONGEST);
    let start = memrchr2(b'\n', b'\r', &text[first..at]).map_or(first, |at| first + at + 1);
    let rest = &text[start..text.len().min(start + 2 * LONGEST)];
    let end = memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
    start..start + end
}

/// A comment of a source, with its line: the text of a source is not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    comment: Comment,
    /// Where its line begins.
    offset: usize,
    line: Vec<u8>,
}

/// The comments of a source, for when its text is gone.
#[must_use]
pub fn keep(text: &[u8]) -> Vec<Kept> {
    let kept = |comment: Comment| {
        let line = line_around(text, &comment);
        Kept { offset: line.start, line: text[line].to_vec(), comment }
    };
    read(text).into_iter().map(kept).collect()
}

/// What the comments of units say, `kept` by the units' indices. Their lines are kept in `report`, whose families were told
/// their kernels.
#[must_use]
pub fn of_units(report: &mut Report, kept: &[(u32, Vec<Kept>)]) -> Vec<Remark> {
    if kept.iter().all(|(_, comments)| comments.is_empty()) {
        return Vec::new();
    }
    let mut families: HashMap<Spot, u32> = HashMap::new();
    for (number, family) in (0..).zip(&report.families) {
        families.extend(family.declarations.iter().map(|spot| (*spot, number)));
    }
    let mut remarks = Vec::new();
    for (number, comments) in kept {
        let Some(unit) = report.units.get(*number as usize).filter(|_| !comments.is_empty()) else { continue };
        let launched: HashSet<u32> = unit.launches.iter().map(|site| site.quote.place.line).collect();
        for Kept { comment, offset, line } in comments {
            let (own, is_seen) = match declared(unit, comment) {
                Some(at) => match families.get(&Spot { unit: *number, at }) {
                    Some(family) if !report.families[*family as usize].kernels.is_empty() => {
                        (Scope::Family(*family), true)
                    }
                    // One that a filter left out, or that is nobody's.
                    _ => (Scope::Nothing, false),
                },
                None => {
                    let line = if comment.is_alone { comment.next_line } else { comment.line };
                    // Whether code of other lines was looked at shows where PTX has them.
                    let is_seen = launched.contains(&line) && !report.is_filtered;
                    (Scope::Line(unit.input, line), is_seen)
                }
            };
            let place = Place { input: unit.input, line: comment.line, column_offset: 0, offset: *offset as u64 };
            let quote = Quote { place, text: report.texts.intern(line) };
            remarks.extend(comment.said.iter().map(|said| match said.what {
                What::Allow { in_file: true, .. } => remark(comment, said, quote, Scope::File(unit.input), false),
                _ => remark(comment, said, quote, own, is_seen),
            }));
        }
    }
    tell_misplaced(&mut remarks);
    remarks
}

/// The declaration of a unit that a comment stands on or above, as an index.
fn declared(unit: &Unit, comment: &Comment) -> Option<u32> {
    let is_its = |one: &Declaration| {
        let offset = usize::try_from(one.quote.place.offset).unwrap_or(usize::MAX);
        let name = offset.saturating_add(one.span.0);
        if comment.is_alone {
            (one.extent.start..=name).contains(&comment.next)
        } else {
            (one.lines.0..=one.quote.place.line).contains(&comment.line)
        }
    };
    // Those whose heads begin before the comment ends, from the last on: nothing nests in a head.
    let past = unit.declarations.partition_point(|one| {
        if comment.is_alone { one.extent.start <= comment.next } else { one.lines.0 <= comment.line }
    });
    let at = (0..past).rev().take(2).find(|at| is_its(&unit.declarations[*at]))?;
    u32::try_from(at).ok()
}

/// Longest part of a line that is kept on each side of where its comment begins, in bytes.
const LONGEST: usize = 512;

fn remark(comment: &Comment, said: &Said, quote: Quote, scope: Scope, is_seen: bool) -> Remark {
    let offset = usize::try_from(quote.place.offset).unwrap_or(usize::MAX);
    let within = |at: usize| at.saturating_sub(offset).min(2 * LONGEST);
    Remark {
        what: said.what.clone(),
        reason: comment.reason.clone(),
        quote,
        span: (within(said.span.start), within(said.span.end)),
        scope,
        is_seen,
    }
}

/// Block sizes that stand at no kernel, or at one that has another already, are faults.
fn tell_misplaced(remarks: &mut [Remark]) {
    let mut known: HashMap<Scope, BlockSize> = HashMap::new();
    for remark in remarks {
        let What::Block(block) = remark.what else { continue };
        let (message, help) = match remark.scope {
            Scope::Kernel(_) | Scope::Family(_) => {
                let first = *known.entry(remark.scope).or_insert(block);
                if first == block {
                    continue;
                }
                (format!("a block of {block} is told here, and one of {first} before"), "the first holds; remove one")
            }
            Scope::Nothing => continue,
            Scope::File(_) | Scope::Line(..) => {
                let message = "this block size stands at no kernel, so it is nobody's".to_owned();
                (message, "put it on the line of the kernel's declaration or above it")
            }
        };
        remark.what = What::Fault(Fault { message, help: help.to_owned() });
    }
}

/// How a comment begins.
#[derive(Clone, Copy)]
struct Opening {
    at: usize,
    /// `/*`, which an end has to follow.
    is_closed: bool,
}

/// The opening of the comment that the mark at `at` begins, where nothing but blanks stands between.
fn opening(text: &[u8], at: usize) -> Option<Opening> {
    let before = &text[..at];
    let end = before.iter().rposition(|byte| !matches!(byte, b' ' | b'\t'))? + 1;
    let before = &before[..end];
    if before.ends_with(b"/*") {
        return Some(Opening { at: end - 2, is_closed: true });
    }
    // `///` and `//!` are comments too.
    let slashes = before.strip_suffix(b"!").unwrap_or(before);
    let count = slashes.iter().rev().take_while(|byte| **byte == b'/').count();
    (count >= 2).then(|| Opening { at: slashes.len() - count, is_closed: false })
}

fn comment(text: &[u8], at: usize, opening: Opening) -> Comment {
    let rest = &text[at..text.len().min(at + FURTHEST)];
    let line = memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
    let closing = if opening.is_closed { memmem::find(&rest[..line], b"*/") } else { None };
    let inner = closing.unwrap_or(line);
    let end = at + closing.map_or(line, |closing| closing + 2);
    let is_blank = |bytes: &[u8]| bytes.iter().all(|byte| matches!(byte, b' ' | b'\t'));
    let start = text[..opening.at].iter().rposition(|byte| !matches!(byte, b' ' | b'\t'));
    let is_first = start.is_none_or(|start| matches!(text[start], b'\n' | b'\r'));
    let is_alone = is_first && is_blank(&text[end..at + line]);
    let mut reader = Reader { text, at: at + MARK.len(), end: at + inner };
    let said = reader.read();
    let reason = reader.reason();
    Comment { said, reason, line: 0, span: opening.at..end, is_alone, next: end, next_line: 0 }
}

/// Bytes of a line behind a mark that may belong to its comment: there may be many marks on one line.
const FURTHEST: usize = 16 * 1024;

/// Reads what follows the mark, within one line.
struct Reader<'t> {
    text: &'t [u8],
    at: usize,
    end: usize,
}

const FORMS: &str =
    "write `warplint: allow(rule) reason`, `warplint: allow-file(rule) reason` or `warplint: block=16x16`";

impl Reader<'_> {
    fn read(&mut self) -> Vec<Said> {
        self.skip_blank();
        let start = self.at;
        let word = self.word();
        match word.as_str() {
            "allow" | "allow-file" => self.names(start, word == "allow-file"),
            "block" => vec![self.block(start)],
            "" => vec![self.fault(start, "this comment tells warplint nothing".to_owned(), FORMS.to_owned())],
            other => {
                let message = format!("`{}` is nothing that a comment can tell warplint", printable(other));
                vec![self.fault(start, message, FORMS.to_owned())]
            }
        }
    }

    fn names(&mut self, start: usize, in_file: bool) -> Vec<Said> {
        self.skip_blank();
        if !self.take(b'(') {
            let message = "the rules that this comment allows are not in brackets".to_owned();
            return vec![self.fault(start, message, FORMS.to_owned())];
        }
        let mut said = Vec::new();
        loop {
            self.skip_blank();
            let at = self.at;
            let name = self.word();
            if !name.is_empty() {
                said.push(Said { what: What::Allow { name, in_file }, span: at..self.at });
            }
            self.skip_blank();
            let is_named = self.at > at;
            if self.take(b')') {
                break;
            }
            if !(self.take(b',') && is_named) {
                self.at = self.at.min(self.end);
                let message = "the list of rules in this comment is broken".to_owned();
                said.push(self.fault(start, message, "names stand in brackets, with commas between".to_owned()));
                return said;
            }
        }
        if said.is_empty() {
            let message = "this comment allows no rule".to_owned();
            said.push(self.fault(start, message, "name the rules that it is to allow, or remove it".to_owned()));
        }
        said
    }

    fn block(&mut self, start: usize) -> Said {
        self.skip_blank();
        let is_set = self.take(b'=') || self.take(b':');
        self.skip_blank();
        let at = self.at;
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b',' | b'.' | b'-' | b'*' | b'_');
        let length = self.text[at..self.end].iter().take_while(|byte| is_part(byte)).count();
        let text = String::from_utf8_lossy(&self.text[at..at + length]).into_owned();
        self.at += length;
        if !is_set || text.is_empty() {
            let message = "this comment tells no block size".to_owned();
            return self.fault(
                start,
                message,
                "write it as `warplint: block=256` or `warplint: block=16x16`".to_owned(),
            );
        }
        match text.trim_end_matches([',', '.']).parse() {
            Ok(block) => Said { what: What::Block(block), span: start..self.at },
            Err(error) => self.fault(
                start,
                error.to_string(),
                "write it as `block=256`, `block=16x16` or `block=8x8x4`".to_owned(),
            ),
        }
    }

    /// From `start` to where reading stopped.
    fn fault(&self, start: usize, message: String, help: String) -> Said {
        let span = start..self.at.max(start);
        Said { what: What::Fault(Fault { message, help }), span }
    }

    /// What stands behind, without what joins it.
    fn reason(&self) -> Option<String> {
        let rest = String::from_utf8_lossy(&self.text[self.at.min(self.end)..self.end]);
        let reason = rest.trim().trim_start_matches([':', '-', '–', '—', ',', ';']).trim();
        (!reason.is_empty()).then(|| reason.to_owned())
    }

    fn word(&mut self) -> String {
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') || *byte >= 0x80;
        let length = self.text[self.at..self.end].iter().take_while(|byte| is_part(byte)).count();
        let word = &self.text[self.at..self.at + length];
        self.at += length;
        String::from_utf8_lossy(word).into_owned()
    }

    fn skip_blank(&mut self) {
        while self.at < self.end && matches!(self.text[self.at], b' ' | b'\t') {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_next = self.at < self.end && self.text[self.at] == byte;
        self.at += usize::from(is_next);
        is_next
    }
}

fn printable(text: &str) -> String {
    crate::model::symbol::printable(&crate::model::symbol::cut_middle(text, 60)).into_owned()
}

/// Finds the code that follows each comment: from the last to the first, so that each byte is looked at once.
fn follow(text: &[u8], comments: &mut [Comment]) {
    let mut after: Option<(usize, usize)> = None;
    for comment in comments.iter_mut().rev() {
        let stop = after.map_or(text.len(), |(start, _)| start);
        let next = code_after(text, comment.span.end, stop);
        comment.next = match after {
            Some((start, code)) if next >= start => code,
            _ => next,
        };
        after = Some((comment.span.start, comment.next));
    }
    let mut lines = Lines { text, counted: 0, line: 1 };
    for comment in comments {
        comment.next_line = lines.of(comment.next);
    }
}

/// The first byte of code from `at` on, or `stop`. What tells of source lines is no code.
fn code_after(text: &[u8], mut at: usize, stop: usize) -> usize {
    while at < stop {
        let rest = &text[at..stop];
        let end_of_line = || memchr(b'\n', rest).unwrap_or(rest.len());
        if rest[0].is_ascii_whitespace() {
            at += 1;
        } else if rest.starts_with(b"//") || rest.starts_with(b".loc ") || rest.starts_with(b".loc\t") {
            at += end_of_line();
        } else if rest.starts_with(b"/*") {
            // One that is not ended takes the rest.
            at += memmem::find(&rest[2..], b"*/").map_or(rest.len(), |end| end + 4);
        } else {
            return at;
        }
    }
    stop
}

/// Counts lines, each once.
struct Lines<'t> {
    text: &'t [u8],
    counted: usize,
    line: u32,
}

impl Lines<'_> {
    /// The line of the byte at `at`, which never lies before one that was asked for.
    fn of(&mut self, at: usize) -> u32 {
        let more = bytecount::count(&self.text[self.counted..at], b'\n');
        self.counted = at;
        self.line = self.line.saturating_add(u32::try_from(more).unwrap_or(u32::MAX));
        self.line
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::{prelude::*, sample};

    use super::*;

    fn allowed(text: &str) -> Vec<String> {
        let said = read(text.as_bytes()).into_iter().flat_map(|comment| comment.said);
        said.map(|said| match said.what {
            What::Allow { name, in_file } => format!("{name}{}", if in_file { " in the file" } else { "" }),
            What::Block(block) => block.to_string(),
            What::Fault(fault) => format!("! {}", fault.message),
        })
        .collect()
    }

    #[test]
    fn names_stand_in_brackets_and_a_reason_may_follow() {
        let text = "x; // warplint: allow(register-spill, divergence) two stages in flight\n";
        assert_eq!(allowed(text), ["register-spill", "divergence"]);
        let [comment] = &read(text.as_bytes())[..] else { panic!("one comment") };
        assert_eq!(comment.reason.as_deref(), Some("two stages in flight"));
        assert_eq!(&text[comment.said[1].span.clone()], "divergence");
        assert!(!comment.is_alone);
        assert_eq!(allowed("/* warplint: allow-file( local-memory ): old */"), ["local-memory in the file"]);
        assert_eq!(read(b"/* warplint: allow(a): old */")[0].reason.as_deref(), Some("old"));
        assert_eq!(allowed("///warplint:allow(a,)\n//! warplint: block=16x16, as in main.cu"), ["a", "16×16"]);
    }

    #[test]
    fn what_stands_in_a_string_is_no_comment() {
        for text in [
            "puts(\"// warplint: allow(a)\");",
            "s = R\"(\n// warplint: allow-file(a)\n)\";",
            ".file 1 \"// warplint: allow(a)\"\n",
        ] {
            assert_eq!(allowed(text), [""; 0], "{text}");
        }
        assert_eq!(allowed("puts(\"x\"); // warplint: allow(a)\nc = '\"'; // warplint: allow(b)"), ["a", "b"]);
    }

    #[test]
    fn what_is_no_comment_of_ours_is_left_alone() {
        for text in ["", "warplint: allow(a)", "printf(\"warplint: x\");", "// see warplint: allow(a)", "// warplint"] {
            assert!(read(text.as_bytes()).is_empty(), "{text}");
        }
    }

    #[test]
    fn what_is_broken_is_told() {
        for (text, message) in [
            ("// warplint:", "this comment tells warplint nothing"),
            ("// warplint: alow(a)", "`alow` is nothing that a comment can tell warplint"),
            ("// warplint: allow a", "the rules that this comment allows are not in brackets"),
            ("// warplint: allow()", "this comment allows no rule"),
            ("// warplint: allow(,)", "the list of rules in this comment is broken"),
            ("// warplint: block", "this comment tells no block size"),
            ("// warplint: block=16y16", "`16y16` is no block size; write it as 256, 16,16 or 8,8,4"),
            ("// warplint: block=2048", "a block of 2048 has 2048 threads, and no GPU launches more than 1024"),
        ] {
            assert_eq!(allowed(text), [format!("! {message}")], "{text}");
        }
        assert_eq!(allowed("// warplint: allow(a b)\n"), ["a", "! the list of rules in this comment is broken"]);
        assert_eq!(allowed("// warplint: allow(a\n)"), ["a", "! the list of rules in this comment is broken"]);
    }

    #[test]
    fn the_code_that_follows_is_found_behind_blanks_comments_and_source_lines() {
        let text =
            "a\n// warplint: allow(x)\n\n// warplint: block=32\n/* more\n */\n.loc 1 2 3\n code\n// warplint: allow(y)";
        let comments = read(text.as_bytes());
        let next: Vec<(u32, u32, usize)> =
            comments.iter().map(|comment| (comment.line, comment.next_line, comment.next)).collect();
        let code = text.find("code").expect("code");
        assert_eq!(next, [(2, 8, code), (4, 8, code), (9, 9, text.len())]);
        assert!(comments.iter().all(|comment| comment.is_alone));
    }

    #[test]
    fn the_last_statement_before_a_declaration_keeps_its_own_comment() {
        let text = "} // warplint: allow(x)\n.visible .entry k()\n";
        assert!(!read(text.as_bytes())[0].is_alone);
        assert_eq!(read(text.as_bytes())[0].line, 1);
    }

    #[test]
    fn the_slash_that_closes_a_comment_opens_none() {
        assert_eq!(read(b"/*warplint: allow(a)*//warplint: allow(b)").len(), 1);
    }

    proptest! {
        #[test]
        fn whatever_is_read_lies_in_the_text_and_in_order(parts in vec(sample::select(PARTS), 0..40)) {
            let text = parts.concat();
            let comments = read(&text);
            let mut past = 0;
            for comment in &comments {
                prop_assert!(past <= comment.span.start && comment.span.end <= comment.next && comment.next <= text.len());
                let line = |at: usize| 1 + text[..at].iter().filter(|byte| **byte == b'\n').count();
                prop_assert_eq!((comment.line as usize, comment.next_line as usize), (line(comment.span.start), line(comment.next)));
                prop_assert!(!comment.said.is_empty());
                for said in &comment.said {
                    prop_assert!(comment.span.start <= said.span.start && said.span.start <= said.span.end);
                    prop_assert!(said.span.end <= comment.span.end);
                }
                past = comment.span.end;
            }
        }
    }

    const PARTS: &[&[u8]] = &[
        b"//",
        b"/*",
        b"*/",
        b" ",
        b"\n",
        b"\r\n",
        b"warplint:",
        b"allow",
        b"allow-file",
        b"(",
        b")",
        b",",
        b"a",
        b"block=",
        b"16x16",
        b"\xff\xfe",
        b"\xc3",
        b".loc ",
        b"!",
        b"\t",
        b"\0",
    ];

    #[test]
    fn very_many_comments_are_read_in_the_time_of_their_bytes() {
        let text = "// warplint: allow(x)\n".repeat(200_000);
        let comments = read(text.as_bytes());
        assert_eq!(comments.len(), 200_000);
        assert!(comments.iter().all(|comment| comment.next == text.len()));
    }
}
