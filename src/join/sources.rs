//! Makes families of what sources declare, tells which kernels of logs and PTX are of one, and whose launches are whose.
//!
//! A name joins only where it can mean one thing: a kernel that two files define, or of which two overloads have as many
//! parameters, is nobody's, unless its PTX tells the line that it was compiled from.

use hashbrown::{HashMap, HashSet};

use crate::model::{
    Alike, Arch, Arguments, Declaration, Family, Kernel, Kind, LaunchSite, NameId, Place, Report, Spot, Unit, alike,
    base, symbol,
};

/// Makes a family of every kernel that sources declare, gives kernels of other inputs theirs, and adds a kernel for each
/// that nothing else told of.
pub(super) fn declare(report: &mut Report) {
    if report.units.is_empty() {
        return;
    }
    let table = Table::new(report);
    let mut families = table.families;
    let mut is_met = vec![false; families.len()];
    let mut joined: HashMap<NameId, Vec<u32>> = HashMap::new();
    let mut lines = None;
    let spots =
        (0..).zip(&families).flat_map(|(number, family)| family.declarations.iter().map(move |spot| (*spot, number)));
    let by_spot: HashMap<Spot, u32> = if report.families.is_empty() { HashMap::new() } else { spots.collect() };
    for at in 0..report.kernels.len() {
        let kernel = &report.kernels[at];
        if kernel.is_declared_only() {
            // It was added before, for the declaration that it has.
            let spot = report.family_of(at).and_then(|family| family.declarations.first().copied());
            let family = spot.and_then(|spot| by_spot.get(&spot).copied());
            family.into_iter().for_each(|family| is_met[family as usize] = true);
            report.kernels[at].family = family;
            continue;
        }
        let Some(name) = kernel.name.filter(|_| kernel.kind == Kind::Entry) else { continue };
        let candidates =
            joined.entry(name).or_insert_with(|| candidates(report, &families, &table.by_base, report.names.get(name)));
        let of_line = |family: &&u32| {
            let lines = lines.get_or_insert_with(|| Lines::of(report));
            families[**family as usize].main(report).is_some_and(|main| lines.are_of(kernel, main))
        };
        let family = match candidates.as_slice() {
            [one] => Some(*one),
            several => only(several.iter().filter(of_line)).copied(),
        };
        // What is told of one of several is told of none, and none of them is a kernel more.
        let met = family.as_ref().map_or(candidates.as_slice(), std::slice::from_ref);
        met.iter().for_each(|family| is_met[*family as usize] = true);
        report.kernels[at].family = family;
    }
    for (number, family) in (0..).zip(&families).filter(|(number, _)| !is_met[*number as usize]) {
        let Some(main) = family.main(report) else { continue };
        // A file that was only searched is not what the run is about.
        if main.quote.place.input < Place::SOURCE {
            let kernel = Kernel::new(Some(main.name), Kind::Entry, None);
            report.kernels.push(Kernel { family: Some(number), ..kernel });
        }
    }
    launch(report, &mut families, &table.by_base);
    report.families = families;
}

/// Tells every family its kernels, of those that are left after filters.
pub(super) fn attach(report: &mut Report) {
    for (at, kernel) in (0..).zip(&report.kernels) {
        if let Some(family) = kernel.family.and_then(|family| report.families.get_mut(family as usize)) {
            family.kernels.push(at);
        }
    }
    // Of the kernels that a source's function is, the first stands for all.
    let firsts = report.families.iter().flat_map(|family| {
        let first = family.kernels.first().copied();
        family.declarations.iter().map(move |spot| (*spot, first))
    });
    let firsts: HashMap<Spot, Option<u32>> = firsts.collect();
    for function in report.modules.iter_mut().flat_map(|module| &mut module.functions) {
        if let Some(spot) = function.declared {
            function.kernel = firsts.get(&spot).copied().flatten();
        }
        for (spot, kernel) in &mut function.callers {
            *kernel = firsts.get(spot).copied().flatten();
        }
    }
}

/// The only one there is.
fn only<T>(mut all: impl Iterator<Item = T>) -> Option<T> {
    all.next().filter(|_| all.next().is_none())
}

