//! The statements of one function, in a buffer that is used again for the next: what each is and where it stands. Operands
//! are read later, and only where someone asks.

use std::ops::Range;

use super::instruction::{Head, Reader};
use super::labels::Labels;
use super::lexer::{Cursor, Fault};
use super::module::variable;
use super::opcode::{self, Op};
use super::storage;
use crate::model::{Flow, Jump, Way};

/// What a statement is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// An instruction.
    Instruction(Op),
    /// `.loc`
    Location,
}

/// One statement: the bytes of the module's text from `start` to `end`, without its `;`.
#[derive(Debug, Clone, Copy)]
pub struct Statement {
    /// What it is.
    pub what: What,
    /// Its first byte; where a predicate guards it, that is the `@`.
    pub start: u32,
    /// One past its last byte.
    pub end: u32,
}

/// The statements of a function, and what was seen on the way.
#[derive(Debug, Default)]
pub struct Body {
    /// Instructions and locations in order; only the first reading keeps none.
    pub statements: Vec<Statement>,
    /// Conditional branches: guarded `bra`, `ret`, `exit` and `trap`, and every `brx`.
    pub branches: u32,
    /// Instructions.
    pub instructions: u32,
    /// Calls.
    pub calls: u32,
    /// Whether it works on the tensor cores.
    pub tensor: bool,
    /// Bytes of static shared memory that are declared in it; `None` where a size was not understood.
    pub shared: Option<u32>,
    /// Bytes of `.local` memory that are declared in it, likewise.
    pub local: Option<u32>,
    /// The name of the first variable there.
    pub depot: Option<Range<usize>>,
    /// One past the `}` that ends it.
    pub end: usize,
    /// Its jumps; only the first reading finds them.
    pub(super) flow: Flow,
    labels: Labels,
}

/// What a function is read for.
enum Reading<'r, 't> {
    /// For the first time: all of it is looked at, and where control goes is found out.
    First,
    /// Again, for its statements.
    Again,
    /// The same, with all that its instructions say.
    Whole(&'r mut Reader<'t>),
}

impl Body {
    /// Reads the body whose `{` is at `open`, in place of what was there before.
    pub(super) fn read(&mut self, text: &[u8], open: usize) -> Result<(), Fault> {
        self.flow.clear();
        self.labels.clear();
        self.statements_of(text, open, &mut Reading::First)?;
        self.flow.instructions = self.instructions;
        self.labels.resolve(text, &mut self.flow)
    }

    /// Reads a body that is no part of a file, and finds where control goes. `None` where it has a fault.
    pub fn flow_of(&mut self, text: &[u8], open: usize) -> Option<&Flow> {
        self.read(text, open).ok()?;
        Some(&self.flow)
    }

    /// Reads the body of a function of a module again, whose text was read without a fault.
    pub fn read_again(&mut self, text: &[u8], open: usize) {
        let _ = self.statements_of(text, open, &mut Reading::Again);
    }

