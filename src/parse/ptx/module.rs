//! The outline of a module: versions, files, variables, and the functions with their directives.

use std::ops::Range;
use std::sync::Arc;

use super::body::{self, Body};
use super::lexer::{Cursor, Fault};
use crate::model::{Arch, BlockSize, Bounds, Function, InputFacts, Kind, Module, Origin, Report};
use crate::parse::needles::Needles;

/// Why a file could not be read to its end, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PtxFault {
    /// The file as shown.
    pub name: String,
    /// What is wrong.
    pub message: String,
    /// The line, from 1.
    pub line: u32,
    /// The text of the line, as far as it is worth showing.
    pub text: String,
    /// The bytes of that text that it concerns.
    pub span: Range<usize>,
    /// Functions that were read before.
    pub functions: usize,
}

/// Longest part of a faulty line that is kept.
const SHOWN: usize = 160;

/// Largest text: positions are kept in 32 bits.
const MOST: usize = u32::MAX as usize;

/// Whether a text that begins like `start` is PTX: its first word is `.version`.
#[must_use]
pub fn looks_like_ptx(start: &[u8]) -> bool {
    let mut cursor = Cursor::new(start, 0);
    skip_mark(&mut cursor);
    cursor.skip_blank().is_ok() && start[cursor.at..].starts_with(VERSION)
}

/// Whether more text could show that one which begins like `start` is PTX: so far it holds comments and blanks alone, or
/// a part of the first word.
#[must_use]
pub fn may_become_ptx(start: &[u8]) -> bool {
    let mut cursor = Cursor::new(start, 0);
    skip_mark(&mut cursor);
    let unfinished = cursor.skip_blank().is_err();
    let rest = &start[cursor.at..];
    let is_part = rest.len() < VERSION.len() && (VERSION.starts_with(rest) || b"/".starts_with(rest));
    unfinished || is_part
}

/// The first word of a module.
const VERSION: &[u8] = b".version";

fn skip_mark(cursor: &mut Cursor<'_>) {
    if cursor.text.starts_with(b"\xef\xbb\xbf") {
        cursor.at = 3;
    }
}

/// Reads the PTX `text`, which came from the file called `name`, into `report`.
///
/// # Errors
/// When it is no PTX, or damaged. The functions before the fault are in the report all the same.
pub fn read_ptx(text: impl Into<Arc<Vec<u8>>>, name: &str, report: &mut Report) -> Result<(), PtxFault> {
    read_text(text.into(), name, report)
}

/// Bytes at the start of a module in which its compiler may name itself.
const HEADER: usize = 1024;

fn read_text(text: Arc<Vec<u8>>, name: &str, report: &mut Report) -> Result<(), PtxFault> {
    let input = u32::try_from(report.inputs.len()).unwrap_or(u32::MAX);
    report.inputs.push(InputFacts { name: name.to_owned(), bytes: text.len() as u64, ..InputFacts::default() });
    let mut reader = Reader {
        outline: Outline { files: Vec::new(), functions: Vec::new(), shared: Vec::new() },
        arch: None,
        lines: Lines { counted: 0, line: 1 },
        body: Body::default(),
        seen_version: false,
    };
    let result = if text.len() > MOST {
        Err(Fault::new(0, 0, "the file has more than 4 GiB"))
    } else {
        reader.read(&text, report)
    };
    let mut outline = reader.outline;
    outline.files.sort_by_key(|(number, _)| *number);
    outline.count_module_shared(&text);
    let count = outline.functions.len();
    let facts = &mut report.inputs[input as usize];
    facts.records = count as u64;
    facts.compiles_cuda = count > 0;
    facts.torn = result.is_err();
    facts.toolkit = crate::parse::nvcc::toolkit(&text[..text.len().min(HEADER)]);
    let fault = result.err().map(|fault| placed(&text, name, count, &fault));
    let (files, functions) = (outline.files, outline.functions);
    report.modules.push(Module { input, text, files, functions, origin: Origin::Compiler });
    fault.map_or(Ok(()), Err)
}