/// Where the code of kernels begins in the sources, as their PTX tells.
#[derive(Default)]
struct Lines {
    /// By the kernel's name and architecture; `None` where two modules do not agree.
    of_kernel: HashMap<(NameId, Option<Arch>), Option<Line>>,
}

/// An input, and a line of it.
type Line = (u32, u32);

impl Lines {
    fn of(report: &Report) -> Lines {
        let mut lines = Lines::default();
        let sources = report.sources_by_name();
        for module in report.modules.iter().filter(|module| module.positions().is_none()) {
            for function in module.functions.iter().filter(|one| one.kind == Kind::Entry) {
                let place = module.begins_at(function).and_then(|(file, line)| Some((sources.find(file)?, line)));
                let known = lines.of_kernel.entry((function.name, function.arch)).or_insert(place);
                *known = known.filter(|known| Some(*known) == place);
            }
        }
        lines
    }

    /// Whether the code of a kernel begins within a declaration. Figures of a log may be those of another kernel of that name.
    fn are_of(&self, kernel: &Kernel, declaration: &Declaration) -> bool {
        let place = kernel.name.and_then(|name| self.of_kernel.get(&(name, kernel.arch)).copied().flatten());
        let has_figures = kernel.evidence.usage.or(kernel.evidence.frame).is_some() || kernel.records > 0;
        place.filter(|_| !has_figures).is_some_and(|(input, line)| {
            let (first, last) = declaration.lines;
            input == declaration.quote.place.input && (first..=last).contains(&line)
        })
    }
}

/// Families, and where to look for them.
struct Table {
    families: Vec<Family>,
    /// By the identifier.
    by_base: HashMap<NameId, Vec<u32>>,
}

/// What tells one kernel of a source from another: the path without anonymous namespaces, and the arguments of a
/// specialisation.
type Identity<'a> = (Vec<&'a [u8]>, Option<&'a [u8]>);

impl Table {
    fn new(report: &Report) -> Table {
        let mut families: Vec<Family> = Vec::new();
        let mut prototypes: Vec<Spot> = Vec::new();
        let mut by_identity: HashMap<Identity<'_>, Vec<u32>> = HashMap::new();
        for (spot, declaration) in declarations(report) {
            if declaration.is_macro_made {
                continue;
            }
            if !declaration.is_definition {
                prototypes.push(spot);
                continue;
            }
            let number = narrow(families.len());
            by_identity.entry(identity(report, declaration)).or_default().push(number);
            families.push(Family { declarations: vec![spot], ..Family::default() });
        }
        for spot in prototypes {
            let Some(declaration) = report.declaration(spot) else { continue };
            let (path, arguments) = identity(report, declaration);
            // `template __global__ void k<4>(float*);` declares nothing that the template does not.
            let is_instantiation = arguments.is_some() && by_identity.contains_key(&(path.clone(), None));
            let known = by_identity.entry((path, arguments)).or_default();
            let fitting: Vec<u32> =
                known.iter().copied().filter(|at| fits(report, &families, *at, declaration)).collect();
            match fitting.as_slice() {
                [one] => families[*one as usize].declarations.push(spot),
                // A template is no kernel until it is defined.
                [] if is_instantiation || declaration.is_template => {}
                [] => {
                    known.push(narrow(families.len()));
                    families.push(Family { declarations: vec![spot], ..Family::default() });
                }
                // Which of several definitions it announces is open.
                _ => {}
            }
        }
        let mut by_base: HashMap<NameId, Vec<u32>> = HashMap::new();
        for (number, family) in (0..).zip(&families) {
            if let Some(main) = family.main(report) {
                by_base.entry(main.base).or_default().push(number);
            }
        }
        Table { families, by_base }
    }
}

fn declarations(report: &Report) -> impl Iterator<Item = (Spot, &Declaration)> {
    let of_unit = |(unit, one): (u32, &Unit)| (unit, one.declarations.len());
    let counts: Vec<(u32, usize)> = (0..).zip(&report.units).map(of_unit).collect();
    let spots = counts.into_iter().flat_map(|(unit, count)| (0..narrow(count)).map(move |at| Spot { unit, at }));
    spots.filter_map(|spot| Some((spot, report.declaration(spot)?)))
}

