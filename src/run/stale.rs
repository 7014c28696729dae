//! PTX that was made from an older text of its source: its branches come from lines on which nothing branches.

use std::path::Path;

use hashbrown::{HashMap, HashSet};

use crate::analyse::{Numbers, Stale};
use crate::discover::Sources;
use crate::model::{Place, Report};

/// Lines that do not fit, from which on it is no chance; macros and calls of library functions hide a few.
const FEW: usize = 4;

/// And their share, as one in so many.
const SHARE: usize = 3;

/// Holds the lines of branches in PTX against the sources that were given.
pub(super) fn check(report: &Report, numbers: &mut Numbers, sources: &Sources) {
    let given = given(report);
    if given.is_empty() || report.modules.iter().all(|module| module.positions().is_some()) {
        return;
    }
    let mut lines: HashMap<(u32, u32), HashSet<u32>> = HashMap::new();
    for at in 0..numbers.branches.all.len() {
        let Some(found) = numbers.branches.get(report, at).filter(|found| found.module.positions().is_none()) else {
            continue;
        };
        let Some(spot) = found.locations.map(|locations| locations.inner) else { continue };
        let source = found.module.file(spot.file).and_then(|name| given.get(base_name(name)));
        if let Some(Some(source)) = source {
            lines.entry((*source, found.module.input)).or_default().insert(spot.line);
        }
    }
    let mut all: Vec<((u32, u32), HashSet<u32>)> = lines.into_iter().collect();
    all.sort_unstable_by_key(|(files, _)| *files);
    for ((source, ptx), lines) in all.into_iter().filter(|(_, lines)| lines.len() >= FEW) {
        let path = report.file_of(Place { input: source, ..Place::default() });
        let Some(text) = sources.read(Path::new(path)) else { continue };
        let of_text: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
        let failed = lines.iter().filter(|line| !may_branch(&of_text, **line)).count();
        if failed >= FEW && failed * SHARE >= lines.len() {
            numbers.stale.push(Stale { ptx, source, lines: narrow(lines.len()), failed: narrow(failed) });
        }
    }
}

fn narrow(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The sources that were given, by their names without folders; `None` where several have one.
fn given(report: &Report) -> HashMap<&[u8], Option<u32>> {
    let mut given: HashMap<&[u8], Option<u32>> = HashMap::new();
    for unit in report.units.iter().filter(|unit| unit.input < Place::SOURCE) {
        let name = base_name(report.file_of(Place { input: unit.input, ..Place::default() }).as_bytes());
        given.entry(name).and_modify(|known| *known = None).or_insert(Some(unit.input));
    }
    given
}

fn base_name(path: &[u8]) -> &[u8] {
    path.iter().rposition(|byte| matches!(byte, b'/' | b'\\')).map_or(path, |at| &path[at + 1..])
}

/// Whether a line, or one of two around it, holds what may become a branch: a statement that decides, or a macro, which
/// may hold one.
fn may_branch(lines: &[&[u8]], number: u32) -> bool {
    let at = (number as usize).saturating_sub(1);
    let around = lines.get(at.saturating_sub(2)..(at + 3).min(lines.len())).unwrap_or_default();
    around.iter().any(|line| decides(line) || has_macro(line))
}

fn decides(line: &[u8]) -> bool {
    const SIGNS: [&[u8]; 3] = [b"?", b"&&", b"||"];
    const WORDS: [&[u8]; 6] = [b"if", b"for", b"while", b"do", b"switch", b"assert"];
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let mut words = line.split(|byte| !is_word(byte));
    SIGNS.iter().any(|sign| memchr::memmem::find(line, sign).is_some()) || words.any(|word| WORDS.contains(&word))
}

/// Whether a line holds something that is called and written in capitals.
fn has_macro(line: &[u8]) -> bool {
    let calls = memchr::memchr_iter(b'(', line);
    calls.into_iter().any(|at| {
        let word = line[..at].iter().rev().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
        let word = &line[at - word..at];
        word.len() > 2 && word.iter().all(|byte| !byte.is_ascii_lowercase())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_near_a_decision_or_a_macro_may_branch() {
        let lines: Vec<&[u8]> =
            "a = b;\nif (a) {\nc = d;\ne = f;\ng = h;\ni = j;\nCHECK(k);".split('\n').map(str::as_bytes).collect();
        let may: Vec<bool> = (1..=8).map(|line| may_branch(&lines, line)).collect();
        assert_eq!(may, [true, true, true, true, true, true, true, true]);
        let plain: Vec<&[u8]> = vec![b"a = g(b);"; 9];
        assert!(!may_branch(&plain, 5) && !may_branch(&plain, 0) && !may_branch(&plain, 99));
    }
}