fn placed(text: &[u8], name: &str, functions: usize, fault: &Fault) -> PtxFault {
    let at = fault.at.min(text.len());
    let start = memchr::memrchr(b'\n', &text[..at]).map_or(0, |at| at + 1);
    // Of a line without an end, what is before the fault matters less than the fault.
    let start = start.max(at.saturating_sub(SHOWN / 2));
    let rest = &text[start..];
    let length = memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len()).min(SHOWN);
    let line = u32::try_from(bytecount::count(&text[..at], b'\n') + 1).unwrap_or(u32::MAX);
    let shown = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).replace('\t', " ");
        crate::model::symbol::printable(&text).into_owned()
    };
    let (from, to) = (at - start, (at - start + fault.length).min(length).max(at - start));
    let before = shown(&rest[..from.min(length)]);
    let marked = shown(&rest[from.min(length)..to.min(length)]);
    let span = before.len()..before.len() + marked.len();
    let text = format!("{before}{marked}{}", shown(&rest[to.min(length)..length]));
    PtxFault { name: name.to_owned(), message: fault.message.clone(), line, text, span, functions }
}

/// What is gathered of a module.
struct Outline {
    files: Vec<(u32, Range<usize>)>,
    functions: Vec<Function>,
    /// Names of shared variables that belong to no function.
    shared: Vec<Range<usize>>,
}

impl Outline {
    /// A variable of the module counts for every function that uses it; which of them do is not followed through calls, so
    /// that the size is unknown then.
    fn count_module_shared(&mut self, text: &[u8]) {
        if self.shared.is_empty() {
            return;
        }
        let names: Vec<&[u8]> = self.shared.iter().map(|name| &text[name.clone()]).collect();
        let names = Needles::new(&names);
        for function in &mut self.functions {
            if names.as_ref().is_none_or(|names| names.are_in(&text[function.body.clone()])) {
                function.shared = None;
            }
        }
    }
}

/// Counts lines, each once.
struct Lines {
    counted: usize,
    line: u32,
}

impl Lines {
    /// The line of the byte at `at`, which never lies before one that was asked for.
    fn of(&mut self, text: &[u8], at: usize) -> u32 {
        let more = bytecount::count(&text[self.counted..at], b'\n');
        self.counted = at;
        self.line = self.line.saturating_add(u32::try_from(more).unwrap_or(u32::MAX));
        self.line
    }
}

struct Reader {
    outline: Outline,
    arch: Option<Arch>,
    lines: Lines,
    body: Body,
    seen_version: bool,
}

impl Reader {
    fn read(&mut self, text: &[u8], report: &mut Report) -> Result<(), Fault> {
        let mut cursor = Cursor::new(text, 0);
        skip_mark(&mut cursor);
        loop {
            cursor.skip_blank()?;
            let start = cursor.at;
            if text[start..].iter().all(|byte| *byte == 0) {
                // What a runtime compiler writes out may have the string's end with it.
                return if self.seen_version { Ok(()) } else { Err(Fault::new(start, 0, NO_VERSION)) };
            }
            let is_directive = cursor.take(b'.');
            let word = cursor.word();
            let is_version = is_directive && word == b"version";
            if !(self.seen_version || is_version) {
                return Err(Fault::new(start, word.len().max(1) + usize::from(is_directive), NO_VERSION));
            }
            if !is_directive {
                // rustc marks the end of its debug information so.
                let after = cursor.at;
                cursor.skip_blank()?;
                if !word.is_empty() && cursor.take(b':') {
                    continue;
                }
                cursor.at = after;
                return Err(self.misplaced(&cursor, start, word));
            }
            self.directive(&mut cursor, start, word, report)?;
        }
    }

    fn misplaced(&self, cursor: &Cursor<'_>, start: usize, word: &[u8]) -> Fault {
        let length = cursor.word_at(start);
        match word {
            b"" => Fault::new(start, length, "outside of a function, only directives may stand here"),
            word => {
                let word = String::from_utf8_lossy(word);
                Fault::new(start, length, format!("`{word}` stands outside of any function"))
            }
        }
    }

