//! Reads CUDA sources, many at a time. Of their texts only what is said in them is kept: a tree may be larger than memory.

use hashbrown::HashMap;
use rayon::prelude::*;

use crate::discover::{InputError, SourceFile};
use crate::model::{Bounds, InputFacts, NameId, NotFollowed, Place, Report, Spot, Unit};
use crate::parse::cuda::lower::{self, Device, Lowered, lower, lower_all, redefines_exchanges};
use crate::parse::cuda::{Aliases, File, Gathered, Meaning, NewNames, Scanner, gather, scan};
use crate::suppress::{self, Kept};

use super::text::Room;

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

/// Which device functions of a source are made into PTX.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lower {
    /// None.
    Nothing,
    /// Those in which a branch may have something to report.
    Telling,
    /// All.
    All,
}

/// What files of a run are read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// To be linted: each is an input, whose device functions are made into PTX where branches are asked for.
    Given {
        /// Whether they are.
        lower: Lower,
    },
    /// For what they say of the kernels of other inputs.
    Searched,
}

/// Reads `files` into `report`, in their order, however many are read at a time.
pub(super) fn read(files: &[SourceFile], role: Role, report: &mut Report) -> Units {
    scan_all(files, role, |_| true).add_to(report)
}

/// What was read of files, before it is part of a report.
pub(super) struct Scanned<'f> {
    files: &'f [SourceFile],
    role: Role,
    outcomes: Vec<Outcome>,
}

/// Reads those of `files` whose text is `wanted`.
pub(super) fn scan_all<'f>(files: &'f [SourceFile], role: Role, wanted: impl Fn(&[u8]) -> bool + Sync) -> Scanned<'f> {
    if files.is_empty() {
        return Scanned { files, role, outcomes: Vec::new() };
    }
    let before = Aliases::default();
    let reader = |aliases| Reader { role, wanted: &wanted, aliases };
    let mut outcomes: Vec<Outcome> = match files {
        // One file is read before threads would be there for it.
        [file] => vec![reader(&before).read(file, &mut Hand::default())],
        _ => files.par_iter().map_init(Hand::default, |hand, file| reader(&before).read(file, hand)).collect(),
    };
    let mut aliases = before.clone();
    let new: Vec<Alias> = outcomes.iter_mut().flat_map(Outcome::take_aliases).collect();
    // Macros of one file that mean something in another: files that use them are read again, knowing that.
    if aliases.add(new) {
        let names = aliases.newer_than(&before);
        let again = |hand: &mut Hand, (one, file): (Outcome, &SourceFile)| {
            reader(&aliases).read_again(file, &names, hand).unwrap_or(one)
        };
        outcomes = outcomes.into_par_iter().zip(files).map_init(Hand::default, again).collect();
    }
    Scanned { files, role, outcomes }
}

impl Scanned<'_> {
    /// Whether there is a source of device code among them.
    pub(super) fn has_code(&self) -> bool {
        self.outcomes.iter().any(|one| matches!(one, Outcome::Scanned(content) if content.has_code))
    }

    /// Adds it to `report`.
    pub(super) fn add_to(self, report: &mut Report) -> Units {
        let mut units = Units::default();
        let mut gathered = Vec::with_capacity(self.outcomes.len());
        let mut lowered = Vec::new();
        let redefines = |one: &Outcome| matches!(one, Outcome::Scanned(content) if content.redefines_exchanges);
        let is_redefined = self.outcomes.iter().any(redefines);
        for (file, one) in self.files.iter().zip(self.outcomes) {
            match one {
                Outcome::Scanned(content) => {
                    let name = file.path.display().to_string();
                    let input = content.has_code.then(|| number(&name, self.role, content.file.bytes, report));
                    if input.is_some() {
                        let unit = narrow(report.units.len() + units.comments.len());
                        units.comments.push((unit, content.comments));
                        lowered.extend(content.lowered.map(|lowered| (unit, lowered)));
                    }
                    gathered.push(Gathered { name, input, file: content.file });
                }
                Outcome::NotWanted => {}
                Outcome::Failed(error) => units.failures.push(error),
            }
        }
        gather(&gathered, report);
        for (unit, mut made) in lowered {
            if is_redefined {
                made.lowered.forget_exchanges();
            }
            add_module(unit, made, report);
        }
        units
    }
}

