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
    /// Where the code stands that was inlined there: the innermost line that is the user's own, else the innermost.
    pub inlined: Option<Inlined>,
}

/// A line of a function that was inlined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inlined {
    /// The line.
    pub spot: Spot,
    /// The first byte of the `.loc` that names the function.
    pub directive: u32,
}

impl Locations {
    /// What is in force at each of the statements `wanted`, which rise; `is_foreign` tells the files that users did not write.
    #[must_use]
    pub fn of(text: &[u8], body: &Body, wanted: &[u32], is_foreign: &dyn Fn(u32) -> bool) -> Vec<Option<Locations>> {
        let mut table = Table::default();
        let mut found = Vec::with_capacity(wanted.len());
        let mut wanted = wanted.iter().peekable();
        for (number, statement) in (0..).zip(&body.statements) {
            if statement.what == What::Location {
                table.read(&text[statement.start as usize..statement.end as usize], statement.start, is_foreign);
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
    /// For each inlined line the outermost line of its caller, and the innermost that is the user's own.
    callers: HashMap<Spot, (Spot, Option<Inlined>)>,
}

impl Table {
    /// Reads `.loc 1 7 3` or `.loc 2 372 9, function_name $L__info_string0, inlined_at 1 11 3`.
    fn read(&mut self, directive: &[u8], start: u32, is_foreign: &dyn Fn(u32) -> bool) {
        let mut cursor = Cursor::new(directive, b".loc".len().min(directive.len()));
        let Some(own) = spot(&mut cursor) else { return };
        let marker = b"inlined_at";
        let Some(at) = memchr::memmem::find(directive, marker) else {
            // Line 0 means that the compiler knows none.
            if own.line != 0 {
                self.callers.remove(&own);
                self.now = Some(Locations { inner: own, outer: own, inlined: None });
            }
            return;
        };
        let mut cursor = Cursor::new(directive, at + marker.len());
        let Some(caller) = spot(&mut cursor) else { return };
        let (outer, of_caller) = self.callers.get(&caller).copied().unwrap_or((caller, None));
        let here = Some(Inlined { spot: own, directive: start }).filter(|_| own.line != 0);
        let own_code = here.filter(|_| !is_foreign(own.file)).or(of_caller);
        self.callers.insert(own, (outer, own_code));
        if outer.line != 0 {
            let inner = if own.line == 0 { outer } else { own };
            // A line that calls itself is the line that is shown.
            let other = |one: &Inlined| (one.spot.file, one.spot.line) != (outer.file, outer.line);
            let inlined = own_code.or_else(|| here.filter(|_| is_foreign(own.file))).filter(other);
            self.now = Some(Locations { inner, outer, inlined });
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
        read(directives).map(|now| (now.outer.file, now.outer.line))
    }

    /// What is in force after the directives; files from 7 on are not the user's.
    fn read(directives: &[&str]) -> Option<Locations> {
        let mut table = Table::default();
        for (start, directive) in (0..).zip(directives) {
            table.read(directive.as_bytes(), start, &|file| file >= 7);
        }
        table.now
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
    #[test]
    fn of_inlined_code_the_innermost_line_of_the_user_is_told() {
        let inlined = |directives: &[&str]| {
            let found = read(directives)?.inlined?;
            Some((found.spot.file, found.spot.line, found.directive))
        };
        let helper = ".loc 2 12 5, function_name $L__info_string0, inlined_at 1 4 9";
        let header = ".loc 7 80 1, function_name $L__info_string1, inlined_at 2 12 5";
        assert_eq!(inlined(&[".loc 1 4 9"]), None);
        assert_eq!(inlined(&[".loc 1 4 9", helper]), Some((2, 12, 1)));
        assert_eq!(inlined(&[".loc 1 4 9", helper, header]), Some((2, 12, 1)));
        // What only the toolkit has inlined stands there.
        assert_eq!(inlined(&[".loc 7 80 1, function_name $L__info_string1, inlined_at 1 4 9"]), Some((7, 80, 0)));
        // As after a macro, or a call of the same line.
        assert_eq!(inlined(&[".loc 1 4 20, function_name $L__info_string1, inlined_at 1 4 9"]), None);
        let callback = ".loc 1 30 2, function_name $L__info_string2, inlined_at 7 80 1";
        assert_eq!(inlined(&[header, callback]), Some((1, 30, 1)));
    }
}