    fn directive(
        &mut self,
        cursor: &mut Cursor<'_>,
        start: usize,
        word: &[u8],
        report: &mut Report,
    ) -> Result<(), Fault> {
        match word {
            b"version" => {
                cursor.skip_blank()?;
                let at = cursor.at;
                let major = cursor.number();
                let minor = cursor.take(b'.').then(|| cursor.number()).flatten();
                major.zip(minor).ok_or_else(|| {
                    Fault::new(at, cursor.word_at(at), "a version of PTX is two numbers, as in `.version 8.5`")
                })?;
                self.seen_version = true;
            }
            b"target" => self.target(cursor)?,
            b"address_size" => {
                cursor.skip_blank()?;
                cursor.number().ok_or_else(|| Fault::new(start, 13, "an address size is 32 or 64"))?;
            }
            b"file" => {
                body::skip_file(cursor, start)?;
                self.outline.files.extend(file(cursor.text, start));
            }
            b"section" => skip_section(cursor, start)?,
            b"visible" | b"weak" | b"extern" | b"common" | b"entry" | b"func" => {
                return self.function_or_variable(cursor, start, word, report);
            }
            b"shared" => {
                cursor.statement_end(start)?;
                self.outline.shared.extend(variable(cursor.text, start, cursor.at));
                cursor.at += 1;
            }
            b"loc" => return Err(Fault::new(start, 4, "a `.loc` stands outside of any function")),
            b"" => return Err(Fault::new(start, 1, "a directive has no name")),
            // Variables, aliases, pragmas, and what a later version of PTX adds.
            _ => {
                cursor.statement_end(start)?;
                cursor.at += 1;
            }
        }
        Ok(())
    }

