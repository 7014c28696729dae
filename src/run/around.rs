//! The sources around the inputs, which are searched for the kernels of findings, and only where there is a finding.

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

use super::units::{self, Role, Scanned};
use super::{Examined, sources};
use crate::discover::{self, SourceFile};
use crate::finding::Subject;
use crate::join;
use crate::model::{NameId, Place, Report, Unit, base};
use crate::parse::needles::Needles;
use crate::settle::Verdict;

/// Whether a finding is on a kernel whose place may be a line of a source.
pub(super) fn is_wanted(verdict: &Verdict<'_>) -> bool {
    names(verdict).next().is_some()
}

/// The names of the kernels of such findings, each as often as it comes.
fn names(verdict: &Verdict<'_>) -> impl Iterator<Item = NameId> {
    let report = verdict.context.report;
    verdict.settled.iter().filter_map(|one| match one.hit.subject {
        Subject::Kernel(at) => {
            report.kernels.get(at as usize).filter(|one| one.family.is_none()).and_then(|one| one.name)
        }
        Subject::Message(at) => report.messages.get(at as usize).and_then(|one| one.kernel),
        _ => None,
    })
}

/// The identifiers of these kernels, each once.
fn identifiers(verdict: &Verdict<'_>) -> BTreeSet<Vec<u8>> {
    let names: HashSet<NameId> = names(verdict).collect();
    names.into_iter().filter_map(|name| identifier(verdict.context.report.names.get(name))).collect()
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

/// The sources below `places`, without those that are `read` already.
pub(super) fn files(places: &[PathBuf], read: &Examined) -> Vec<SourceFile> {
    // What of it cannot be looked at was not asked for.
    let mut files = discover::source_files(places, true, &read.exclude).files;
    let known: HashSet<PathBuf> = read.report.units.iter().filter_map(|unit| path_of(&read.report, unit)).collect();
    if !known.is_empty() {
        files.retain(|file| std::fs::canonicalize(&file.path).is_ok_and(|path| !known.contains(&path)));
    }
    files
}

/// Reads those of `files` that name a kernel of a finding, for where they declare it and what their comments allow; `None`
/// where none of them has code.
pub(super) fn search<'f>(verdict: &Verdict<'_>, files: &'f [SourceFile]) -> Option<Scanned<'f>> {
    if files.is_empty() {
        return None;
    }
    let names = Needles::new(&Vec::from_iter(identifiers(verdict)))?;
    Some(units::scan_all(files, Role::Searched, |text| names.are_in(text))).filter(Scanned::has_code)
}

/// Adds what was found to what is `read`.
pub(super) fn add(found: Scanned<'_>, read: &mut Examined) {
    let first = read.report.units.len();
    let mut units = found.add_to(&mut read.report);
    // One that cannot be read was not asked for.
    units.failures.clear();
    units::forget_launches(&mut read.report, first);
    read.units.add(units);
    join::rejoin(&mut read.report);
    sources::tell_again(&mut read.report, &mut read.numbers, &read.units);
}
