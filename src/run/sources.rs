//! The lines that branches stand at: their text is looked up for those that a rule may report, and for no other.

use std::path::{Path, PathBuf};

use hashbrown::{HashMap, HashSet};

use crate::analyse::{BranchQuotes, InlinedQuote, Numbers, line_of};
use crate::discover::Sources;
use crate::lanes::verdict::Advice;
use crate::model::{Files, NameId, Place, Quote, Report};
use crate::parse::ptx::{Locations, Spot, Strings};
use crate::suppress::{self, Remark, Scope};

use super::units::{self, Units};
use crate::join;

/// Looks up the lines of all branches that may be reported, those of source files in `sources`; what these files say joins
/// `units`. Where `every` branch is listed, the names of the files of all others as well.
pub(super) fn attach(report: &mut Report, numbers: &mut Numbers, sources: Sources, units: &mut Units, every: bool) {
    let branches = &numbers.branches;
    let mut wanted = Vec::new();
    for at in 0..branches.all.len() {
        let Some(found) = branches.get(report, at) else { continue };
        let is_told = found.branch.judgement.is_some_and(|judgement| judgement.advice > Advice::Silent);
        if is_told || found.branch.checks_row {
            let barrier = found.branch.barrier.map(|byte| (byte as usize, found.line_of(byte)));
            let own = (found.branch.at as usize, found.ptx_line());
            let waits_at = found.branch.barrier.and_then(|byte| found.module.positions()?.barrier(byte));
            let is_source = found.module.positions().is_some();
            wanted.push((at, branches.all[at].module as usize, own, barrier, found.locations, (is_source, waits_at)));
        }
    }
    if wanted.is_empty() && branches.exchanges.is_empty() && !every {
        return;
    }
    let mut lines =
        Lines { sources, known: HashMap::new(), strings: HashMap::new(), own: None, given: None, by_name: None };
    let mut quotes: Vec<Option<BranchQuotes>> = vec![None; branches.all.len()];
    for (at, module, own, barrier, locations, (is_source, waits_at)) in wanted {
        if is_source {
            let Some(outer) = locations.map(|locations| locations.outer) else { continue };
            let Some(source) = lines.source_quote(report, module, outer) else { continue };
            let barrier = waits_at.and_then(|byte| lines.quote_of_byte(report, module, outer, byte as usize));
            quotes[at] = Some(BranchQuotes { source: Some(source), ptx: source, barrier, inlined: None });
            continue;
        }
        let ptx = ptx_quote(report, module, own);
        let barrier = barrier.map(|place| ptx_quote(report, module, place));
        let source = locations.and_then(|locations| lines.source_quote(report, module, locations.outer));
        let inlined = locations.and_then(|locations| lines.inlined_quote(report, module, locations));
        quotes[at] = Some(BranchQuotes { source, ptx, barrier, inlined });
    }
    // They rise within a function, so that each line is counted once.
    let mut last = None;
    for loose in &mut numbers.branches.exchanges {
        let (module, at) = (loose.module as usize, loose.exchange.at);
        let Some(function) = loose.function(report) else { continue };
        let line = match last {
            Some((before, from, line)) if before == (loose.module, loose.function) => {
                let between = &report.modules[module].text[from as usize..at as usize];
                line + u32::try_from(bytecount::count(between, b'\n')).unwrap_or(0)
            }
            _ => line_of(&report.modules[module], function, at),
        };
        last = Some(((loose.module, loose.function), at, line));
        let locations = loose.exchange.locations;
        let source = locations.and_then(|locations| lines.source_quote(report, module, locations.outer));
        if report.modules[module].positions().is_some() {
            loose.quotes = source.map(|ptx| BranchQuotes { source, ptx, barrier: None, inlined: None });
            continue;
        }
        let ptx = ptx_quote(report, module, (at as usize, line));
        let inlined = locations.and_then(|locations| lines.inlined_quote(report, module, locations));
        loose.quotes = Some(BranchQuotes { source, ptx, barrier: None, inlined });
    }
    numbers.branches.quotes = quotes;
    if every {
        lines.find_all(report, numbers);
    }
    lines.read_units(report, units);
    tell_again(report, numbers, units);
    lines.see(report, numbers);
}

/// Tells the comments of sources anew, and the launches, where sources were found after the analysis. Blocks that comments
/// tell were known to it, or come too late.
pub(super) fn tell_again(report: &mut Report, numbers: &mut Numbers, units: &Units) {
    numbers.find_launches(report);
    let seen = |remark: &Remark| (remark.quote.place.input, remark.quote.place.offset, remark.span);
    let known: HashMap<_, _> = numbers.remarks.iter().map(|remark| (seen(remark), remark.is_seen)).collect();
    let is_of_unit: HashSet<u32> = report.units.iter().map(|unit| unit.input).collect();
    numbers.remarks.retain(|remark| !is_of_unit.contains(&remark.quote.place.input));
    let mut told = suppress::of_units(report, &units.comments);
    for remark in &mut told {
        remark.is_seen |= known.get(&seen(remark)).copied().unwrap_or(false);
    }
    numbers.remarks.extend(told);
}