fn narrow(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

fn identity<'a>(report: &'a Report, declaration: &Declaration) -> Identity<'a> {
    split(report.names.get(declaration.name))
}

/// The parts of a name as declared, and the arguments at its end.
fn split(name: &[u8]) -> Identity<'_> {
    let open = name.iter().position(|byte| *byte == b'<').unwrap_or(name.len());
    // Arguments in the middle are those of a class; what tells those apart is left to the parameters.
    let arguments = name[open..].strip_prefix(b"<").and_then(|rest| rest.strip_suffix(b">"));
    (path(name), arguments)
}

const ANONYMOUS: &[u8] = b"(anonymous namespace)";

/// The parts of a qualified name without template arguments and anonymous namespaces.
fn path(name: &[u8]) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0_usize, 0);
    // Where the name of the part ends, before its arguments.
    let mut end = None;
    for (at, byte) in name.iter().enumerate() {
        match byte {
            b'<' => {
                if depth == 0 {
                    end = Some(at);
                }
                depth += 1;
            }
            b'>' => depth = depth.saturating_sub(1),
            b':' if depth == 0 && at >= start && name.get(at + 1) == Some(&b':') => {
                parts.push(&name[start..end.take().unwrap_or(at)]);
                start = at + 2;
            }
            _ => {}
        }
    }
    parts.push(&name[start.min(name.len())..end.unwrap_or(name.len())]);
    parts.retain(|part| !part.is_empty() && *part != ANONYMOUS);
    parts
}

/// Whether a prototype may be of a family by its parameters.
fn fits(report: &Report, families: &[Family], family: u32, prototype: &Declaration) -> bool {
    families[family as usize].main(report).is_some_and(|main| {
        let same = |a: Option<u32>, b: Option<u32>| a.is_none() || b.is_none() || a == b;
        main.is_template == prototype.is_template && same(main.parameters, prototype.parameters)
    })
}

/// How well a path of a source fits that of a symbol; more is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    /// Macros may stand for namespaces: all the others are there, in order.
    InParts,
    /// Outer namespaces are missing, as where a macro opens them.
    AtItsEnd,
    /// It is the same.
    Whole,
}

fn fit(declared: &[&[u8]], symbol: &[&[u8]]) -> Option<Fit> {
    if declared.last() != symbol.last() {
        return None;
    }
    if symbol.ends_with(declared) {
        return Some(if declared.len() == symbol.len() { Fit::Whole } else { Fit::AtItsEnd });
    }
    let mut rest = symbol.iter();
    let is_found = |part: &&[u8]| is_macro(part) || rest.any(|one| one == part);
    declared.iter().all(is_found).then_some(Fit::InParts)
}

/// Whether a part of a path is written as macros are.
fn is_macro(part: &[u8]) -> bool {
    let has_letters = part.iter().any(u8::is_ascii_uppercase);
    has_letters && part.iter().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_')
}

/// The families that a symbol may be of.
fn candidates(report: &Report, families: &[Family], by_base: &HashMap<NameId, Vec<u32>>, name: &[u8]) -> Vec<u32> {
    let base = base(name);
    let parts = path(&base);
    let Some(list) = parts.last().and_then(|last| by_base.get(&report.names.find(last)?)) else { return Vec::new() };
    let is_instance = memchr::memmem::find(&base, "<…>".as_bytes()).is_some();
    let of_file = symbol::file_of(name);
    let mut best: Option<Fit> = None;
    let mut found: Vec<u32> = Vec::new();
    for number in list {
        let Some(main) = families[*number as usize].main(report) else { continue };
        let (declared, special) = identity(report, main);
        if is_instance != (main.is_template || special.is_some()) {
            continue;
        }
        let Some(fit) = fit(&declared, &parts) else { continue };
        if best.is_none_or(|best| fit > best) {
            found.clear();
            best = Some(fit);
        }
        if best == Some(fit) {
            found.push(*number);
        }
    }
    narrow_by(&mut found, |number| of_file.is_none_or(|file| is_in_file(report, &families[number as usize], file)));
    if found.len() > 1 {
        by_arguments(report, families, name, &mut found);
    }
    // Also of the only one: a kernel of the same name may be another program's.
    if !found.is_empty()
        && let Some(count) = symbol::parameters(name)
    {
        let may_have = |number: u32| {
            let declared = families[number as usize].main(report).and_then(|main| main.parameters);
            declared.is_none_or(|declared| declared == count)
        };
        found.retain(|number| may_have(*number));
    }
    found
}