    /// `.target sm_90a, texmode_independent`
    fn target(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Fault> {
        cursor.skip_blank()?;
        let at = cursor.at;
        let name = cursor.word();
        self.arch = Arch::from_bytes(name);
        if name.is_empty() {
            return Err(Fault::new(at, 1, "a target has no name"));
        }
        loop {
            cursor.skip_blank()?;
            if !cursor.take(b',') {
                return Ok(());
            }
            cursor.skip_blank()?;
            let option = cursor.word();
            self.arch = self.arch.or_else(|| Arch::from_bytes(option));
        }
    }

    /// After `.visible`, `.entry` and the like: a function with or without a body, or a variable.
    fn function_or_variable(
        &mut self,
        cursor: &mut Cursor<'_>,
        start: usize,
        first: &[u8],
        report: &mut Report,
    ) -> Result<(), Fault> {
        let mut word = first;
        let kind = loop {
            match word {
                b"entry" => break Kind::Entry,
                b"func" => break Kind::Function,
                b"visible" | b"weak" | b"extern" | b"common" => {}
                _ => {
                    let is_dynamic = first == b"extern";
                    cursor.statement_end(start)?;
                    if word == b"shared" && !is_dynamic {
                        self.outline.shared.extend(variable(cursor.text, start, cursor.at));
                    }
                    cursor.at += 1;
                    return Ok(());
                }
            }
            cursor.skip_blank()?;
            if !cursor.take(b'.') {
                return Err(Fault::new(cursor.at, cursor.word_at(cursor.at), "a directive is missing here"));
            }
            word = cursor.word();
        };
        self.function(cursor, start, kind, report)
    }

    fn function(
        &mut self,
        cursor: &mut Cursor<'_>,
        start: usize,
        kind: Kind,
        report: &mut Report,
    ) -> Result<(), Fault> {
        let text = cursor.text;
        // Attributes and what is returned may stand before the name.
        loop {
            cursor.skip_blank()?;
            match cursor.peek() {
                b'(' => skip_brackets(cursor)?,
                b'.' => {
                    cursor.at += 1;
                    cursor.word();
                }
                _ => break,
            }
        }
        let at = cursor.at;
        let name = cursor.word();
        if name.is_empty() {
            return Err(Fault::new(at, 1, "a function has no name"));
        }
        cursor.skip_blank()?;
        let parameters = cursor.at;
        if cursor.peek() == b'(' {
            skip_brackets(cursor)?;
        }
        let parameters = parameters..cursor.at;
        let mut bounds = Bounds::default();
        loop {
            cursor.skip_blank()?;
            match cursor.peek() {
                b';' => {
                    // A declaration.
                    cursor.at += 1;
                    return Ok(());
                }
                b'{' => break,
                // Before PTX 3.0, declarations had no end of their own.
                b'.' if begins_another(cursor) => return Ok(()),
                b'.' => directive_of_function(cursor, &mut bounds)?,
                _ if cursor.is_at_end() => {
                    return Err(Fault::new(at, name.len(), "the file ends before the body of this function"));
                }
                _ => {
                    let length = cursor.word_at(cursor.at);
                    return Err(Fault::new(cursor.at, length, "the body of a function, or a directive, has to follow"));
                }
            }
        }
        let head_line = self.lines.of(text, start);
        let open = cursor.at;
        let body_line = self.lines.of(text, open);
        self.body.read(text, open)?;
        cursor.at = self.body.end;
        self.outline.functions.push(Function {
            name: report.names.intern(name),
            kind,
            arch: self.arch,
            head: (start, head_line),
            parameters,
            body: open..cursor.at,
            body_line,
            bounds,
            shared: self.body.shared,
            local: self.body.local,
            depot: self.body.depot.clone(),
            tensor: self.body.tensor,
            branches: self.body.branches,
            instructions: self.body.instructions,
            calls: self.body.calls,
            flow: self.body.flow.clone(),
            declared: None,
            callers: Vec::new(),
            kernel: None,
        });
        Ok(())
    }
}

/// Whether the directive that is next belongs to the module, and not to the function before it.
fn begins_another(cursor: &Cursor<'_>) -> bool {
    let mut ahead = Cursor::new(cursor.text, cursor.at + 1);
    matches!(
        ahead.word(),
        b"visible"
            | b"weak"
            | b"extern"
            | b"entry"
            | b"func"
            | b"file"
            | b"global"
            | b"const"
            | b"shared"
            | b"tex"
            | b"section"
    )
}

const NO_VERSION: &str = "this is no PTX: a module begins with `.version`";

/// A directive between the parameters and the body of a function.
fn directive_of_function(cursor: &mut Cursor<'_>, bounds: &mut Bounds) -> Result<(), Fault> {
    let start = cursor.at;
    cursor.at += 1;
    let word = cursor.word();
    match word {
        b"maxntid" => {
            let sizes = sizes(cursor)?;
            let threads = sizes.iter().try_fold(1_u32, |threads, size| threads.checked_mul(*size));
            bounds.max_threads = threads.filter(|threads| *threads > 0);
        }
        b"reqntid" => {
            let sizes = sizes(cursor)?;
            bounds.required = BlockSize::new(sizes[0], sizes[1], sizes[2]).ok();
        }
        b"reqnctapercluster" => bounds.cluster = Some(sizes(cursor)?),
        b"minnctapersm" => bounds.min_blocks = Some(sizes(cursor)?[0]),
        b"maxnreg" => bounds.max_registers = Some(sizes(cursor)?[0]),
        b"pragma" => {
            cursor.statement_end(start)?;
            cursor.at += 1;
        }
        b"" => return Err(Fault::new(start, 1, "a directive has no name")),
        // Without arguments, with numbers, or with something in brackets.
        _ => {
            sizes_if_any(cursor)?;
            if cursor.peek() == b'(' {
                skip_brackets(cursor)?;
            }
        }
    }
    Ok(())
}

/// One to three numbers; what is left out is 1.
fn sizes(cursor: &mut Cursor<'_>) -> Result<[u32; 3], Fault> {
    cursor.skip_blank()?;
    let at = cursor.at;
    sizes_if_any(cursor)?.ok_or_else(|| Fault::new(at, 1, "a number is missing here"))
}

fn sizes_if_any(cursor: &mut Cursor<'_>) -> Result<Option<[u32; 3]>, Fault> {
    let mut sizes = [1; 3];
    cursor.skip_blank()?;
    let Some(first) = cursor.number() else { return Ok(None) };
    sizes[0] = first;
    for size in &mut sizes[1..] {
        cursor.skip_blank()?;
        if !cursor.take(b',') {
            break;
        }
        cursor.skip_blank()?;
        let at = cursor.at;
        *size = cursor.number().ok_or_else(|| Fault::new(at, 1, "a number is missing here"))?;
    }
    Ok(Some(sizes))
}

/// Over a bracketed list; the opening bracket is next.
fn skip_brackets(cursor: &mut Cursor<'_>) -> Result<(), Fault> {
    let open = cursor.at;
    let mut depth = 0_u32;
    loop {
        cursor.skip_plain();
        match cursor.peek() {
            b'/' if cursor.skip_comment()? => continue,
            b'(' => depth += 1,
            b')' if depth == 1 => {
                cursor.at += 1;
                return Ok(());
            }
            b')' => depth -= 1,
            b'{' | b'}' | b';' => return Err(Fault::new(open, 1, "this list is not ended")),
            _ if cursor.is_at_end() => return Err(Fault::new(open, 1, "the file ends within this list")),
            _ => {}
        }
        cursor.at += 1;
    }
}

/// Over `.section name { … }`, which holds debug information.
fn skip_section(cursor: &mut Cursor<'_>, start: usize) -> Result<(), Fault> {
    let rest = &cursor.text[cursor.at..];
    let open = memchr::memchr2(b'{', b';', rest).filter(|at| rest[*at] == b'{');
    let open = open.ok_or_else(|| Fault::new(start, 8, "a section has no body"))?;
    let close = memchr::memchr(b'}', &rest[open..]);
    let close = close.ok_or_else(|| Fault::new(start, 8, "the file ends within this section"))?;
    cursor.at += open + close + 1;
    Ok(())
}

/// The number and the name of the `.file` at `start`, whose form was checked.
fn file(text: &[u8], start: usize) -> Option<(u32, Range<usize>)> {
    let mut cursor = Cursor::new(text, start + 5);
    cursor.skip_blank().ok()?;
    let number = cursor.number()?;
    cursor.skip_blank().ok()?;
    let open = cursor.at + 1;
    cursor.skip_string().ok()?;
    Some((number, open..cursor.at - 1))
}

/// The name of the variable that the statement declares: the last word before `[`, `=` or its end.
pub(super) fn variable(text: &[u8], start: usize, end: usize) -> Option<Range<usize>> {
    let declared = &text[start..end];
    let stop = memchr::memchr3(b'[', b'=', b',', declared).unwrap_or(declared.len());
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'%');
    let last = declared[..stop].iter().rposition(is_word)? + 1;
    let first = declared[..last].iter().rposition(|byte| !is_word(byte)).map_or(0, |at| at + 1);
    Some(start + first..start + last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Way;

    fn read(text: &str) -> (Report, Result<(), PtxFault>) {
        let mut report = Report::default();
        let result = read_ptx(text.as_bytes().to_vec(), "a.ptx", &mut report);
        (report, result)
    }

    fn names(report: &Report) -> Vec<String> {
        let functions = report.modules[0].functions.iter();
        functions.map(|one| String::from_utf8_lossy(report.names.get(one.name)).into_owned()).collect()
    }

    /// The place and the words of a fault.
    fn fault(text: &str) -> (u32, String, String) {
        let fault = read(text).1.expect_err("a fault");
        (fault.line, fault.text[fault.span].to_owned(), fault.message)
    }

    const MODULE: &str = "//
// Generated by NVIDIA NVVM Compiler
//
.version 8.5
.target sm_90a, texmode_independent
.address_size 64
.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b) ;
.extern .shared .align 16 .b8 dynamic[];
.global .align 4 .u32 table[3] = {1, 2, 3};
.func (.param .b32 r) twice(.param .b32 x)
{
\tret;
}
.weak .entry k(
\t.param .u64 .ptr .global .align 16 k_param_0,
\t.param .u32 k_param_1
)
.maxntid 256, 1, 1
.minnctapersm 2
.maxnreg 64
{
\t.reg .pred %p<2>;
\t@%p1 bra $L1;
$L1:
\tret;
}
.visible .entry last() .reqntid 16, 8 .reqnctapercluster 2, 1, 1 { ret; }
\t.file\t1 \"a b.cu\"
\t.file\t2 \"c.h\", 1700000000, 42
\t.section\t.debug_str { .b8 1,2
}
";

