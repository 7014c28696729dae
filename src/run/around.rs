//! The sources around the inputs, which are searched for the kernels of findings, and only where there is a finding.

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use super::units::{self, Role};
use super::{Examined, sources};
use crate::discover::{self, Exclude};
use crate::finding::Subject;
use crate::join;
use crate::model::{NameId, Place, Report, Unit, base};
use crate::settle::Verdict;

/// The identifiers of the kernels that findings are on whose place may be a line of a source.
pub(super) fn wanted(verdict: &Verdict<'_>) -> BTreeSet<Vec<u8>> {
    let report = verdict.context.report;
    let mut names: BTreeSet<NameId> = BTreeSet::new();
    for one in &verdict.settled {
        names.extend(match one.hit.subject {
            Subject::Kernel(at) => {
                report.kernels.get(at as usize).filter(|one| one.family.is_none()).and_then(|one| one.name)
            }
            Subject::Message(at) => report.messages.get(at as usize).and_then(|one| one.kernel),
            _ => None,
        });
    }
    names.into_iter().filter_map(|name| identifier(report.names.get(name))).collect()
}

/// The file of a unit, as the system has it.
fn path_of(report: &Report, unit: &Unit) -> Option<PathBuf> {
    std::fs::canonicalize(report.file_of(Place { input: unit.input, ..Place::default() })).ok()
}

/// The last part of a kernel's name, as its source has it.
fn identifier(name: &[u8]) -> Option<Vec<u8>> {
    let base = base(name);
    let end = memchr::memmem::find(&base, "<…>".as_bytes());
    let part = base.rsplit(|byte| *byte == b':').next().unwrap_or_default();
    let part = if end.is_some() { part.split(|byte| *byte == b'<').next().unwrap_or_default() } else { part };
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80;
    (!part.is_empty() && part.iter().all(is_word)).then(|| part.to_vec())
}

/// Reads the sources below `places` that hold one of `names`, for where they declare kernels and what their comments allow.
pub(super) fn search(names: &BTreeSet<Vec<u8>>, places: &[PathBuf], exclude: &Exclude, read: &mut Examined) {
    // A table of all states would be filled in the square of a name's length where the name repeats itself.
    let kind = Some(AhoCorasickKind::ContiguousNFA);
    let Ok(finder) = AhoCorasick::builder().kind(kind).build(names) else { return };
    // What of it cannot be looked at was not asked for.
    let mut files = discover::source_files(places, true, exclude).files;
    let known: HashSet<PathBuf> = read.report.units.iter().filter_map(|unit| path_of(&read.report, unit)).collect();
    if !known.is_empty() {
        files.retain(|file| std::fs::canonicalize(&file.path).is_ok_and(|path| !known.contains(&path)));
    }
    let first = read.report.units.len();
    let mut found = units::read(&files, Role::Searched, |text| finder.is_match(text), &mut read.report);
    // One that cannot be read was not asked for.
    found.failures.clear();
    if read.report.units.len() == first {
        return;
    }
    units::forget_launches(&mut read.report, first);
    read.units.add(found);
    join::rejoin(&mut read.report);
    sources::tell_again(&mut read.report, &mut read.numbers, &read.units);
}