/// Keeps those that `is_better`, if there are any.
fn narrow_by(found: &mut Vec<u32>, is_better: impl Fn(u32) -> bool) {
    if found.iter().any(|number| is_better(*number)) {
        found.retain(|number| is_better(*number));
    }
}

/// Whether a family is declared in the file that a symbol names, with all but letters and digits as `_`.
fn is_in_file(report: &Report, family: &Family, file: &[u8]) -> bool {
    let Some(main) = family.main(report) else { return false };
    let path = report.file_of(main.quote.place);
    let own = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let own: Vec<u8> = own.bytes().map(|byte| if byte.is_ascii_alphanumeric() { byte } else { b'_' }).collect();
    own == file
}

/// Of a template and its specialisations, the one whose arguments the symbol has.
fn by_arguments(report: &Report, families: &[Family], name: &[u8], found: &mut Vec<u32>) {
    let special = |number: u32| families[number as usize].main(report).and_then(|main| identity(report, main).1);
    if found.iter().all(|number| special(*number).is_none()) {
        return;
    }
    let Some(own) = symbol::arguments(name) else { return };
    let alike = |number: u32| special(number).map(|arguments| alike(arguments, own.as_bytes()));
    if found.iter().any(|number| alike(*number) == Some(Alike::Same)) {
        found.retain(|number| alike(*number) == Some(Alike::Same));
    } else {
        found.retain(|number| alike(*number) != Some(Alike::Other));
    }
}

/// Families of one base name that a launch is held against, at most: where more have it, only those of its own file count.
const RIVALS: usize = 64;

/// Families that a launch may be of, for it to be told of each of them, at most.
const OVERLOADS: usize = 8;

/// Gives every launch to the family that it is of, where that is sure.
fn launch(report: &Report, families: &mut [Family], by_base: &HashMap<NameId, Vec<u32>>) {
    for list in by_base.values().filter(|list| list.len() > 1) {
        for number in list {
            families[*number as usize].has_rivals = true;
        }
    }
    let mut units_of: Vec<HashSet<u32>> = Vec::with_capacity(families.len());
    for family in &*families {
        units_of.push(family.declarations.iter().map(|spot| spot.unit).collect());
    }
    let mut own: HashMap<(NameId, u32), Vec<u32>> = HashMap::new();
    for (base, list) in by_base.iter().filter(|(_, list)| list.len() > RIVALS) {
        for number in list {
            for unit in &units_of[*number as usize] {
                own.entry((*base, *unit)).or_default().push(*number);
            }
        }
    }
    for (unit, one) in (0..).zip(&report.units) {
        for (at, site) in (0..).zip(&one.launches) {
            let Some(callee) = site.callee else { continue };
            let name = report.names.get(callee);
            let parts = path(name);
            let base = parts.last().and_then(|last| report.names.find(last));
            let all = base.and_then(|base| by_base.get(&base));
            let is_long = all.is_some_and(|list| list.len() > RIVALS);
            let list = if is_long { base.and_then(|base| own.get(&(base, unit))) } else { all };
            let few = list.filter(|list| list.len() <= RIVALS);
            let mut found: Vec<u32> = few.into_iter().flatten().copied().collect();
            found.retain(|number| {
                let main = families[*number as usize].main(report);
                main.is_some_and(|main| is_called(&identity(report, main).0, &parts))
            });
            if found.len() > 1 {
                by_number(report, families, site, &mut found);
            }
            // What is called in full is that, and none that only ends alike.
            if found.len() > 1 {
                let overlap = |number: u32| {
                    let main = families[number as usize].main(report);
                    main.map_or(0, |main| overlap(&identity(report, main).0, &parts))
                };
                let best = found.iter().map(|number| overlap(*number)).max();
                found.retain(|number| Some(overlap(*number)) == best);
            }
            // A file calls its own.
            if found.len() > 1 {
                narrow_by(&mut found, |number| units_of[number as usize].contains(&unit));
            }
            // What it includes is looked for in its own folder first.
            if found.len() > 1 {
                let folder = folder(report.file_of(Place { input: one.input, ..Place::default() }));
                let is_beside = |family: &Family| {
                    family.main(report).is_some_and(|main| self::folder(report.file_of(main.quote.place)) == folder)
                };
                narrow_by(&mut found, |number| is_beside(&families[number as usize]));
            }
            if found.len() > 1 {
                of_arguments(report, families, site, &mut found);
            }
            match found.as_slice() {
                [one] => families[*one as usize].launches.push(Spot { unit, at }),
                several if several.len() <= OVERLOADS => {
                    several.iter().for_each(|one| families[*one as usize].perhaps_launches.push(Spot { unit, at }));
                }
                _ => {}
            }
        }
    }
}