/// Longest line that is kept, in bytes.
const LONGEST: usize = 4096;

/// The line that holds a byte of a module.
fn ptx_quote(report: &mut Report, module: usize, (byte, line): (usize, u32)) -> Quote {
    let module = &report.modules[module];
    // A module may stand on one line, which is not searched to its ends for each place in it.
    let first = byte.saturating_sub(LONGEST / 8);
    let start = memchr::memrchr(b'\n', &module.text[first..byte]).map_or(first, |at| first + at + 1);
    let rest = &module.text[start..module.text.len().min(byte + LONGEST / 8)];
    let end = memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
    let place = Place { input: module.input, line, column_offset: 0, offset: start as u64 };
    Quote { place, text: report.texts.intern(&rest[..end]) }
}

/// Source files by the name that the compiler was told.
struct Lines {
    sources: Sources,
    known: HashMap<Vec<u8>, File>,
    /// The names of functions that were inlined, by module.
    strings: HashMap<usize, Strings>,
    /// The source that a line was last looked up in, of those that were given.
    own: Option<File>,
    /// The numbers of the sources that were given, by their paths as the system has them.
    given: Option<HashMap<PathBuf, u32>>,
    /// The same by the names that a compiler may have for them.
    by_name: Option<Files>,
}

struct File {
    input: u32,
    text: Option<Vec<u8>>,
    /// Where its lines begin.
    starts: Vec<usize>,
}

impl Lines {
    fn source_quote(&mut self, report: &mut Report, module: usize, spot: Spot) -> Option<Quote> {
        let file = self.file(report, module, spot)?;
        let line = file.line(spot.line);
        let column_offset = if line.is_some() { 0 } else { spot.column.saturating_sub(1) };
        let (offset, text) = line.unwrap_or((0, &[]));
        let place = Place { input: file.input, line: spot.line, column_offset, offset: offset as u64 };
        let text: NameId = report.texts.intern(text);
        Some(Quote { place, text })
    }

    /// The line of the function that was inlined where a branch is shown.
    fn inlined_quote(&mut self, report: &mut Report, module: usize, locations: Locations) -> Option<InlinedQuote> {
        let inlined = locations.inlined?;
        let quote = self.source_quote(report, module, inlined.spot)?;
        let text = &report.modules[module].text;
        let directive = text.get(inlined.directive as usize..).unwrap_or_default();
        let line = &directive[..memchr::memchr(b'\n', directive).unwrap_or(directive.len()).min(LONGEST)];
        let strings = self.strings.entry(module).or_insert_with(|| Strings::of(text));
        let name = strings.function(line).map(<[u8]>::to_vec);
        let function = name.map(|name| report.texts.intern(&name));
        Some(InlinedQuote { quote, column: inlined.spot.column, function })
    }

    /// Finds the files of all branches.
    fn find_all(&mut self, report: &mut Report, numbers: &mut Numbers) {
        let all = (0..numbers.branches.all.len()).filter_map(|at| numbers.branches.get(report, at));
        let names = all.filter_map(|found| found.module.file(found.locations?.outer.file));
        let names: HashSet<&[u8]> = names.collect();
        let mut names: Vec<Vec<u8>> = names.into_iter().map(<[u8]>::to_vec).collect();
        // The order of a set is not the same in every run.
        names.sort_unstable();
        for name in names {
            let input = self.named(report, &name).input;
            let path = report.file_of(Place { input, ..Place::default() }).to_owned();
            numbers.branches.paths.insert(name, path);
        }
    }

    /// The line that holds a byte of the file that a place is in.
    fn quote_of_byte(&mut self, report: &mut Report, module: usize, spot: Spot, byte: usize) -> Option<Quote> {
        let file = self.file(report, module, spot)?;
        let line = u32::try_from(file.starts.partition_point(|start| *start <= byte)).unwrap_or(u32::MAX);
        self.source_quote(report, module, Spot { line, ..spot })
    }

    /// The file that a place of a module is in.
    fn file(&mut self, report: &mut Report, module: usize, spot: Spot) -> Option<&File> {
        let of = &report.modules[module];
        if of.positions().is_some() {
            let input = of.input;
            // One source after the other: what they hold may be more than there is room for.
            if self.own.as_ref().is_none_or(|own| own.input != input) {
                self.own = Some(self.file_given(report, input));
            }
            return self.own.as_ref();
        }
        let name = of.file(spot.file)?.to_vec();
        Some(self.named(report, &name))
    }

