//! The files of a project together: constants that one defines and another uses are settled, and all becomes facts.

use std::path::Path;

use hashbrown::HashMap;

use super::file::{File, FoundBounds, FoundDeclaration, FoundLaunch, Line};
use super::fold::is_constant_name;
use super::value::Term;
use crate::model::{
    Array, BlockSize, Bytes, Declaration, Doubles, Impossible, LaunchSite, Place, Quote, Report, SourceBounds, Stated,
    Unit,
};

/// Constants of constants that are followed.
const DEEPEST: u32 = 8;

/// A file of a project.
pub struct Gathered {
    /// The name that it is shown by.
    pub name: String,
    /// The number that its places have; `None` for one that only tells others constants.
    pub input: Option<u32>,
    /// What it holds.
    pub file: File,
}

/// Adds what files hold to a report, each as a unit of its own, in their order.
pub fn gather(files: &[Gathered], report: &mut Report) {
    let constants = Constants::of(files);
    for Gathered { name, input, file } in files {
        let Some(input) = *input else { continue };
        let folder = folder(name);
        let mut settler = Settler { constants: &constants, folder, depth: 0 };
        let mut unit = Unit { input, ..Unit::default() };
        unit.declarations.extend(file.declarations.iter().map(|one| settler.declaration(one, input, report)));
        unit.launches.extend(file.launches.iter().map(|one| settler.launch(one, input, report)));
        if let Some(facts) = report.inputs.get_mut(input as usize) {
            facts.is_hip = file.is_hip;
            facts.records = (unit.declarations.len() + unit.launches.len()) as u64;
        }
        report.units.push(unit);
    }
}

fn folder(name: &str) -> &Path {
    Path::new(name).parent().unwrap_or(Path::new(""))
}

/// The constants of all files, by name, each with the folder that its file is in.
struct Constants<'f>(HashMap<&'f [u8], Vec<(&'f Path, &'f Term)>>);

impl<'f> Constants<'f> {
    fn of(files: &'f [Gathered]) -> Constants<'f> {
        let mut all: HashMap<&[u8], Vec<(&Path, &Term)>> = HashMap::new();
        for Gathered { name, file, .. } in files {
            let folder = folder(name);
            for (name, term) in file.constants.iter().filter(|(name, _)| is_constant_name(name)) {
                let known = all.entry(name).or_default();
                if known.last() != Some(&(folder, term)) {
                    known.push((folder, term));
                }
            }
        }
        Constants(all)
    }
}

struct Settler<'f> {
    constants: &'f Constants<'f>,
    folder: &'f Path,
    depth: u32,
}