    /// The same, with its instructions.
    pub(super) fn read_whole<'t>(&mut self, text: &'t [u8], open: usize, reader: &mut Reader<'t>) {
        let _ = self.statements_of(text, open, &mut Reading::Whole(reader));
    }

    #[inline]
    fn statements_of<'t>(&mut self, text: &'t [u8], open: usize, reading: &mut Reading<'_, 't>) -> Result<(), Fault> {
        self.statements.clear();
        (self.branches, self.instructions, self.calls, self.tensor) = (0, 0, 0, false);
        (self.shared, self.local, self.depot, self.end) = (Some(0), Some(0), None, open);
        let mut cursor = Cursor::new(text, open + 1);
        let mut depth = 1;
        loop {
            cursor.skip_blank()?;
            match cursor.peek() {
                b'.' => self.directive(&mut cursor, reading)?,
                b'{' => {
                    depth += 1;
                    cursor.at += 1;
                    match reading {
                        Reading::First => self.labels.open(),
                        Reading::Again => {}
                        Reading::Whole(reader) => reader.open(),
                    }
                }
                b'}' => {
                    depth -= 1;
                    cursor.at += 1;
                    if depth == 0 {
                        self.end = cursor.at;
                        return Ok(());
                    }
                    match reading {
                        Reading::First => self.labels.close(),
                        Reading::Again => {}
                        Reading::Whole(reader) => reader.close(),
                    }
                }
                // LLVM leaves one behind where an assembly string ends in one.
                b';' => cursor.at += 1,
                0 if cursor.is_at_end() => return Err(Fault::new(open, 1, "the file ends within this function")),
                _ => match reading {
                    Reading::Whole(reader) => self.whole_instruction(&mut cursor, reader)?,
                    _ => self.instruction(&mut cursor, reading)?,
                },
            }
        }
    }

    #[inline]
    fn push(&mut self, what: What, start: usize, end: usize) {
        self.statements.push(Statement { what, start: narrow(start), end: narrow(end) });
    }

    #[inline]
    fn instruction(&mut self, cursor: &mut Cursor<'_>, reading: &Reading<'_, '_>) -> Result<(), Fault> {
        let start = cursor.at;
        let guarded = cursor.take(b'@');
        if guarded {
            cursor.skip_blank()?;
            cursor.take(b'!');
            cursor.skip_blank()?;
            if cursor.word().is_empty() {
                return Err(Fault::new(start, 1, "a predicate is missing after `@`"));
            }
            cursor.skip_blank()?;
        }
        let opcode = cursor.at;
        let Some((op, after_word)) = self.first_word(cursor, guarded, matches!(reading, Reading::First))? else {
            return Ok(());
        };
        match reading {
            Reading::First => {
                cursor.statement_end(opcode)?;
                if op.ends_block() {
                    let operands = Cursor::new(&cursor.text[..cursor.at], after_word);
                    self.jump(op, guarded, opcode, operands)?;
                }
            }
            Reading::Again | Reading::Whole(_) => {
                cursor.known_end();
                self.push(What::Instruction(op), start, cursor.at);
            }
        }
        cursor.at += 1;
        self.count(op, guarded);
        Ok(())
    }

    /// What the first word of an opcode stands for, and where it ends. `None` for a label, which is noted where that `is_new`.
    #[inline]
    fn first_word(
        &mut self,
        cursor: &mut Cursor<'_>,
        guarded: bool,
        is_new: bool,
    ) -> Result<Option<(Op, usize)>, Fault> {
        let start = cursor.at;
        let word = cursor.keyed_word();
        if word.is_empty() {
            return Err(Fault::new(start, 1, "this is neither an instruction nor a directive"));
        }
        let end = cursor.at;
        if !guarded && cursor.peek() != b'.' {
            cursor.skip_blank()?;
            if cursor.take(b':') {
                if is_new {
                    self.labels.label((narrow(start), narrow(end)), self.instructions);
                }
                return Ok(None);
            }
            cursor.at = end;
        }
        match opcode::named(word) {
            Some(op) => Ok(Some((op, end))),
            // What a later version of PTX adds has modifiers.
            None if cursor.peek() == b'.' => Ok(Some((Op::Unknown, end))),
            None => {
                let word = String::from_utf8_lossy(word.bytes);
                Err(Fault::new(start, word.len(), format!("`{word}` is no PTX instruction")))
            }
        }
    }

    /// Reads an instruction with its operands. Most have an opcode that was met before, which is looked up as a whole.
    #[inline]
    fn whole_instruction<'t>(&mut self, cursor: &mut Cursor<'t>, reader: &mut Reader<'t>) -> Result<(), Fault> {
        let start = cursor.at;
        let guard = reader.guard(cursor);
        let opcode = *cursor;
        let known = match reader.known_opcode(cursor, guard.is_some()) {
            Some(known) => known,
            None => {
                *cursor = opcode;
                let Some((op, _)) = self.first_word(cursor, guard.is_some(), false)? else { return Ok(()) };
                *cursor = opcode;
                reader.new_opcode(cursor, op)
            }
        };
        let head = Head { opcode: known, guard, at: narrow(start), statement: narrow(self.statements.len()) };
        let op = reader.instruction(cursor, &head);
        self.push(What::Instruction(op), start, cursor.at);
        cursor.at += 1;
        self.count(op, guard.is_some());
        Ok(())
    }

    fn count(&mut self, op: Op, guarded: bool) {
        self.instructions += 1;
        self.calls += u32::from(op == Op::Call);
        self.tensor |= op.is_tensor();
        self.branches += u32::from((guarded && op.ends_block()) || op == Op::Brx);
    }

    /// Notes where the instruction leads, whose modifiers and operands are next.
    fn jump(&mut self, op: Op, guarded: bool, opcode: usize, mut cursor: Cursor<'_>) -> Result<(), Fault> {
        // What a label or a table stands for is known at the end of the function.
        let way = match op {
            Op::Bra => Way::To(0),
            Op::Brx => Way::Table(0),
            _ => Way::Out,
        };
        self.flow.jumps.push(Jump { at: self.instructions, guarded, way });
        if way == Way::Out {
            return Ok(());
        }
        while cursor.take(b'.') {
            cursor.word();
        }
        cursor.skip_blank()?;
        if op == Op::Brx {
            skip_index(&mut cursor)?;
        }
        let start = cursor.at;
        if cursor.word().is_empty() {
            let missing = if op == Op::Brx { "table of targets" } else { "label" };
            return Err(Fault::new(opcode, 3, format!("this branch names no {missing}")));
        }
        self.labels.jump(&self.flow, (narrow(start), narrow(cursor.at)));
        Ok(())
    }

    /// Notes the names in `.branchtargets A, B`.
    fn targets(&mut self, mut cursor: Cursor<'_>) -> Result<(), Fault> {
        self.labels.table();
        loop {
            cursor.skip_blank()?;
            let start = cursor.at;
            if cursor.word().is_empty() {
                return Ok(());
            }
            self.labels.target((narrow(start), narrow(cursor.at)));
            cursor.skip_blank()?;
            if !cursor.take(b',') {
                return Ok(());
            }
        }
    }

    fn directive<'t>(&mut self, cursor: &mut Cursor<'t>, reading: &mut Reading<'_, 't>) -> Result<(), Fault> {
        let start = cursor.at;
        cursor.at += 1;
        match cursor.word() {
            b"loc" => {
                skip_location(cursor, start)?;
                if !matches!(reading, Reading::First) {
                    self.push(What::Location, start, cursor.at);
                }
                return Ok(());
            }
            b"file" => return skip_file(cursor, start),
            b"reg" => {
                cursor.statement_end(start)?;
                if let Reading::Whole(reader) = reading {
                    reader.declare(&cursor.text[start..cursor.at]);
                }
            }
            b"branchtargets" => {
                let names = cursor.at;
                cursor.statement_end(start)?;
                if matches!(reading, Reading::First) {
                    self.targets(Cursor::new(&cursor.text[..cursor.at], names))?;
                }
            }
            b"shared" => {
                cursor.statement_end(start)?;
                let size = storage::size(&cursor.text[start..cursor.at], self.shared);
                self.shared = size;
            }
            b"local" => {
                cursor.statement_end(start)?;
                self.local = storage::size(&cursor.text[start..cursor.at], self.local);
                self.depot = self.depot.take().or_else(|| variable(cursor.text, start, cursor.at));
            }
            b"" => return Err(Fault::new(start, 1, "a directive has no name")),
            _ => {}
        }
        cursor.statement_end(start)?;
        cursor.at += 1;
        Ok(())
    }
}

