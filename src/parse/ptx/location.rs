//! Source lines of instructions: what `.loc` says, with inlined code followed out to the line that a person wrote.

use hashbrown::HashMap;

use super::body::{Body, What};
use super::lexer::Cursor;

/// A line of a source file, which has a number in the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Spot {
    /// The file's number.
    pub file: u32,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1; 0 where the compiler gave none.
    pub column: u32,
}

impl Spot {
    /// The place that a `.loc` at the start of `text` names first, where it is one.
    #[must_use]
    pub fn of_directive(text: &[u8]) -> Option<Spot> {
        let rest = text.strip_prefix(b".loc")?;
        let is_blank = matches!(rest.first(), Some(b' ' | b'\t'));
        let end = memchr::memchr2(b'\n', b',', rest).unwrap_or(rest.len());
        spot(&mut Cursor::new(&rest[..end], 0)).filter(|_| is_blank)
    }
}

/// What is in force at a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Locations {
    /// The line of the code itself, in a function that may have been inlined.
    pub inner: Spot,
    /// The line that the code was inlined into, followed to the end.
    pub outer: Spot,
}

impl Locations {
    /// What is in force at each of the statements `wanted`, which rise.
    #[must_use]
    pub fn of(text: &[u8], body: &Body, wanted: &[u32]) -> Vec<Option<Locations>> {
        let mut table = Table::default();
        let mut found = Vec::with_capacity(wanted.len());
        let mut wanted = wanted.iter().peekable();
        for (number, statement) in (0..).zip(&body.statements) {
            if statement.what == What::Location {
                table.read(&text[statement.start as usize..statement.end as usize]);
            }
            while wanted.next_if(|at| **at == number).is_some() {
                found.push(table.now);
            }
            if wanted.peek().is_none() {
                break;
            }
        }
        found
    }
}

#[derive(Default)]
struct Table {
    now: Option<Locations>,
    /// For each inlined line the outermost line of its caller.
    callers: HashMap<Spot, Spot>,
}

impl Table {
    /// Reads `.loc 1 7 3` or `.loc 2 372 9, function_name $L__info_string0, inlined_at 1 11 3`.
    fn read(&mut self, directive: &[u8]) {
        let mut cursor = Cursor::new(directive, b".loc".len().min(directive.len()));
        let Some(own) = spot(&mut cursor) else { return };
        let marker = b"inlined_at";
        let Some(at) = memchr::memmem::find(directive, marker) else {
            // Line 0 means that the compiler knows none.
            if own.line != 0 {
                self.callers.remove(&own);
                self.now = Some(Locations { inner: own, outer: own });
            }
            return;
        };
        let mut cursor = Cursor::new(directive, at + marker.len());
        let Some(caller) = spot(&mut cursor) else { return };
        let outer = self.callers.get(&caller).copied().unwrap_or(caller);
        self.callers.insert(own, outer);
        if outer.line != 0 {
            self.now = Some(Locations { inner: if own.line == 0 { outer } else { own }, outer });
        }
    }
}

fn spot(cursor: &mut Cursor<'_>) -> Option<Spot> {
    let mut next = || {
        cursor.skip_blank().ok()?;
        cursor.number()
    };
    Some(Spot { file: next()?, line: next()?, column: next()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outer(directives: &[&str]) -> Option<(u32, u32)> {
        let mut table = Table::default();
        directives.iter().for_each(|directive| table.read(directive.as_bytes()));
        table.now.map(|now| (now.outer.file, now.outer.line))
    }

    #[test]
    fn inlined_code_stands_at_the_outermost_line() {
        assert_eq!(outer(&[".loc 1 7 3"]), Some((1, 7)));
        let once = ".loc\t2 372 9, function_name $L__info_string0, inlined_at 1 11 3";
        assert_eq!(outer(&[".loc 1 11 3", once]), Some((1, 11)));
        let twice = ".loc 3 5 1, function_name $L__info_string0+12, inlined_at 2 372 9";
        assert_eq!(outer(&[".loc 1 11 3", once, twice]), Some((1, 11)));
        assert_eq!(outer(&[".loc 1 11 3", ".loc 1 0 3"]), Some((1, 11)));
        assert_eq!(outer(&[".loc 1 11"]), None);
    }
}