/// Functions of a source as PTX, with the names that the source has for them.
struct Made {
    lowered: Lowered,
    functions: Vec<Device>,
    names: Vec<Box<[u8]>>,
    /// How many functions were not followed, and the name and the line of the first one.
    not_followed: Option<(u32, Box<[u8]>, u32)>,
}

/// Adds the module that functions of a source were made into.
fn add_module(unit: u32, made: Made, report: &mut Report) {
    let Some(of_unit) = report.units.get_mut(unit as usize) else { return };
    let (names, not_followed) = (&mut report.names, made.not_followed);
    of_unit.not_followed =
        not_followed.map(|(count, name, line)| NotFollowed { count, first: names.intern(&name), line });
    if made.lowered.functions.is_empty() {
        return;
    }
    let declared: Vec<Option<u32>> = made.functions.iter().map(|device| declaration_of(of_unit, device)).collect();
    let input = of_unit.input;
    let named_by: Vec<Option<NameId>> =
        declared.iter().map(|at| Some(of_unit.declarations[(*at)? as usize].name)).collect();
    let mut kept: Vec<usize> = Vec::new();
    let mut named = |of: usize| {
        let own = made.names.get(kept.len());
        kept.push(of);
        named_by[of].unwrap_or_else(|| names.intern(own.map_or(b"?", |name| name)))
    };
    let spot = |of: usize| declared[of].map(|at| Spot { unit, at });
    let callers = made.lowered.functions.iter().map(|one| (one.of, one.kernels.iter().map(|at| spot(*at)).collect()));
    let mut callers: HashMap<usize, Option<Vec<Spot>>> = callers.collect();
    let mut module = made.lowered.into_module(input, &made.functions, &mut named, &|_| Bounds::default());
    for (function, of) in module.functions.iter_mut().zip(kept) {
        function.declared = spot(of);
        let callers = callers.remove(&of).flatten().unwrap_or_default();
        function.callers = callers.into_iter().map(|spot| (spot, None)).collect();
    }
    report.modules.push(module);
}

/// The declaration whose body a device function is.
fn declaration_of(unit: &Unit, device: &Device) -> Option<u32> {
    let past = unit.declarations.partition_point(|one| one.extent.start <= device.body.start);
    let at =
        past.checked_sub(1).filter(|at| device.is_kernel && unit.declarations[*at].extent.end >= device.body.end)?;
    u32::try_from(at).ok()
}

/// Adds a source that was found by the name that a compiler gave it, with its text and the number of its places. What it
/// launches is nothing that the run was given.
pub(super) fn add_found(input: u32, text: &[u8], units: &mut Units, report: &mut Report) {
    let unit = narrow(report.units.len());
    units.comments.push((unit, suppress::keep(text)));
    let file = scan(text, &Aliases::default());
    let name = report.file_of(Place { input, ..Place::default() }).to_owned();
    gather(&[Gathered { name, input: Some(input), file }], report);
    forget_launches(report, unit as usize);
}

/// Forgets the launches of all units from `first` on.
pub(super) fn forget_launches(report: &mut Report, first: usize) {
    report.units.iter_mut().skip(first).for_each(|unit| unit.launches.clear());
}

/// What became of a file.
enum Outcome {
    Scanned(Box<Content>),
    /// It is C++ for the host alone, or says nothing of what is asked about.
    NotWanted,
    Failed(InputError),
}

struct Content {
    file: File,
    /// Whether it is a source of device code, and does not only tell others constants.
    has_code: bool,
    comments: Vec<Kept>,
    lowered: Option<Made>,
    /// Whether it defines exchanges between lanes anew, for whoever includes it.
    redefines_exchanges: bool,
}

type Alias = (Box<[u8]>, Meaning);

impl Outcome {
    fn take_aliases(&mut self) -> Vec<Alias> {
        match self {
            Outcome::Scanned(content) => std::mem::take(&mut content.file.aliases),
            Outcome::NotWanted | Outcome::Failed(_) => Vec::new(),
        }
    }
}

/// What one thread reads files with.
#[derive(Default)]
struct Hand {
    room: Room,
    scanner: Scanner,
}