/// A module of 4 GiB is refused before it is read.
#[inline]
fn narrow(at: usize) -> u32 {
    at as u32
}

/// Over the index of a branch through a table, and the comma behind it.
fn skip_index(cursor: &mut Cursor<'_>) -> Result<(), Fault> {
    cursor.word();
    if cursor.take(b'.') {
        cursor.word();
    }
    cursor.skip_blank()?;
    cursor.take(b',');
    cursor.skip_blank()
}

/// Over the rest of a `.loc`, which no `;` ends: three numbers, and for inlined code `function_name` and `inlined_at`.
fn skip_location(cursor: &mut Cursor<'_>, start: usize) -> Result<(), Fault> {
    let malformed = || Fault::new(start, 4, "this `.loc` has not the form `.loc file line column`");
    for _ in 0..3 {
        skip_spaces(cursor);
        cursor.number().ok_or_else(malformed)?;
    }
    let mut last = cursor.at;
    loop {
        skip_spaces(cursor);
        if !cursor.take(b',') {
            cursor.at = last;
            return Ok(());
        }
        cursor.skip_blank()?;
        cursor.word();
        // A name, perhaps with an offset, or three numbers.
        while matches!(cursor.peek(), b' ' | b'\t' | b'+' | b'$' | b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z') {
            cursor.at += 1;
        }
        last = cursor.at;
    }
}

fn skip_spaces(cursor: &mut Cursor<'_>) {
    while matches!(cursor.peek(), b' ' | b'\t') {
        cursor.at += 1;
    }
}