/// The folder of a file.
fn folder(path: &str) -> &str {
    path.rfind(['/', '\\']).map_or("", |end| &path[..end])
}

/// The parts that a name as called and that of a declaration share, where one is the other's end.
fn overlap(declared: &[&[u8]], called: &[&[u8]]) -> usize {
    let is_end = declared.ends_with(called) || called.ends_with(declared);
    if is_end { declared.len().min(called.len()) } else { 0 }
}

/// Whether a name as called may be that of a declaration: one is the other's end.
fn is_called(declared: &[&[u8]], called: &[&[u8]]) -> bool {
    declared.ends_with(called) || called.ends_with(declared) || fit(declared, called).is_some()
}

/// Leaves out overloads that take fewer arguments than a launch gives, or have templates of fewer. One that takes more may
/// have defaults for them; where others take just as many, it is not meant.
fn by_number(report: &Report, families: &[Family], site: &LaunchSite, found: &mut Vec<u32>) {
    let main = |number: u32| families[number as usize].main(report);
    if let Some(passed) = site.passed {
        let taken = |number: u32| main(number).and_then(|main| main.parameters);
        found.retain(|number| taken(*number).is_none_or(|taken| taken >= passed));
        narrow_by(found, |number| taken(number).is_none_or(|taken| taken == passed));
    }
    let Some(arguments) = site.arguments.map(|arguments| report.names.get(arguments)) else { return };
    let is_pack = memchr::memmem::find(arguments, b"...").is_some();
    if let Some(written) = u32::try_from(Arguments::of(arguments).len()).ok().filter(|_| !is_pack) {
        let taken = |number: u32| main(number).and_then(|main| main.template_parameters);
        found.retain(|number| taken(*number).is_none_or(|taken| taken >= written));
    }
}