/// Reads files, knowing macros.
struct Reader<'r> {
    role: Role,
    wanted: &'r (dyn Fn(&[u8]) -> bool + Sync),
    aliases: &'r Aliases,
}

impl Reader<'_> {
    fn read(&self, file: &SourceFile, hand: &mut Hand) -> Outcome {
        match hand.room.text_of(file) {
            Ok(Some(text)) if (self.wanted)(text) => self.content(file, text, &mut hand.scanner),
            Ok(_) => Outcome::NotWanted,
            Err(error) => Outcome::Failed(error),
        }
    }

    /// The same once more, where the file holds a macro that was not known before. A pipe can be read only once.
    fn read_again(&self, file: &SourceFile, new: &NewNames, hand: &mut Hand) -> Option<Outcome> {
        std::fs::metadata(&file.path).ok().filter(std::fs::Metadata::is_file)?;
        let text = hand.room.text_of(file).ok()??;
        let is_other = (self.wanted)(text) && new.are_in(text);
        is_other.then(|| self.content(file, text, &mut hand.scanner))
    }

    fn content(&self, source: &SourceFile, text: &[u8], scanner: &mut Scanner) -> Outcome {
        let has_code = source.is_sure || self.aliases.may_be_in(text);
        // A header for the host may hold constants of kernels.
        if !has_code && source.is_unit() {
            return Outcome::NotWanted;
        }
        let file = scanner.scan(text, self.aliases);
        let comments = if has_code { suppress::keep(text) } else { Vec::new() };
        let lowered = match self.role {
            Role::Given { lower: Lower::Telling } if has_code => lowered(source, text, &file, scanner, lower),
            Role::Given { lower: Lower::All } if has_code => lowered(source, text, &file, scanner, lower_all),
            _ => None,
        };
        let redefines_exchanges = redefines_exchanges(text);
        Outcome::Scanned(Box::new(Content { file, has_code, comments, lowered, redefines_exchanges }))
    }
}

/// The device functions of a source as PTX, those that `lower` makes into such.
fn lowered(
    source: &SourceFile,
    text: &[u8],
    file: &File,
    scanner: &Scanner,
    lower: fn(&lower::Unit<'_>) -> Option<Lowered>,
) -> Option<Made> {
    let name = source.path.display().to_string();
    let constants = |name: &[u8]| file.constant(name);
    let devices = scanner.devices().map(|one| Device {
        name: one.name,
        is_kernel: one.is_kernel,
        parameters: one.parameters,
        body: one.body,
        passed: Vec::new(),
    });
    let mut functions: Vec<Device> = devices.collect();
    pass_constants(text, file, &mut functions);
    let lowered = lower(&lower::Unit { text, name: &name, functions: &functions, constants: &constants })?;
    let name = |of: usize| text.get(functions.get(of)?.name.clone());
    let names = lowered.functions.iter().map(|one| name(one.of).unwrap_or(b"?").into()).collect();
    let not_followed = lowered.not_followed.first().and_then(|first| {
        let line = bytecount::count(text.get(..functions.get(*first)?.name.start)?, b'\n') + 1;
        Some((narrow(lowered.not_followed.len()), name(*first)?.into(), narrow(line)))
    });
    Some(Made { lowered, functions, names, not_followed })
}

/// Gives kernels the constants that all their launches in the file give them; those of one name may be launched for each other.
fn pass_constants(text: &[u8], file: &File, functions: &mut [Device]) {
    let mut by_name: HashMap<&[u8], Option<usize>> = HashMap::new();
    for (at, one) in functions.iter().enumerate().filter(|(_, one)| one.is_kernel) {
        let Some(name) = text.get(one.name.clone()) else { continue };
        by_name.entry(name).and_modify(|known| *known = None).or_insert(Some(at));
    }
    for (name, values) in file.passed() {
        if let Some(one) = by_name.get(name).copied().flatten().and_then(|at| functions.get_mut(at)) {
            one.passed = values;
        }
    }
}

/// The number that places in a file have.
fn number(name: &str, role: Role, bytes: u64, report: &mut Report) -> u32 {
    let name = name.to_owned();
    match role {
        Role::Given { .. } => {
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