    #[test]
    fn functions_are_read_with_what_their_directives_say() {
        let (report, result) = read(MODULE);
        assert_eq!(result, Ok(()));
        assert_eq!(names(&report), ["twice", "k", "last"]);
        let module = &report.modules[0];
        let [twice, k, last] = module.functions.as_slice() else { panic!("three functions") };
        assert_eq!((twice.kind, k.kind, k.arch), (Kind::Function, Kind::Entry, Arch::from_bytes(b"sm_90a")));
        assert_eq!((twice.head.1, twice.body_line, k.head.1, k.body_line, last.head.1), (10, 11, 14, 21, 27));
        assert!(MODULE[k.parameters.clone()].starts_with("(\n\t.param") && MODULE[k.body.clone()].ends_with("ret;\n}"));
        assert_eq!((k.bounds.max_threads, k.bounds.min_blocks, k.bounds.max_registers), (Some(256), Some(2), Some(64)));
        assert_eq!((last.bounds.required, last.bounds.cluster), (BlockSize::new(16, 8, 1).ok(), Some([2, 1, 1])));
        assert_eq!((k.branches, k.instructions, twice.branches), (1, 2, 0));
        assert_eq!((module.file(1), module.file(2), module.file(3)), (Some(&b"a b.cu"[..]), Some(&b"c.h"[..]), None));
    }

