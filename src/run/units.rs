//! Reads CUDA sources, many at a time. Of their texts only what is said in them is kept: a tree may be larger than memory.

use std::fs::File;
use std::io::{self, Read};

use rayon::prelude::*;

use crate::discover::{InputError, LARGEST, SourceFile};
use crate::model::{InputFacts, Place, Report, symbol};
use crate::parse::cuda::{Aliases, Scanned, find_aliases, gather, scan};
use crate::suppress::{self, Kept};

/// Sources that were read into a report, beside what it holds of them.
#[derive(Default)]
pub(super) struct Units {
    /// The comments of each unit, by its index.
    pub(super) comments: Vec<(u32, Vec<Kept>)>,
    /// Files that could not be read.
    pub(super) failures: Vec<InputError>,
}

impl Units {
    /// Adds those that were read later.
    pub(super) fn add(&mut self, later: Units) {
        self.comments.extend(later.comments);
        self.failures.extend(later.failures);
    }
}

/// What files of a run are read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// To be linted: each is an input.
    Given,
    /// For what they say of the kernels of other inputs.
    Searched,
}

/// Reads `files` into `report`, in their order, however many are read at a time; of those that may be left out, the ones
/// whose text is `wanted`.
pub(super) fn read(
    files: &[SourceFile],
    role: Role,
    wanted: impl Fn(&[u8]) -> bool + Sync,
    report: &mut Report,
) -> Units {
    let mut units = Units::default();
    let before = Aliases::default();
    let mut found: Vec<Outcome> = files.par_iter().map(|file| read_one(file, &wanted, &before)).collect();
    let mut aliases = before.clone();
    let new = found.iter_mut().flat_map(|one| match one {
        Outcome::Scanned(content) => std::mem::take(&mut content.aliases),
        _ => Vec::new(),
    });
    // Macros of one file that mean something in another: files that use them are read again, knowing that.
    if aliases.add(new.collect::<Vec<_>>()) {
        found = found
            .into_par_iter()
            .zip(files)
            .map(|(one, file)| read_again(file, &before, &aliases).unwrap_or(one))
            .collect();
    }
    let mut scanned = Vec::new();
    for (file, one) in files.iter().zip(found) {
        match one {
            Outcome::Scanned(content) => {
                let input = number(file, role, content.bytes, report);
                units.comments.push((narrow(report.units.len() + scanned.len()), content.comments));
                scanned.push((input, content.scanned));
            }
            Outcome::NotWanted => {}
            Outcome::Failed(error) => units.failures.push(error),
        }
    }
    gather(scanned, report);
    units
}

/// Adds a source that was found by the name that a compiler gave it, with its text and the number of its places. What it
/// launches is nothing that the run was given.
pub(super) fn add_found(input: u32, text: &[u8], units: &mut Units, report: &mut Report) {
    let unit = narrow(report.units.len());
    units.comments.push((unit, suppress::keep(text)));
    gather(vec![(input, scan(text, &Aliases::default()))], report);
    forget_launches(report, unit as usize);
}

/// Forgets the launches of all units from `first` on.
pub(super) fn forget_launches(report: &mut Report, first: usize) {
    report.units.iter_mut().skip(first).for_each(|unit| unit.launches.clear());
}

/// What became of a file.
enum Outcome {
    Scanned(Content),
    /// It is C++ for the host alone, or says nothing of what is asked about.
    NotWanted,
    Failed(InputError),
}

struct Content {
    scanned: Scanned,
    comments: Vec<Kept>,
    aliases: Vec<Alias>,
    bytes: u64,
}

type Alias = (Box<[u8]>, crate::parse::cuda::aliases::Meaning);

fn read_one(file: &SourceFile, wanted: impl Fn(&[u8]) -> bool, aliases: &Aliases) -> Outcome {
    match text_of(file) {
        Ok(Some(text)) if wanted(&text) => content(file, &text, aliases),
        Ok(_) => Outcome::NotWanted,
        Err(error) => Outcome::Failed(error),
    }
}

/// The same once more, where the file holds a macro that was not known before.
fn read_again(file: &SourceFile, before: &Aliases, aliases: &Aliases) -> Option<Outcome> {
    let text = text_of(file).ok()??;
    aliases.are_new_in(&text, before).then(|| content(file, &text, aliases))
}

fn content(file: &SourceFile, text: &[u8], aliases: &Aliases) -> Outcome {
    if !file.is_sure && !aliases.may_be_in(text) {
        return Outcome::NotWanted;
    }
    let aliases_of = find_aliases(text, aliases);
    let comments = suppress::keep(text);
    Outcome::Scanned(Content { scanned: scan(text, aliases), comments, aliases: aliases_of, bytes: text.len() as u64 })
}

/// The text of a file; nothing for one that is not surely a source, and no text of a person's.
fn text_of(file: &SourceFile) -> Result<Option<Vec<u8>>, InputError> {
    let shown = || symbol::printable(&file.path.display().to_string()).into_owned();
    let unreadable = |error: io::Error| InputError::Unreadable { path: shown(), reason: error.to_string() };
    let mut text = Vec::new();
    let open = File::open(&file.path).map_err(unreadable)?;
    let size = open.metadata().map_err(unreadable)?.len();
    if size > LARGEST {
        let too_large = InputError::TooLarge { path: shown(), size, most: LARGEST };
        return if file.is_sure { Err(too_large) } else { Ok(None) };
    }
    text.reserve(usize::try_from(size).unwrap_or(0));
    // It may grow while it is read.
    open.take(LARGEST).read_to_end(&mut text).map_err(unreadable)?;
    if memchr::memchr(0, &text).is_some() {
        return if file.is_sure { Err(InputError::Binary { path: shown() }) } else { Ok(None) };
    }
    Ok(Some(text))
}

/// The number that places in a file have.
fn number(file: &SourceFile, role: Role, bytes: u64, report: &mut Report) -> u32 {
    let name = file.path.display().to_string();
    match role {
        Role::Given => {
            report.inputs.push(InputFacts { name, bytes, is_source: true, ..InputFacts::default() });
            narrow(report.inputs.len() - 1)
        }
        Role::Searched => {
            report.sources.push(name);
            Place::SOURCE + narrow(report.sources.len() - 1)
        }
    }
}

fn narrow(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
