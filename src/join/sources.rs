//! Makes families of what sources declare, tells which kernels of logs and PTX are of one, and whose launches are whose.
//!
//! A name joins only where it can mean one thing: a kernel that two files define, or of which two overloads have as many
//! parameters, is nobody's.

use hashbrown::{HashMap, HashSet};

use crate::model::{Alike, Declaration, Family, Kernel, Kind, LaunchSite, NameId, Place, Report, Spot, Unit, alike, base, symbol};

/// Makes a family of every kernel that sources declare, gives kernels of other inputs theirs, and adds a kernel for each
/// that nothing else told of.
pub(super) fn declare(report: &mut Report) {
    if report.units.is_empty() {
        return;
    }
    let table = Table::new(report);
    let mut families = table.families;
    let mut is_met = vec![false; families.len()];
    let mut joined: HashMap<NameId, Option<u32>> = HashMap::new();
    for at in 0..report.kernels.len() {
        let kernel = &report.kernels[at];
        let Some(name) = kernel.name.filter(|_| kernel.kind == Kind::Entry) else { continue };
        let family = *joined.entry(name).or_insert_with(|| {
            let candidates = candidates(report, &families, &table.by_base, report.names.get(name));
            // What is told of one of several is told of none, and none of them is a kernel more.
            candidates.iter().for_each(|family| is_met[*family as usize] = true);
            <[u32; 1]>::try_from(candidates).ok().map(|[one]| one)
        });
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
            let known = by_identity.entry(identity(report, declaration)).or_default();
            let fitting: Vec<u32> = known.iter().copied().filter(|at| fits(report, &families, *at, declaration)).collect();
            match fitting.as_slice() {
                [one] => families[*one as usize].declarations.push(spot),
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
    if found.len() > 1
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
    for (unit, one) in (0..).zip(&report.units) {
        for (at, site) in (0..).zip(&one.launches) {
            let Some(callee) = site.callee else { continue };
            let name = report.names.get(callee);
            let parts = path(name);
            let list = parts.last().and_then(|last| by_base.get(&report.names.find(last)?));
            let mut found: Vec<u32> = list.into_iter().flatten().copied().collect();
            found.retain(|number| {
                let main = families[*number as usize].main(report);
                main.is_some_and(|main| is_called(&identity(report, main).0, &parts))
            });
            // A file calls its own.
            if found.len() > 1 {
                narrow_by(&mut found, |number| units_of[number as usize].contains(&unit));
            }
            if found.len() > 1 {
                of_arguments(report, families, site, &mut found);
            }
            if let [one] = found.as_slice() {
                families[*one as usize].launches.push(Spot { unit, at });
            }
        }
    }
}

/// Whether a name as called may be that of a declaration: one is the other's end.
fn is_called(declared: &[&[u8]], called: &[&[u8]]) -> bool {
    declared.ends_with(called) || called.ends_with(declared) || fit(declared, called).is_some()
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