/// Over a `.file`, which no `;` ends: a number, a name in quotes, perhaps two more numbers.
pub(super) fn skip_file(cursor: &mut Cursor<'_>, start: usize) -> Result<(), Fault> {
    let malformed = || Fault::new(start, 5, "this `.file` has not the form `.file number \"name\"`");
    skip_spaces(cursor);
    cursor.number().ok_or_else(malformed)?;
    skip_spaces(cursor);
    if cursor.peek() != b'"' {
        return Err(malformed());
    }
    cursor.skip_string()?;
    // A time and a size, or a checksum.
    let rest = &cursor.text[cursor.at..];
    cursor.at += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads it twice, which has to find the same.
    fn body(text: &str) -> Body {
        let mut body = Body::default();
        body.read(text.as_bytes(), 0).unwrap_or_else(|fault| panic!("{fault:?}\n{text}"));
        let seen = |body: &Body| {
            (body.branches, body.instructions, body.calls, body.tensor, body.shared, body.local, body.end)
        };
        let first = seen(&body);
        body.read_again(text.as_bytes(), 0);
        assert_eq!(first, seen(&body), "{text}");
        body
    }

    fn fault(text: &str) -> String {
        let mut body = Body::default();
        let fault = body.read(text.as_bytes(), 0).expect_err("a fault");
        format!("{}+{}: {}", fault.at, fault.length, fault.message)
    }

    /// Each statement with its text.
    fn statements(text: &str) -> Vec<(What, &str)> {
        let all = body(text).statements;
        all.iter().map(|one| (one.what, &text[one.start as usize..one.end as usize])).collect()
    }

    #[test]
    fn statements_are_told_apart_by_their_first_word() {
        let text = "{ .reg .b32 %r<2>; .loc 1 2 3\n A: @!%p1 bra A; { mov.u32 %r1, 1; } T: .branchtargets A; .pragma \"x\"; ; ret:ret; }";
        assert_eq!(
            statements(text),
            [
                (What::Location, ".loc 1 2 3"),
                (What::Instruction(Op::Bra), "@!%p1 bra A"),
                (What::Instruction(Op::Mov), "mov.u32 %r1, 1"),
                (What::Instruction(Op::Ret), "ret"),
            ]
        );
    }

    #[test]
    fn comments_blanks_and_line_ends_may_stand_anywhere() {
        let text = "{/**/A/* x */:\r\n@ /**/ ! // y\r\n %p1 /**/ bra /**/ A /**/ ; // z\r\n}";
        let found = statements(text);
        assert_eq!(found.iter().map(|(what, _)| *what).collect::<Vec<_>>(), [What::Instruction(Op::Bra)]);
    }

    #[test]
    fn a_call_spans_lines_and_braces_end_where_they_end() {
        let text = "{ { // callseq\n call.uni (retval0), \n f, \n (\n param0\n )\n ;\n } ret; } tail";
        let body = body(text);
        assert_eq!((body.calls, body.instructions, &text[..body.end]), (1, 2, &text[..text.len() - 5]));
    }

    #[test]
    fn what_a_function_holds_is_counted() {
        let text = "{ .shared .align 4 .b8 a[8]; .shared .b32 b; .local .b8 d[16]; @%p1 bra A; bra A; A: @%p1 ret; brx.idx %r1, T; T: .branchtargets A;
            @%p2 add.u32 %r1, %r1, 1; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1}, %rd1, %rd2, 1, 1, 1, 0, 0; }";
        let body = body(text);
        assert_eq!((body.branches, body.instructions, body.tensor), (3, 6, true));
        assert_eq!((body.shared, body.local), (Some(12), Some(16)));
    }

    #[test]
    fn a_location_of_inlined_code_has_no_semicolon_and_may_go_on() {
        let text =
            "{ .loc 1 2 3, function_name $L__info_string0+12, inlined_at 1 4 5 // x\n mov.u32 %r1, 1; .loc 1 3 1\n }";
        let found = statements(text);
        assert_eq!(found[0].1, ".loc 1 2 3, function_name $L__info_string0+12, inlined_at 1 4 5 ");
        assert_eq!((found[1].0, found[2].1), (What::Instruction(Op::Mov), ".loc 1 3 1"));
    }

    #[test]
    fn what_later_versions_add_is_read_and_garbage_is_not() {
        assert_eq!(statements("{ frobnicate.sync.b32 %r1, %r2; }")[0].0, What::Instruction(Op::Unknown));
        assert_eq!(fault("{ garbage %r1; }"), "2+7: `garbage` is no PTX instruction");
        assert_eq!(fault("{ @ ; }"), "2+1: a predicate is missing after `@`");
        assert_eq!(fault("{ , }"), "2+1: this is neither an instruction nor a directive");
        assert_eq!(fault("{ . x; }"), "2+1: a directive has no name");
        assert_eq!(fault("{ .loc 1 2\n }"), "2+4: this `.loc` has not the form `.loc file line column`");
        assert_eq!(fault("{ .file x }"), "2+5: this `.file` has not the form `.file number \"name\"`");
        assert_eq!(fault("{ mov.u32 %r1, 1 }"), "2+3: this statement is not ended, or its brackets do not match");
        assert_eq!(fault("{ ret; "), "0+1: the file ends within this function");
        assert_eq!(fault("{ ret; /* "), "7+2: this comment is not ended");
    }

    #[test]
    fn a_body_is_read_into_the_place_of_the_last_one() {
        let mut body = body("{ @%p1 bra A; call f; A: ret; }");
        body.read_again(b"{ ret; }", 0);
        assert_eq!((body.statements.len(), body.branches, body.calls, body.end), (1, 0, 0, 8));
    }
}