    #[test]
    fn carriage_returns_and_a_mark_at_the_start_change_nothing() {
        let (plain, _) = read(MODULE);
        let (other, result) = read(&format!("\u{feff}{}\0", MODULE.replace('\n', "\r\n")));
        assert_eq!((result, names(&other)), (Ok(()), names(&plain)));
        let lines = |report: &Report| report.modules[0].functions.iter().map(|one| one.head.1).collect::<Vec<_>>();
        assert_eq!(lines(&other), lines(&plain));
    }

    #[test]
    fn a_module_that_is_torn_at_any_byte_keeps_the_functions_before() {
        let (whole, _) = read(MODULE);
        let ends: Vec<usize> = whole.modules[0].functions.iter().map(|one| one.body.end).collect();
        for at in 0..MODULE.len() {
            let (torn, result) = read(&MODULE[..at]);
            let count = ends.iter().filter(|end| **end <= at).count();
            assert_eq!(names(&torn), names(&whole)[..count], "torn at {at}");
            if let Err(fault) = result {
                let lines = MODULE[..at].matches('\n').count() + 1;
                assert!((1..=lines).contains(&(fault.line as usize)), "torn at {at}: {fault:?}");
                assert_eq!(fault.functions, count);
            }
        }
    }

    #[test]
    fn a_fault_stands_where_it_is() {
        let told = |line: u32, marked: &str, message: &str| (line, marked.to_owned(), message.to_owned());
        assert_eq!(fault("hello"), told(1, "hello", NO_VERSION));
        assert_eq!(fault("// nothing\n"), told(2, "", NO_VERSION));
        let version = "a version of PTX is two numbers, as in `.version 8.5`";
        assert_eq!(fault("\n.version eight\n"), told(2, "eight", version));
        let start = ".version 8.5\n.target sm_80\n";
        let in_module = |text: &str| fault(&format!("{start}{text}"));
        assert_eq!(in_module("\n  mov.u32 %r1, 1;"), told(4, "mov", "`mov` stands outside of any function"));
        assert_eq!(in_module("}"), told(3, "}", "outside of a function, only directives may stand here"));
        assert_eq!(in_module(".loc 1 2 3"), told(3, ".loc", "a `.loc` stands outside of any function"));
        assert_eq!(
            in_module(".entry k() {\n\tmov.u32 %r1, 1;\n\toops;\n}"),
            told(5, "oops", "`oops` is no PTX instruction")
        );
        assert_eq!(in_module(".entry k(.param .u32 a { ret; }"), told(3, "(", "this list is not ended"));
        assert_eq!(in_module(".entry k(.param .u32 a"), told(3, "(", "the file ends within this list"));
        assert_eq!(in_module(".entry k() x { ret; }").2, "the body of a function, or a directive, has to follow");
        assert_eq!(in_module(".entry { ret; }"), told(3, "{", "a function has no name"));
        assert_eq!(in_module(".visible entry k() { ret; }"), told(3, "entry", "a directive is missing here"));
        assert_eq!(in_module(".entry k() .maxntid x { ret; }"), told(3, "x", "a number is missing here"));
        assert_eq!(in_module(".section .debug {").2, "the file ends within this section");
        assert_eq!(in_module(".entry k()").2, "the file ends before the body of this function");
    }