/// Of a template and its specialisations, the one that a launch is of.
fn of_arguments(report: &Report, families: &[Family], site: &LaunchSite, found: &mut Vec<u32>) {
    let special = |number: u32| families[number as usize].main(report).and_then(|main| identity(report, main).1);
    let Some(own) = site.arguments.map(|arguments| report.names.get(arguments)) else { return };
    let is_template = |number: u32| {
        families[number as usize].main(report).is_some_and(|main| main.is_template) || special(number).is_some()
    };
    found.retain(|number| is_template(*number));
    let alike = |number: u32| special(number).map(|arguments| alike(arguments, own));
    if found.iter().any(|number| alike(*number) == Some(Alike::Same)) {
        found.retain(|number| alike(*number) == Some(Alike::Same));
    } else {
        found.retain(|number| alike(*number) != Some(Alike::Other));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::join::{attach as attach_all, join};
    use crate::model::{InputFacts, LaunchForm, Quote, SourceBounds, Unit};

    /// A report with kernels of a log, and sources.
    struct Made(Report);

    impl Made {
        fn new(kernels: &[&str]) -> Made {
            let mut report = Report::default();
            for name in kernels {
                let name = Some(report.names.intern(name.as_bytes()));
                report.kernels.push(Kernel { records: 1, ..Kernel::new(name, Kind::Entry, "sm_90".parse().ok()) });
            }
            Made(report)
        }

        /// A file with these declarations: names, `!` in front of a prototype, `<>` in front of a template, and the number of
        /// parameters.
        fn file(mut self, path: &str, declarations: &[(&str, u32)]) -> Made {
            let input = narrow(self.0.inputs.len());
            self.0.inputs.push(InputFacts { name: path.to_owned(), is_source: true, ..InputFacts::default() });
            let mut unit = Unit { input, ..Unit::default() };
            for (line, (written, parameters)) in (1..).zip(declarations) {
                let (written, is_definition) = written.strip_prefix('!').map_or((*written, true), |rest| (rest, false));
                let (written, is_template) = written.strip_prefix("<>").map_or((written, false), |rest| (rest, true));
                let last = written.split('<').next().and_then(|name| name.rsplit("::").next()).unwrap_or(written);
                let quote = self.quote(input, line, written);
                unit.declarations.push(Declaration {
                    name: self.0.names.intern(written.as_bytes()),
                    base: self.0.names.intern(last.as_bytes()),
                    is_template,
                    is_macro_made: false,
                    parameters: Some(*parameters),
                    template_parameters: None,
                    quote,
                    span: (0, written.len()),
                    extent: 0..1,
                    lines: (line, line),
                    is_definition,
                    bounds: SourceBounds::default(),
                    arrays: Vec::new(),
                    doubles: None,
                });
            }
            self.0.units.push(unit);
            self
        }

        /// A launch in the last file.
        fn launch(mut self, callee: &str, arguments: Option<&str>) -> Made {
            let unit = self.0.units.len() - 1;
            let quote = self.quote(self.0.units[unit].input, 99, callee);
            let site = LaunchSite {
                callee: Some(self.0.names.intern(callee.as_bytes())),
                arguments: arguments.map(|arguments| self.0.names.intern(arguments.as_bytes())),
                passed: None,
                form: LaunchForm::Chevrons,
                grid: [None; 3],
                is_of_one: false,
                block: [Some(256), Some(1), Some(1)],
                impossible: None,
                dynamic_shared: None,
                quote,
                span: (0, callee.len()),
                block_at: None,
                in_macro: false,
            };
            self.0.units[unit].launches.push(site);
            self
        }

        fn quote(&mut self, input: u32, line: u32, text: &str) -> Quote {
            let place = Place { input, line, ..Place::default() };
            Quote { place, text: self.0.texts.intern(text.as_bytes()) }
        }

        fn joined(mut self) -> Report {
            join(&mut self.0, &[]);
            attach_all(&mut self.0);
            self.0
        }

        /// Each kernel with the file and line of its declaration, and how many launches that has.
        fn told(self) -> Vec<String> {
            let report = self.joined();
            let told = |(at, kernel): (usize, &Kernel)| {
                let name =
                    kernel.name.map_or("", |name| std::str::from_utf8(report.names.get(name)).unwrap_or_default());
                let place = report.declared(at).map(|declared| declared.quote.place);
                let place = place.map_or("nowhere".to_owned(), |at| format!("{}:{}", report.file_of(at), at.line));
                let launches = report.family_of(at).map_or(0, |family| family.launches.len());
                format!("{name} {place} {launches}")
            };
            report.kernels.iter().enumerate().map(told).collect()
        }
    }

    #[test]
    fn a_declaration_belongs_to_all_instantiations_of_its_name() {
        let made = Made::new(&["_Z8pressureILi128EEvPfPKf", "_Z8pressureILi64EEvPfPKf", "_Z5otherPf"]);
        assert_eq!(
            made.file("k.cu", &[("<>pressure", 2)]).launch("pressure", Some("128")).told(),
            ["_Z8pressureILi128EEvPfPKf k.cu:1 1", "_Z8pressureILi64EEvPfPKf k.cu:1 1", "_Z5otherPf nowhere 0"]
        );
    }

    #[test]
    fn a_kernel_that_only_sources_declare_is_one_more_and_prototypes_are_none() {
        let made = Made::new(&["_Z5scalePf"]).file("k.cuh", &[("!scale", 1), ("!lost", 1)]);
        assert_eq!(
            made.file("k.cu", &[("scale", 1), ("ns::alone", 0)]).told(),
            ["_Z5scalePf k.cu:1 0", "ns::alone k.cu:2 0", "lost k.cuh:2 0"]
        );
    }

    #[test]
    fn a_template_that_is_only_declared_is_no_kernel() {
        let made = Made::new(&[]).file("k.cuh", &[("!<>lost", 1), ("!<>found", 1)]);
        assert_eq!(made.file("k.cu", &[("<>found", 1)]).told(), ["found k.cu:1 0"]);
    }

    #[test]
    fn namespaces_have_to_fit_and_those_that_macros_open_may_be_missing() {
        let symbol = "_ZN5flash3fwd6kernelEPf";
        let joined = |declared: &str| Made::new(&[symbol]).file("k.cu", &[(declared, 1)]).told()[0].clone();
        for declared in ["flash::fwd::kernel", "fwd::kernel", "kernel", "FLASH_NAMESPACE::fwd::kernel"] {
            assert_eq!(joined(declared), format!("{symbol} k.cu:1 0"), "{declared}");
        }
        assert_eq!(joined("flash::bwd::kernel"), format!("{symbol} nowhere 0"));
        let fits = |declared: &str, symbol: &str| {
            let (declared, symbol) = (path(declared.as_bytes()), path(symbol.as_bytes()));
            fit(&declared, &symbol)
        };
        assert_eq!(fits("a::k", "a::k"), Some(Fit::Whole));
        assert_eq!(fits("k", "a::k"), Some(Fit::AtItsEnd));
        assert_eq!(fits("NS::k", "a::k"), Some(Fit::InParts));
        assert_eq!(fits("cub::detail::k", "cub::CUB_200_NS::detail::k"), Some(Fit::InParts));
        assert_eq!(fits("b::k", "a::k"), None);
        assert_eq!(fits("a::k", "a::l"), None);
        assert_eq!(fits("(anonymous namespace)::k", "k"), Some(Fit::Whole));
    }

    #[test]
    fn what_two_files_define_is_nobodys() {
        let made = Made::new(&["_Z5scalePf"]).file("a.cu", &[("scale", 1)]).file("b.cu", &[("scale", 1)]);
        assert_eq!(made.told(), ["_Z5scalePf nowhere 0"]);
    }

    #[test]
    fn the_file_of_an_anonymous_namespace_is_told_by_its_symbol() {
        let symbol = "_ZN40_GLOBAL__N__0209cbc7_8_basic_cu_165af4d411anon_kernelEPi";
        let name = "(anonymous namespace)::anon_kernel";
        let made = Made::new(&[symbol]).file("other.cu", &[(name, 1)]).file("src/basic.cu", &[(name, 1)]);
        assert_eq!(made.told()[0], format!("{symbol} src/basic.cu:1 0"));
    }

    #[test]
    fn overloads_are_told_apart_by_their_parameters_where_these_differ_in_number() {
        let overloads = [("scale", 1), ("scale", 2)];
        let made = Made::new(&["_Z5scalePfi"]).file("k.cu", &overloads);
        assert_eq!(made.told()[0], "_Z5scalePfi k.cu:2 0");
        let made = Made::new(&["_Z5scalePf"]).file("k.cu", &[("scale", 1), ("scale", 1)]);
        assert_eq!(made.told()[0], "_Z5scalePf nowhere 0");
        let made = Made::new(&["_Z5scalePfi"]).file("other.cu", &[("scale", 3)]);
        assert_eq!(made.told(), ["_Z5scalePfi nowhere 0", "scale other.cu:1 0"]);
    }

    #[test]
    fn a_specialisation_takes_its_own_instantiation_and_the_template_the_others() {
        let declarations = [("<>copy", 1), ("copy<float>", 1)];
        let made = Made::new(&["_Z4copyIfEvPT_", "_Z4copyIdEvPT_"]).file("k.cu", &declarations);
        assert_eq!(
            made.launch("copy", Some("float")).launch("copy", Some("double")).launch("copy", Some("T")).told(),
            ["_Z4copyIfEvPT_ k.cu:2 1", "_Z4copyIdEvPT_ k.cu:1 1"]
        );
    }

    #[test]
    fn an_explicit_instantiation_is_no_declaration_of_its_own() {
        let made = Made::new(&["_Z4copyIfEvPT_"]).file("k.cu", &[("<>copy", 1), ("!copy<float>", 1)]);
        assert_eq!(made.told(), ["_Z4copyIfEvPT_ k.cu:1 0"]);
    }

    #[test]
    fn a_template_is_no_plain_kernel_of_the_same_name() {
        let made = Made::new(&["_Z5scalePf"]).file("k.cu", &[("<>scale", 1)]);
        assert_eq!(made.told(), ["_Z5scalePf nowhere 0", "scale k.cu:1 0"]);
    }

    #[test]
    fn a_launch_is_of_the_kernel_in_its_own_file_where_another_has_the_same_name() {
        let made = Made::new(&[]).file("a.cu", &[("run", 1)]).launch("run", None).file("b.cu", &[("run", 1)]);
        assert_eq!(made.launch("run", None).told(), ["run a.cu:1 1", "run b.cu:1 1"]);
        let made = Made::new(&[]).file("a.cu", &[("run", 1)]).file("b.cu", &[("run", 1)]).file("main.cu", &[]);
        assert_eq!(made.launch("run", None).told(), ["run a.cu:1 0", "run b.cu:1 0"]);
        // One that it includes stands beside it.
        let made = Made::new(&[]).file("a/run.h", &[("run", 1)]).file("b/run.h", &[("run", 1)]).file("b/main.cu", &[]);
        assert_eq!(made.launch("run", None).told(), ["run a/run.h:1 0", "run b/run.h:1 1"]);
    }

    #[test]
    fn a_launch_of_one_of_several_overloads_is_told_by_how_much_it_gives() {
        let overloads = [("<>contains", 2), ("<>contains", 3)];
        let launched = |passed: Option<u32>, arguments: Option<&str>, templates: [u32; 2]| {
            let mut made = Made::new(&[]).file("k.cu", &overloads).launch("contains", arguments);
            let unit = &mut made.0.units[0];
            unit.launches[0].passed = passed;
            for (declaration, parameters) in unit.declarations.iter_mut().zip(templates) {
                declaration.template_parameters = Some(parameters);
            }
            let report = made.joined();
            let families = report.families.iter();
            families.map(|one| (one.launches.len(), one.perhaps_launches.len())).collect::<Vec<_>>()
        };
        assert_eq!(launched(Some(3), Some("96,4"), [2, 3]), [(0, 0), (1, 0)]);
        assert_eq!(launched(Some(2), Some("96"), [2, 3]), [(1, 0), (0, 0)]);
        assert_eq!(launched(None, Some("96,4,float"), [2, 3]), [(0, 0), (1, 0)]);
        // It is neither, as far as one can see.
        assert_eq!(launched(Some(4), None, [2, 3]), [(0, 0), (0, 0)]);
        for (passed, arguments) in [(None, Some("96,4")), (None, None), (Some(1), None), (None, Some("Is..."))] {
            assert_eq!(launched(passed, arguments, [2, 3]), [(0, 1), (0, 1)], "{passed:?} {arguments:?}");
        }
    }

    #[test]
    fn joining_once_more_changes_nothing() {
        let made = Made::new(&["_Z5scalePf"]).file("k.cu", &[("scale", 1), ("alone", 0)]).launch("scale", None);
        let first = made.joined();
        let mut again = first.clone();
        crate::join::rejoin(&mut again);
        assert_eq!(again.kernels, first.kernels);
        assert_eq!(again.families, first.families);
    }
}