impl Settler<'_> {
    fn number(&mut self, term: &Term) -> Option<i64> {
        if let Term::Known(number) = term {
            return Some(*number);
        }
        if self.depth >= DEEPEST {
            return None;
        }
        self.depth += 1;
        let number = term.settled(&mut |name| self.constant(name));
        self.depth -= 1;
        number
    }

    /// A constant that has one value in the whole project, or in the folder.
    fn constant(&mut self, name: &[u8]) -> Option<i64> {
        let known = self.constants.0.get(name)?;
        let folder = self.folder;
        let all = |settler: &mut Self, is_own: &dyn Fn(&Path) -> bool| {
            let mut agreed = None;
            for (_, term) in known.iter().filter(|(folder, _)| is_own(folder)) {
                let number = settler.number(term)?;
                if agreed.is_some_and(|agreed| agreed != number) {
                    return None;
                }
                agreed = Some(number);
            }
            agreed
        };
        all(self, &|_| true).or_else(|| all(self, &|other| other == folder))
    }

    /// A figure of at least 1, as dimensions are.
    fn positive(&mut self, term: &Term) -> Option<u32> {
        self.number(term).and_then(|number| u32::try_from(number).ok()).filter(|number| *number > 0)
    }

    /// The first dimension that no GPU launches.
    fn impossible(&mut self, terms: &[Term; 3], of_block: bool) -> Option<Impossible> {
        let mut numbers = (0..).zip(terms).filter_map(|(axis, term)| Some((axis, self.number(term)?)));
        numbers.find_map(|(axis, number)| Impossible::of(number, of_block, axis))
    }

    fn three(&mut self, terms: &[Term; 3]) -> [Option<u32>; 3] {
        [0, 1, 2].map(|axis| self.positive(&terms[axis]))
    }

    /// Whether each of them is 1, or what a function makes of ones.
    fn are_of_one(&mut self, terms: &[Term; 3]) -> bool {
        terms.iter().all(|term| *term == Term::OfOne || self.number(term) == Some(1))
    }

    fn stated(&mut self, term: Option<&Term>) -> Stated {
        let Some(term) = term else { return Stated::No };
        let number = self.number(term).and_then(|number| u32::try_from(number).ok());
        number.map_or(Stated::Unknown, Stated::As)
    }

    fn bytes(&mut self, term: &Term) -> Option<Bytes> {
        self.number(term).and_then(|number| u32::try_from(number).ok()).map(Bytes)
    }

    fn bounds(&mut self, found: &FoundBounds) -> SourceBounds {
        let block = found.block.as_ref().map(|block| self.three(block));
        let cluster = found.cluster.as_ref().map(|cluster| self.three(cluster));
        let block = block.and_then(|[x, y, z]| BlockSize::new(x?, y?, z?).ok());
        SourceBounds {
            max_threads: self.stated(found.max_threads.as_ref()),
            min_blocks: self.stated(found.min_blocks.as_ref()),
            max_cluster: self.stated(found.max_cluster.as_ref()),
            max_registers: self.stated(found.max_registers.as_ref()),
            block,
            cluster: cluster.and_then(|[x, y, z]| Some([x?, y?, z?])),
        }
    }

    fn declaration(&mut self, found: &FoundDeclaration, input: u32, report: &mut Report) -> Declaration {
        let arrays = found.arrays.iter().map(|array| Array {
            name: report.names.intern(&array.name),
            space: array.space,
            bytes: self.bytes(&array.bytes),
            line: array.line,
            is_indexed: array.is_indexed,
        });
        let arrays = arrays.collect();
        let doubles = found.doubles.as_ref().map(|doubles| Doubles {
            count: doubles.count,
            first: report.names.intern(&doubles.first),
            quote: quote(&doubles.line, input, report),
            span: doubles.line.span,
        });
        Declaration {
            name: report.names.intern(&found.name),
            base: report.names.intern(&found.base),
            is_template: found.is_template,
            is_macro_made: found.is_macro_made,
            parameters: found.parameters,
            template_parameters: found.template_parameters,
            quote: quote(&found.line, input, report),
            span: found.line.span,
            extent: found.extent.clone(),
            lines: found.lines,
            is_definition: found.is_definition,
            bounds: self.bounds(&found.bounds),
            arrays,
            doubles,
        }
    }

    fn launch(&mut self, found: &FoundLaunch, input: u32, report: &mut Report) -> LaunchSite {
        LaunchSite {
            callee: found.callee.as_ref().map(|callee| report.names.intern(callee)),
            arguments: found.arguments.as_ref().map(|arguments| report.names.intern(arguments)),
            passed: found.passed,
            form: found.form,
            grid: self.three(&found.grid),
            is_of_one: self.are_of_one(&found.grid),
            block: self.three(&found.block),
            impossible: self.impossible(&found.block, true).or_else(|| self.impossible(&found.grid, false)),
            dynamic_shared: self.bytes(&found.shared),
            quote: quote(&found.line, input, report),
            span: found.line.span,
            block_at: found.block_at.clone(),
            in_macro: found.in_macro,
        }
    }
}

fn quote(line: &Line, input: u32, report: &mut Report) -> Quote {
    let place = Place { input, line: line.number, column_offset: line.column_offset, offset: line.offset };
    Quote { place, text: report.texts.intern(&line.text) }
}