    #[test]
    fn a_branch_to_nowhere_ends_the_reading_at_its_function() {
        let text = format!("{MODULE}.entry bad() {{\n\tret;\n\tbra.uni $L9;\n}}\n.entry after() {{ ret; }}");
        let (report, result) = read(&text);
        assert_eq!(names(&report), ["twice", "k", "last"]);
        let fault = result.expect_err("a fault");
        assert_eq!((&fault.text[fault.span], fault.message.as_str()), ("$L9", "`$L9` is a label that is not there"));
        assert_eq!((fault.line as usize, fault.functions), (MODULE.lines().count() + 3, 3));
    }

    #[test]
    fn a_function_knows_where_control_goes() {
        let (report, _) = read(MODULE);
        let flow = &report.modules[0].functions[1].flow;
        let [branch, end] = flow.jumps.as_slice() else { panic!("two jumps: {flow:?}") };
        assert_eq!((branch.at, branch.guarded, branch.way), (0, true, Way::To(1)));
        assert_eq!((end.at, end.guarded, end.way, flow.instructions), (1, false, Way::Out, 2));
    }

    #[test]
    fn what_a_faulty_line_shows_is_short_and_printable() {
        let long = format!(".version 8.5\n.entry k() {{ {} \u{1b}[31m; }}", "mov.u32 %r1, 1; ".repeat(50));
        let fault = read(&long).1.expect_err("a fault");
        assert!(fault.text.len() < 400 && !fault.text.contains('\u{1b}'), "{fault:?}");
        assert!(!fault.text[fault.span].is_empty());
    }

    #[test]
    fn shared_memory_is_known_where_the_function_alone_has_it() {
        let text = ".version 8.5\n.target sm_80\n.shared .b32 of_all;\n
            .entry a() { .shared .b32 x[4]; ret; }\n.entry b() { mov.u32 %r1, of_all; ret; }";
        let shared: Vec<Option<u32>> = read(text).0.modules[0].functions.iter().map(|one| one.shared).collect();
        assert_eq!(shared, [Some(16), None]);
    }

    #[test]
    fn ptx_is_known_by_its_first_word_however_much_of_it_has_come() {
        for (start, is_ptx, may) in [
            (".version 8.5", true, false),
            ("// comment\n/* another */ .version", true, false),
            ("\u{feff}.version", true, false),
            (".ver", false, true),
            ("// unfinished", false, true),
            ("/* unfinished", false, true),
            ("", false, true),
            ("ptxas info", false, false),
            (".visible", false, false),
        ] {
            let start_bytes = start.as_bytes();
            assert_eq!(
                (looks_like_ptx(start_bytes), is_ptx || may_become_ptx(start_bytes)),
                (is_ptx, is_ptx || may),
                "{start}"
            );
        }
    }
}
