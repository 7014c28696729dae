//! Device functions of a source as PTX, so that whoever follows lanes through PTX follows them through sources as well.
//!
//! Integers are followed; whatever is not understood is loaded from an unknown place, so that it counts as data. Only those
//! functions are lowered in which a branch may have something to report, unless all are asked for.

mod alike;
mod builtin;
mod callers;
mod chain;
mod declare;
mod emit;
mod express;
mod follow;
mod library;
mod macros;
mod value;
mod weigh;

use std::cell::OnceCell;
use std::ops::Range;
use std::sync::Arc;

use hashbrown::HashMap;

use super::conditions::Conditions;
use super::directives;
use super::file::is_hip;
use super::lexer::{Kind, Token, partner, tokens};
use crate::model::{self, Bounds, Function, Module, NameId, Origin, Positions};
use crate::parse::ptx::Body;
use callers::Callers;
use emit::Output;
use follow::{Lowering, NotFollowed};
use macros::{Macros, Use};
use weigh::Weights;

/// A device function with a body.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Device {
    /// The bytes of its name, without what qualifies it.
    pub name: Range<usize>,
    /// Whether it can be launched.
    pub is_kernel: bool,
    /// The bytes between the parentheses of its parameters.
    pub parameters: Range<usize>,
    /// The bytes between the braces of its body.
    pub body: Range<usize>,
    /// What its launches give it, as far as that is known: a constant for each parameter.
    pub passed: Vec<Option<i64>>,
}

/// A source with what is known of it.
#[derive(Clone, Copy)]
pub struct Unit<'u> {
    /// Its text.
    pub text: &'u [u8],
    /// Its name, as it is to be shown.
    pub name: &'u str,
    /// Its device functions.
    pub functions: &'u [Device],
    /// The value of a constant of the file, by its name.
    pub constants: &'u dyn Fn(&[u8]) -> Option<i64>,
}

/// Functions as PTX.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lowered {
    /// The text of a module.
    pub text: Vec<u8>,
    /// The bytes of the source's name in it, which is file 1.
    pub file: Range<usize>,
    /// The functions that were worth it, in order.
    pub functions: Vec<LoweredFunction>,
    /// Where its branches and barriers come from.
    pub positions: Positions,
    /// Which of [`Unit::functions`] are too long, nested too deeply or torn, so that nothing is said of their branches.
    pub not_followed: Vec<usize>,
}

/// A function of a [`Lowered`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoweredFunction {
    /// Which of [`Unit::functions`] it is.
    pub of: usize,
    /// Where its `.entry` or `.func` stands.
    pub head: usize,
    /// The bytes of its parameter list, with its parentheses.
    pub parameters: Range<usize>,
    /// The bytes of its body, with its braces.
    pub body: Range<usize>,
    /// The kernels of [`Unit::functions`] that it is called from, if it is none itself; empty where those are not all known.
    pub kernels: Vec<usize>,
}

/// Bytes of a body, at most.
const LONGEST: usize = 1 << 20;

/// Lowers those functions of a source in which a branch may have something to report; `None` where there is none.
#[must_use]
pub fn lower(unit: &Unit<'_>) -> Option<Lowered> {
    lower_if(unit, false)
}

/// Lowers all functions of a source, for whoever wants to see every branch; `None` where there is none.
#[must_use]
pub fn lower_all(unit: &Unit<'_>) -> Option<Lowered> {
    lower_if(unit, true)
}

fn lower_if(unit: &Unit<'_>, every: bool) -> Option<Lowered> {
    let mut lowered = Lowered::default();
    let mut file: Option<File<'_>> = None;
    let telling = macros::telling(unit.text);
    for (of, one) in unit.functions.iter().enumerate() {
        let Some(body) = unit.text.get(one.body.clone()) else { continue };
        let parameters = unit.text.get(one.parameters.clone()).unwrap_or_default();
        // A short function may reduce what it is given.
        let is_volatile = memchr::memmem::find(parameters, b"volatile").is_some();
        let tells = || telling.iter().any(|name| memchr::memmem::find(body, name).is_some());
        if !(every || is_volatile || emit::may_matter(body) || tells()) {
            continue;
        }
        if body.len() > LONGEST {
            lowered.not_followed.push(of);
            continue;
        }
        let file = file.get_or_insert_with(|| File::new(unit));
        match Lowering::function(file, one, every) {
            Ok(Some(output)) => {
                if lowered.text.is_empty() {
                    lowered.begin(unit.name);
                }
                lowered.add(of, one, &output);
            }
            Ok(None) => {}
            Err(NotFollowed) => lowered.not_followed.push(of),
        }
    }
    let is_called = |one: &LoweredFunction| unit.functions.get(one.of).is_some_and(|device| !device.is_kernel);
    if let Some(file) = file.filter(|_| lowered.functions.iter().any(is_called)) {
        let callers = Callers::find(&file);
        for one in lowered.functions.iter_mut().filter(|one| is_called(one)) {
            one.kernels = callers.kernels(unit, one.of);
        }
    }
    let is_empty = lowered.functions.is_empty() && lowered.not_followed.is_empty();
    (!is_empty).then_some(lowered)
}