    /// Scans the files that speak to warplint, in order: most do not, and then nothing else is done.
    fn read_units(&self, report: &mut Report, units: &mut Units) {
        let says = |text: &&[u8]| memchr::memmem::find(text, b"warplint:").is_some();
        let is_new = |file: &&File| report.units.iter().all(|unit| unit.input != file.input);
        let files = self.known.values().filter(is_new);
        let files = files.filter_map(|file| Some((file.input, file.text.as_deref().filter(says)?)));
        let mut files: Vec<(u32, &[u8])> = files.collect();
        if files.is_empty() {
            return;
        }
        files.sort_by_key(|(input, _)| *input);
        for (input, text) in files {
            units::add_found(input, text, units, report);
        }
        join::rejoin(report);
    }

    /// Marks the comments on lines whose code the run looked at.
    fn see(&self, report: &Report, numbers: &mut Numbers) {
        let on_lines = |remark: &Remark| matches!(remark.scope, Scope::Line(..)) && !remark.is_seen;
        if !numbers.remarks.iter().any(on_lines) {
            return;
        }
        let mut seen: HashSet<(u32, u32)> = HashSet::new();
        let exchanges = numbers.branches.exchanges.iter().filter_map(|loose| loose.quotes?.source);
        seen.extend(exchanges.map(|source| (source.place.input, source.place.line)));
        for found in (0..numbers.branches.all.len()).filter_map(|at| numbers.branches.get(report, at)) {
            // What a source shows of a line is not all that PTX would.
            let Some(outer) = found.locations.map(|locations| locations.outer) else { continue };
            if found.module.positions().is_none()
                && let Some(file) = found.module.file(outer.file).and_then(|name| self.known.get(name))
            {
                seen.insert((file.input, outer.line));
            }
        }
        for remark in &mut numbers.remarks {
            if let Scope::Line(input, line) = remark.scope {
                remark.is_seen |= seen.contains(&(input, line));
            }
        }
    }

    /// The file that the compiler called `name`.
    fn named(&mut self, report: &mut Report, name: &[u8]) -> &File {
        if !self.known.contains_key(name) {
            let file = self.find(report, name);
            self.known.insert(name.to_vec(), file);
        }
        &self.known[name]
    }

    fn find(&mut self, report: &mut Report, name: &[u8]) -> File {
        let shown = String::from_utf8_lossy(name).into_owned();
        // What was given is that file, whether a search comes to it or not.
        if let Some(given) = self.given(report).get(Path::new(&shown)).copied() {
            return self.file_given(report, given);
        }
        let Some(path) = self.sources.find(Path::new(&shown)) else {
            let by_name = self.by_name.get_or_insert_with(|| report.sources_by_name());
            let given = by_name.find(name);
            return match given {
                Some(given) => self.file_given(report, given),
                None => added(report, shown, None),
            };
        };
        let same = std::fs::canonicalize(&path).ok().and_then(|path| self.given(report).get(&path).copied());
        let text = self.sources.read(&path);
        match same {
            Some(given) => File::new(given, text),
            None => added(report, path.display().to_string(), text),
        }
    }

    /// The sources that were given, by their paths as the system has them.
    fn given(&mut self, report: &Report) -> &HashMap<PathBuf, u32> {
        self.given.get_or_insert_with(|| {
            let inputs = report.units.iter().map(|unit| unit.input);
            inputs.filter_map(|input| Some((std::fs::canonicalize(path_of(report, input)).ok()?, input))).collect()
        })
    }

    fn file_given(&self, report: &Report, input: u32) -> File {
        File::new(input, self.sources.read(path_of(report, input)))
    }
}

/// A file that was not given, by the name that it is shown by.
fn added(report: &mut Report, name: String, text: Option<Vec<u8>>) -> File {
    report.sources.push(name);
    File::new(Place::SOURCE + u32::try_from(report.sources.len() - 1).unwrap_or(0), text)
}

fn path_of(report: &Report, input: u32) -> &Path {
    Path::new(report.file_of(Place { input, ..Place::default() }))
}

impl File {
    fn new(input: u32, text: Option<Vec<u8>>) -> File {
        let starts = text.as_deref().map_or_else(Vec::new, |text| {
            std::iter::once(0).chain(memchr::memchr_iter(b'\n', text).map(|at| at + 1)).collect()
        });
        File { input, text, starts }
    }

    /// Where a line begins, and its text.
    fn line(&self, number: u32) -> Option<(usize, &[u8])> {
        let text = self.text.as_deref()?;
        let start = *self.starts.get((number as usize).checked_sub(1)?)?;
        let rest = &text[start..];
        let end = memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len()).min(LONGEST);
        Some((start, &rest[..end])).filter(|(_, line)| !line.is_empty())
    }
}