impl Lowered {
    fn begin(&mut self, name: &str) {
        self.text.extend_from_slice(b".version 8.0\n.target sm_70\n.address_size 64\n.file 1 \"");
        let start = self.text.len();
        self.text.extend_from_slice(name.as_bytes());
        self.file = start..self.text.len();
        self.text.extend_from_slice(b"\"\n");
    }

    fn add(&mut self, of: usize, one: &Device, output: &Output) {
        let head = self.text.len();
        let directive = if one.is_kernel { ".visible .entry f" } else { ".visible .func f" };
        self.text.extend_from_slice(format!("{directive}{of}").as_bytes());
        let parameters = self.text.len();
        self.text.push(b'(');
        let list: Vec<String> = (0..output.parameters).map(|at| format!(".param .b64 p{at}")).collect();
        self.text.extend_from_slice(list.join(", ").as_bytes());
        self.text.push(b')');
        let parameters = parameters..self.text.len();
        self.text.push(b'\n');
        let body = self.text.len();
        let start = u32::try_from(output.write_body(&mut self.text)).unwrap_or(u32::MAX);
        let positions = &mut self.positions;
        positions.branches.extend(output.branches.iter().map(|(at, extent)| (start + at, extent.clone())));
        positions.barriers.extend(output.barriers.iter().map(|(at, byte)| (start + at, *byte)));
        positions.exchanges.extend(output.exchanges.iter().map(|(at, word)| (start + at, word.clone())));
        self.functions.push(LoweredFunction {
            of,
            head,
            parameters,
            body: body..self.text.len() - 1,
            kernels: Vec::new(),
        });
    }
}

/// Whether a text defines an exchange between lanes anew, as headers do that know both forms.
#[must_use]
pub fn redefines_exchanges(text: &[u8]) -> bool {
    const NAMES: [&[u8]; 4] = [b"__shfl", b"__any", b"__all", b"__ballot"];
    let defined = memchr::memmem::find_iter(text, b"define __").map(|at| &text[at + b"define ".len()..]);
    defined.into_iter().any(|name| NAMES.iter().any(|exchange| name.starts_with(exchange)))
}

impl Lowered {
    /// Forgets the exchanges between lanes that are called by a name, which means something else.
    pub fn forget_exchanges(&mut self) {
        self.positions.exchanges.retain(|(_, word)| **word == *b"volatile");
    }
}

/// What the functions of a file share.
struct File<'u> {
    unit: Unit<'u>,
    /// Where its lines begin.
    lines: Vec<u32>,
    /// Its functions by name; `None` where there are several.
    by_name: HashMap<&'u [u8], Option<&'u Device>>,
    macros: Macros<'u>,
    weights: Weights<'u>,
    /// Whether exchanges without `.sync` are what their names say.
    knows_exchanges: bool,
    conditions: Conditions,
    /// What is one of several, once that was asked for.
    alternatives: OnceCell<Vec<Range<usize>>>,
}

impl<'u> File<'u> {
    fn new(unit: &Unit<'u>) -> File<'u> {
        let narrow = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let breaks = memchr::memchr_iter(b'\n', unit.text).map(|at| narrow(at + 1));
        let lines = std::iter::once(0).chain(breaks).collect();
        let mut by_name: HashMap<&[u8], Option<&Device>> = HashMap::new();
        for one in unit.functions {
            let Some(name) = unit.text.get(one.name.clone()) else { continue };
            by_name.entry(name).and_modify(|known| *known = None).or_insert(Some(one));
        }
        let has = |what: &[u8]| memchr::memmem::find(unit.text, what).is_some();
        let is_for_amd = is_hip(unit.text);
        let name = unit.name.to_ascii_lowercase();
        let names_amd = ["hip", "rocm"].iter().any(|word| name.contains(word));
        let is_hip = is_for_amd || names_amd || has(b"hip_runtime") || has(b"rocm");
        let knows_exchanges = !is_hip && !redefines_exchanges(unit.text);
        let conditions = Conditions::of(unit.text, is_for_amd);
        File {
            unit: *unit,
            lines,
            by_name,
            weights: Weights::new(unit),
            macros: Macros::of(unit),
            knows_exchanges,
            conditions,
            alternatives: OnceCell::new(),
        }
    }

    /// Whether a byte stands under a condition that is not known, and of which something else is read where it does not hold.
    fn is_one_of_several(&self, byte: usize) -> bool {
        let all = self.alternatives.get_or_init(|| directives::alternatives(self.unit.text, &self.conditions));
        let past = all.partition_point(|range| range.start <= byte);
        past.checked_sub(1).is_some_and(|at| all[at].contains(&byte))
    }

    /// Line and column of a byte, from 1.
    fn place(&self, byte: u32) -> (usize, u32) {
        let line = self.lines.partition_point(|start| *start <= byte);
        (line, byte - self.lines[line - 1] + 1)
    }

    /// The tokens of a body, with what its macros stand for.
    fn tokens(&self, bytes: &Range<usize>) -> Vec<Token> {
        self.expanded(bytes).0
    }

    /// The same, and where macros are named.
    fn expanded(&self, bytes: &Range<usize>) -> (Vec<Token>, Vec<Use>) {
        let mut found = Vec::with_capacity(bytes.len() / 4);
        tokens(self.unit.text, bytes.start, bytes.end, &mut found);
        directives::leave_out_dead(self.unit.text, &mut found, &self.conditions);
        self.macros.expand(found)
    }
}

impl Lowered {
    /// The module that the text is. `named` gives the name of a function of [`Unit::functions`], `bounds` what its attributes
    /// say.
    #[must_use]
    pub fn into_module(
        self,
        input: u32,
        functions: &[Device],
        named: &mut dyn FnMut(usize) -> NameId,
        bounds: &dyn Fn(usize) -> Bounds,
    ) -> Module {
        let mut body = Body::default();
        let mut line = 1;
        let mut counted = 0;
        let mut all = Vec::with_capacity(self.functions.len());
        for one in &self.functions {
            let mut line_of = |at: usize| {
                line += u32::try_from(bytecount::count(&self.text[counted..at], b'\n')).unwrap_or(0);
                counted = at;
                line
            };
            let (head, body_line) = ((one.head, line_of(one.head)), line_of(one.body.start));
            let Some(flow) = body.flow_of(&self.text, one.body.start).cloned() else { continue };
            let is_kernel = functions.get(one.of).is_some_and(|device| device.is_kernel);
            all.push(Function {
                name: named(one.of),
                kind: if is_kernel { model::Kind::Entry } else { model::Kind::Function },
                arch: None,
                head,
                parameters: one.parameters.clone(),
                body: one.body.clone(),
                body_line,
                bounds: bounds(one.of),
                shared: None,
                local: None,
                depot: None,
                tensor: false,
                branches: body.branches,
                instructions: body.instructions,
                calls: 0,
                flow,
                declared: None,
                callers: Vec::new(),
                kernel: None,
            });
        }
        Module {
            input,
            text: self.text.into(),
            files: vec![(1, self.file)],
            functions: all,
            origin: Origin::Source(Arc::new(self.positions)),
        }
    }
}

/// Finds the device functions of a text in a simple way, for tests: `__global__` and `__device__` with a body.
#[must_use]
pub fn functions(text: &[u8], aliases: &[&[u8]]) -> Vec<Device> {
    let mut all = Vec::new();
    tokens(text, 0, text.len(), &mut all);
    all.retain(|token| token.kind != Kind::Directive);
    let mut found = Vec::new();
    let mut at = 0;
    while at < all.len() {
        let word = if all[at].kind == Kind::Word { all[at].of(text) } else { b"" };
        let is_kernel = word == b"__global__" || aliases.contains(&word);
        if !(is_kernel || word == b"__device__") {
            at += 1;
            continue;
        }
        match function(text, &all, at, is_kernel) {
            Some((device, next)) => {
                found.push(device);
                at = next;
            }
            None => at += 1,
        }
    }
    found
}

fn function(text: &[u8], all: &[Token], from: usize, is_kernel: bool) -> Option<(Device, usize)> {
    let mut last: Option<(usize, usize)> = None;
    let mut at = from;
    while let Some(token) = all.get(at) {
        match token.kind {
            Kind::ParenOpen => {
                let close = partner(all, at)?;
                let name = all[at.checked_sub(1)?];
                let is_attribute = name.kind != Kind::Word
                    || matches!(name.of(text), b"__launch_bounds__" | b"__align__" | b"__attribute__" | b"alignas");
                if !is_attribute {
                    last = Some((at, close));
                }
                at = close;
            }
            Kind::BraceOpen => {
                let (open, close) = last?;
                let end = partner(all, at)?;
                let name = all[open - 1];
                let device = Device {
                    name: name.start as usize..name.end as usize,
                    is_kernel: is_kernel || all[from..open].iter().any(|token| token.of(text) == b"__global__"),
                    parameters: all[open].end as usize..all[close].start as usize,
                    body: all[at].end as usize..all[end].start as usize,
                    passed: Vec::new(),
                };
                return Some((device, end));
            }
            Kind::Semicolon | Kind::BraceClose | Kind::Assign => return None,
            _ => {}
        }
        at += 1;
    }
    None
}
