//! What is kept of a file: names, values and the lines that findings quote, but not its text.

use std::ops::Range;

use hashbrown::HashMap;

use super::aliases::{Aliases, Meaning, find_aliases};
use super::arrays::{FoundArray, arrays};
use super::code::Code;
use super::declare::parameters as declared_by;
use super::doubles::doubles;
use super::fold::{Fold, is_constant_name};
use super::heads::{Head, is_upper};
use super::launches::{Callee, Config, Launch};
use super::lexer::Kind;
use super::macros::Macros;
use super::scopes::{Block, Scopes};
use super::source::Source;
use super::value::Term;
use crate::model::{LaunchForm, Place};

/// Longest line that is kept, in bytes.
const LONGEST_LINE: usize = 1000;

/// Bytes that are kept of a longer one.
const PART_OF_LINE: usize = 160;

/// Tokens of a template's parameters, at most.
const LONGEST_TEMPLATE: usize = 400;

/// Macros of a file whose bodies are read for kernels and launches, at most.
const MOST_BODIES: usize = 10_000;

/// What is kept of a file that was scanned, until all files of the project are, and constants of one file that another
/// one defines are known.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct File {
    /// Bytes of its text.
    pub bytes: u64,
    /// Whether it is for HIP, and says nothing of CUDA.
    pub is_hip: bool,
    /// Macros that it defines which stand for `__global__` and the like.
    pub aliases: Vec<(Box<[u8]>, Meaning)>,
    pub(super) declarations: Vec<FoundDeclaration>,
    pub(super) launches: Vec<FoundLaunch>,
    pub(super) constants: Vec<(Box<[u8]>, Term)>,
    /// Those of their names that a template has for its parameters as well, in order.
    pub(super) hidden: Vec<Box<[u8]>>,
}

impl File {
    /// The value of a constant that the file defines itself, where it has but one and the name means nothing else.
    #[must_use]
    pub fn constant(&self, name: &[u8]) -> Option<i64> {
        if self.hidden.binary_search_by(|known| (**known).cmp(name)).is_ok() {
            return None;
        }
        let at = self.constants.binary_search_by(|(known, _)| (**known).cmp(name)).ok()?;
        self.constants[at].1.known()
    }

    /// What the launches of this file give each kernel, by the last word of its name: for each parameter the constant that all
    /// of them give. What one launch gives in a way that is not known is not known.
    #[must_use]
    pub fn passed(&self) -> HashMap<&[u8], Vec<Option<i64>>> {
        let mut all: HashMap<&[u8], Vec<Option<i64>>> = HashMap::new();
        for launch in &self.launches {
            let Some(callee) = launch.callee.as_deref() else { continue };
            let last = memchr::memrchr(b':', callee).map_or(0, |colon| colon + 1);
            let new = || launch.values.to_vec();
            all.entry(&callee[last..]).and_modify(|known| agree(known, &launch.values)).or_insert_with(new);
        }
        all
    }
}

fn agree(known: &mut Vec<Option<i64>>, values: &[Option<i64>]) {
    if known.len() != values.len() {
        known.clear();
    }
    for (known, value) in known.iter_mut().zip(values) {
        if known != value {
            *known = None;
        }
    }
}

/// A line of the text, and bytes in it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Line {
    pub(super) number: u32,
    pub(super) offset: u64,
    /// Bytes of the line before what is kept of it.
    pub(super) column_offset: u32,
    pub(super) text: Box<[u8]>,
    pub(super) span: (usize, usize),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct FoundDeclaration {
    pub(super) name: Box<[u8]>,
    pub(super) base: Box<[u8]>,
    pub(super) is_template: bool,
    pub(super) is_macro_made: bool,
    pub(super) parameters: Option<u32>,
    pub(super) template_parameters: Option<u32>,
    pub(super) line: Line,
    pub(super) extent: Range<usize>,
    pub(super) lines: (u32, u32),
    pub(super) is_definition: bool,
    pub(super) bounds: FoundBounds,
    pub(super) arrays: Vec<FoundArray>,
    pub(super) doubles: Option<FoundDoubles>,
}

/// Literals of type `double` that make a kernel compute in double precision.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FoundDoubles {
    pub(super) count: u32,
    /// The line of the first one, and its bytes there.
    pub(super) line: Line,
    pub(super) first: Box<[u8]>,
}

/// Figures of attributes: absent where no attribute states them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct FoundBounds {
    pub(super) max_threads: Option<Term>,
    pub(super) min_blocks: Option<Term>,
    pub(super) max_cluster: Option<Term>,
    pub(super) max_registers: Option<Term>,
    pub(super) block: Option<[Term; 3]>,
    pub(super) cluster: Option<[Term; 3]>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct FoundLaunch {
    pub(super) callee: Option<Box<[u8]>>,
    pub(super) arguments: Option<Box<[u8]>>,
    pub(super) passed: Option<u32>,
    /// What is passed, as far as it is constant; empty where `passed` is not known.
    pub(super) values: Box<[Option<i64>]>,
    pub(super) form: LaunchForm,
    pub(super) grid: [Term; 3],
    pub(super) block: [Term; 3],
    pub(super) shared: Term,
    pub(super) line: Line,
    pub(super) block_at: Option<(Range<usize>, u32)>,
    pub(super) in_macro: bool,
}

/// Reads files one after the other, and reuses the room that it takes.
#[derive(Debug, Default)]
pub struct Scanner {
    source: Source,
    body: Source,
    /// Bytes of the text that was scanned last.
    length: usize,
}

/// A device function with a body, by its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Its identifier.
    pub name: Range<usize>,
    /// Whether it can be launched.
    pub is_kernel: bool,
    /// Whether it stands below a `template <…>` that has parameters.
    pub is_template: bool,
    /// What stands between the parentheses of its parameters.
    pub parameters: Range<usize>,
    /// What stands between the braces of its body.
    pub body: Range<usize>,
}

impl Scanner {
    /// The device functions with a body of the text that was scanned last, those of macros apart.
    pub fn devices(&self) -> impl Iterator<Item = Device> {
        let code = &self.source.code;
        self.source.heads.iter().filter_map(|head| {
            let name = bytes_of(code, &(head.name..head.name + 1));
            // Between brackets: there may be no token, but always the brackets.
            let between = |range: &Range<usize>| {
                let start = code.tokens.get(range.start.wrapping_sub(1)).map_or(0, |open| open.end as usize);
                let end = code.tokens.get(range.end).map_or(self.length, |close| close.start as usize);
                start..end.max(start)
            };
            Some(Device {
                name,
                is_kernel: head.is_kernel,
                is_template: head.is_template,
                parameters: between(&head.parameters),
                body: between(head.body.as_ref()?),
            })
        })
    }

    /// What `text` declares and launches.
    pub fn scan(&mut self, text: &[u8], aliases: &Aliases) -> File {
        let mut file = File { bytes: text.len() as u64, ..File::default() };
        self.source.forget();
        self.length = text.len();
        if u32::try_from(text.len()).is_err() {
            return file;
        }
        file.is_hip = is_hip(text);
        self.source.is_hip = file.is_hip;
        file.aliases = find_aliases(text, aliases);
        let mut own = None;
        if file.aliases.iter().any(|(name, meaning)| aliases.meaning(name) != *meaning) {
            let mut all = aliases.clone();
            all.extend(file.aliases.iter().cloned());
            own = Some(all);
        }
        let aliases = own.as_ref().unwrap_or(aliases);
        let has_code = aliases.may_be_in(text);
        if !has_code && !may_hold_constants(text) {
            return file;
        }
        if has_code {
            self.source.read(text, 0, text.len(), false, aliases);
        } else {
            self.source.read_plain(text);
        }
        let macros = Macros::of(&self.source.code, text);
        let scopes = Scopes::new(&self.source.code, text, true);
        let mut fold = Fold::new(scopes, &macros, &self.source.launches);
        let lines = Lines::of(text);
        let mut found = Found { text, lines: &lines, file: &mut file };
        found.declarations(&self.source.heads, &mut fold);
        for launch in &self.source.launches {
            found.launch(launch, &mut fold, false);
        }
        if has_code {
            found.bodies(&mut self.body, &macros, fold, aliases);
        } else {
            found.constants(&macros, &mut fold);
        }
        file.hidden = hidden(&self.source.code, text, &file.constants);
        file
    }
}

/// Which constants' names parameters of templates have.
fn hidden(code: &Code, text: &[u8], constants: &[(Box<[u8]>, Term)]) -> Vec<Box<[u8]>> {
    let mut names = Vec::new();
    if constants.is_empty() {
        return Vec::new();
    }
    for at in 0..code.tokens.len() {
        let is_template = code.kind(at + 1) == Kind::Less && code.text(at, text) == b"template";
        if let Some(close) = is_template.then(|| code.close_angle(at + 1, at + LONGEST_TEMPLATE)).flatten() {
            declared_by(code, text, at + 2..close, true, &mut names);
        }
    }
    let mut names: Vec<&[u8]> = names.into_iter().map(|at| code.text(at, text)).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| constants.binary_search_by(|(known, _)| (**known).cmp(name)).is_ok());
    names.into_iter().map(Into::into).collect()
}

/// What `text` declares and launches.
#[must_use]
pub fn scan(text: &[u8], aliases: &Aliases) -> File {
    Scanner::default().scan(text, aliases)
}

/// What only a text for HIP holds behind `hip`, besides calls of its runtime: its header, and a type.
const HIP: [&[u8]; 2] = [b"/hip_runtime", b"Error_t"];

/// What a text holds that is for CUDA as well, besides what calls CUDA's runtime.
const CUDA: [&[u8]; 4] = [b"<cuda", b"\"cuda", b"__CUDA", b"__NVCC__"];

/// Whether a text has what HIP has, and nothing of CUDA's beside: what is for both has warps of 32 lanes there.
pub(super) fn is_hip(text: &[u8]) -> bool {
    let has = |sign: &[u8]| memchr::memmem::find(text, sign).is_some();
    let is_of_cuda = || memchr::memmem::find_iter(text, b"cuda").any(|at| is_named(text, at, at + 4));
    let mut hip = memchr::memmem::find_iter(text, b"hip");
    hip.any(|at| is_sign_of_hip(text, at)) && !CUDA.into_iter().any(has) && !is_of_cuda()
}

/// Whether the `hip` at `at` begins what only a text for HIP has: `hipMalloc(`, for one.
fn is_sign_of_hip(text: &[u8], at: usize) -> bool {
    let rest = &text[at + 3..];
    if HIP.iter().any(|sign| rest.starts_with(sign)) {
        return true;
    }
    let called = rest[super::conditions::word(rest).len()..].trim_ascii_start();
    is_named(text, at, at + 3) && called.starts_with(b"(")
}

/// Whether a word begins at `at` and goes on behind its prefix, which ends at `behind`, with a capital letter.
fn is_named(text: &[u8], at: usize, behind: usize) -> bool {
    let begins = at == 0 || !(text[at - 1].is_ascii_alphanumeric() || text[at - 1] == b'_');
    begins && text.get(behind).is_some_and(u8::is_ascii_uppercase)
}

/// Whether a text may define constants that other files use.
fn may_hold_constants(text: &[u8]) -> bool {
    [&b"define"[..], b"const", b"enum"].iter().any(|sign| memchr::memmem::find(text, sign).is_some())
}

/// Where lines begin.
struct Lines(Vec<u32>);

impl Lines {
    fn of(text: &[u8]) -> Lines {
        Lines(memchr::memchr_iter(b'\n', text).map(|at| at as u32 + 1).collect())
    }

    /// The number of the line that a byte is on, from 1.
    fn number(&self, byte: usize) -> u32 {
        self.0.partition_point(|start| *start as usize <= byte) as u32 + 1
    }

    /// The line that begins with the bytes `from..to`, or holds them.
    fn line(&self, text: &[u8], from: usize, to: usize) -> Line {
        let number = self.number(from);
        let begin = (number as usize).checked_sub(2).map_or(0, |at| self.0[at] as usize);
        let next = self.0.get(number as usize - 1).map_or(text.len(), |next| *next as usize);
        // Of a file on one line many parts are kept, so that each has to be short.
        let most = if next - begin > LONGEST_LINE { PART_OF_LINE } else { LONGEST_LINE };
        let start = begin.max(from.saturating_sub(most / 2));
        let rest = &text[start..text.len().min(start + most)];
        let end = memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
        let span = (from - start, (to - start).min(end).max(from - start));
        Line {
            number,
            offset: start as u64,
            column_offset: columns(&text[begin..start]),
            text: rest[..end].into(),
            span: (span.0.min(end), span.1.min(end)),
        }
    }
}

/// The columns that text takes. Of a line that no person wrote they are not counted: it has many parts.
fn columns(before: &[u8]) -> u32 {
    if before.len() > COUNTED { before.len() as u32 } else { Place::columns(before) }
}

/// Bytes before a part of a line of which the columns are counted.
const COUNTED: usize = 16 * 1024;

struct Found<'f> {
    text: &'f [u8],
    lines: &'f Lines,
    file: &'f mut File,
}

impl Found<'_> {
    fn declarations(&mut self, heads: &[Head], fold: &mut Fold<'_>) {
        for (at, head) in heads.iter().enumerate().filter(|(_, head)| head.is_kernel && !head.is_mention) {
            // Functions are not nested: where a body seems to hold another one, it is torn, and not read twice.
            let end = heads.get(at + 1).map_or(usize::MAX, |next| next.all.start);
            self.declaration(head, end, fold);
        }
    }

    fn declaration(&mut self, head: &Head, end: usize, fold: &mut Fold<'_>) {
        let code = fold.scopes.code;
        let bytes = |range: &Range<usize>| bytes_of(code, range);
        let own = written(code, self.text, head.written.clone());
        let name = qualified(&mut fold.scopes, head.all.start, &own);
        let (base, line_bytes) = if head.is_macro_made {
            (own.clone(), bytes(&head.written))
        } else {
            (code.text(head.name, self.text).into(), bytes(&(head.name..head.name + 1)))
        };
        let extent = bytes(&head.all);
        let lines = (self.lines.number(extent.start), self.lines.number(extent.end.saturating_sub(1)));
        let arrays =
            head.body.clone().map(|body| arrays(fold, body.start..body.end.min(end), |byte| self.lines.number(byte)));
        let found = head.body.clone().map(|body| doubles(fold, head, body.start..body.end.min(end)));
        let doubles = self.doubles(&found.unwrap_or_default(), code);
        self.file.declarations.push(FoundDeclaration {
            name,
            base,
            is_template: head.is_template,
            is_macro_made: head.is_macro_made,
            parameters: parameters(head, code, self.text),
            template_parameters: head.template.clone().and_then(|template| count(code, self.text, template)),
            line: self.lines.line(self.text, line_bytes.start, line_bytes.end),
            extent,
            lines,
            is_definition: head.body.is_some(),
            bounds: bounds(head, fold),
            arrays: arrays.unwrap_or_default(),
            doubles,
        });
    }

    fn doubles(&self, found: &[usize], code: &Code) -> Option<FoundDoubles> {
        let first = *found.first()?;
        let bytes = bytes_of(code, &(first..first + 1));
        let count = u32::try_from(found.len()).unwrap_or(u32::MAX);
        let line = self.lines.line(self.text, bytes.start, bytes.end);
        Some(FoundDoubles { count, line, first: code.text(first, self.text).into() })
    }

    fn launch(&mut self, launch: &Launch, fold: &mut Fold<'_>, in_macro: bool) {
        let code = fold.scopes.code;
        let (grid, block, shared, block_range) = match &launch.config {
            Config::Values { grid, block, shared } => {
                let shared = shared.clone().map_or(Term::Known(0), |shared| fold.number(shared));
                (fold.dimensions(grid.clone()), fold.dimensions(block.clone()), shared, Some(block.clone()))
            }
            Config::Numbers { grid, block, shared } => {
                let all = block[0].start..block[2].end;
                let grid = grid.clone().map(|one| fold.number(one));
                (grid, block.clone().map(|one| fold.number(one)), fold.number(shared.clone()), Some(all))
            }
            Config::Structure(range) => {
                let (grid, block, shared) = fold.structure(range.clone());
                (grid, block, shared, None)
            }
        };
        let (callee, arguments) = callee(&launch.callee, fold);
        // What the arguments of a macro stand for is not known.
        let passed = launch.passed.clone().filter(|_| !in_macro).and_then(|passed| given(fold, passed));
        let (passed, values) = passed.unzip();
        let at = bytes_of(code, &launch.at);
        let block_at = block_range.map(|range| bytes_of(code, &range));
        self.file.launches.push(FoundLaunch {
            callee,
            arguments,
            passed,
            values: values.unwrap_or_default(),
            form: launch.form,
            grid,
            block,
            shared,
            line: self.lines.line(self.text, at.start, at.end),
            block_at: block_at.map(|range| (range.clone(), self.lines.number(range.start))),
            in_macro,
        });
    }

    /// Kernels and launches within macros, and the constants that other files may use.
    fn bodies<'t>(&mut self, body: &mut Source, macros: &Macros<'t>, mut fold: Fold<'t>, aliases: &Aliases) {
        self.constants(macros, &mut fold);
        let known: hashbrown::HashMap<&[u8], &Term> =
            self.file.constants.iter().map(|(name, term)| (&**name, term)).collect();
        let around = |name: &[u8]| known.get(name).map_or(Term::Unknown, |term| (*term).clone());
        let mut kernels = Vec::new();
        let mut launches = Vec::new();
        for define in macros.iter().take(MOST_BODIES) {
            let own = &self.text[define.body.0..define.body.1];
            if !aliases.may_be_in(own) {
                continue;
            }
            body.read(self.text, define.body.0, define.body.1, true, aliases);
            let scopes = Scopes::new(&body.code, self.text, false);
            let arguments = define.arguments(self.text);
            let mut inner = Fold::new(scopes, macros, &body.launches).within(arguments, &around);
            let mut file = File::default();
            let mut found = Found { text: self.text, lines: self.lines, file: &mut file };
            found.declarations(&body.heads, &mut inner);
            for launch in &body.launches {
                found.launch(launch, &mut inner, true);
            }
            for mut one in file.declarations {
                one.is_macro_made |= define.parameters.is_some();
                kernels.push(one);
            }
            launches.extend(file.launches);
        }
        if !kernels.is_empty() {
            self.file.declarations.extend(kernels);
            self.file.declarations.sort_by_key(|one| one.extent.start);
        }
        if !launches.is_empty() {
            self.file.launches.extend(launches);
            self.file.launches.sort_by_key(|one| (one.line.offset, one.line.span.0));
        }
    }

    fn constants<'t>(&mut self, macros: &Macros<'t>, fold: &mut Fold<'t>) {
        let mut all: hashbrown::HashMap<&[u8], Term> = hashbrown::HashMap::new();
        // Of names that are not spelled as constants, nothing is asked by other files.
        let is_kept = |name: &[u8], term: &Term| is_constant_name(name) || term.known().is_some();
        for name in macros.names() {
            if macros.get(name).all(super::aliases::Define::may_be_constant) {
                let term = fold.macro_term(name);
                if is_kept(name, &term) {
                    all.insert(name, term);
                }
            }
        }
        fold.scopes.learn_classes();
        let shared: Vec<u32> = fold.scopes.shared().collect();
        for one in shared {
            let name = fold.scopes.code.text(fold.scopes.variables[one as usize].declared.name, self.text);
            let term = fold.constant(one);
            if !is_kept(name, &term) && !all.contains_key(name) {
                continue;
            }
            all.entry(name)
                .and_modify(|known| {
                    if *known != term {
                        *known = Term::Unknown
                    }
                })
                .or_insert(term);
        }
        let mut constants: Vec<(Box<[u8]>, Term)> = all.into_iter().map(|(name, term)| (name.into(), term)).collect();
        constants.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        self.file.constants = constants;
    }
}

/// How many parameters a head has; `None` where a pack, a macro or a directive leaves that open.
fn parameters(head: &Head, code: &Code, text: &[u8]) -> Option<u32> {
    // `void`, and what seems to be a type alone may be a macro that stands for several.
    let is_one_word = head.parameters.len() == 1;
    count(code, text, head.parameters.clone()).filter(|_| !is_one_word)
}

/// How many parts a list has; `None` where a pack, a macro or a directive leaves that open.
fn count(code: &Code, text: &[u8], list: Range<usize>) -> Option<u32> {
    if list.clone().any(|at| is_open(code, at)) {
        return None;
    }
    let mut parts = super::launches::split(code, list);
    parts.retain(|part| !part.is_empty());
    let is_macro = |part: &Range<usize>| part.len() == 1 && is_upper(code.text(part.start, text));
    if parts.iter().any(is_macro) { None } else { u32::try_from(parts.len()).ok() }
}

/// How many arguments a kernel is given, and what they are worth.
fn given(fold: &mut Fold<'_>, list: Range<usize>) -> Option<(u32, Box<[Option<i64>]>)> {
    let code = fold.scopes.code;
    if list.clone().any(|at| is_open(code, at)) {
        return None;
    }
    let mut parts = super::launches::split(code, list);
    parts.retain(|part| !part.is_empty());
    if parts.iter().any(|part| may_be_several(fold, part)) {
        return None;
    }
    let values = parts.iter().map(|part| fold.number(part.clone()).known()).collect();
    Some((u32::try_from(parts.len()).ok()?, values))
}

/// Whether an argument may be a macro that stands for several. What is spelled as one is not where it is a variable or a
/// number.
fn may_be_several(fold: &mut Fold<'_>, part: &Range<usize>) -> bool {
    let code = fold.scopes.code;
    let (first, is_word) = (code.text(part.start, fold.scopes.text), part.len() == 1);
    let is_all = is_word || code.partner(part.start + 1) == Some(part.end - 1);
    if !is_all || !is_upper(first) {
        return false;
    }
    let is_declared = is_word && fold.scopes.find(first, part.start) != super::scopes::Meaning::Nothing;
    let is_variable = is_declared && !fold.macros().has(first);
    !is_variable && fold.number(part.clone()).known().is_none()
}

fn is_open(code: &Code, at: usize) -> bool {
    matches!(code.kind(at), Kind::Ellipsis | Kind::Directive)
}

fn bytes_of(code: &Code, range: &Range<usize>) -> Range<usize> {
    let start = code.tokens.get(range.start).map_or(0, |token| token.start as usize);
    let end = range.end.checked_sub(1).and_then(|last| code.tokens.get(last)).map_or(start, |token| token.end as usize);
    start..end.max(start)
}

/// Tokens as text, with blanks only where words would run into each other.
pub(super) fn written(code: &Code, text: &[u8], range: Range<usize>) -> Box<[u8]> {
    const LONGEST: usize = 400;
    let mut all: Vec<u8> = Vec::new();
    let mut before = Kind::Other;
    for at in range.take(LONGEST) {
        let kind = code.kind(at);
        let is_wordy = |kind: Kind| matches!(kind, Kind::Word | Kind::Number);
        if is_wordy(before) && is_wordy(kind) {
            all.push(b' ');
        }
        all.extend_from_slice(code.text(at, text));
        before = kind;
    }
    all.into()
}

/// A name with the namespaces and classes around it.
fn qualified(scopes: &mut Scopes<'_>, at: usize, own: &[u8]) -> Box<[u8]> {
    let (code, text) = (scopes.code, scopes.text);
    let mut parts: Vec<Vec<u8>> = vec![own.to_vec()];
    let mut here = at;
    for _ in 0..super::scopes::DEEPEST {
        let Some(outer) = code.outer(here) else { break };
        here = outer;
        if code.kind(outer) != Kind::BraceOpen {
            continue;
        }
        let before = scopes.before(outer);
        match before.block {
            Block::Namespace => {
                let word = (before.start..outer).rev().find(|at| code.text(*at, text) == b"namespace");
                let Some(word) = word else { continue };
                let name: Vec<usize> =
                    (word + 1..outer).filter(|at| matches!(code.kind(*at), Kind::Word | Kind::Scope)).collect();
                // `namespace ATTRIBUTE(x) name`: attributes stand before it.
                let mut all = Vec::new();
                for at in name {
                    all.extend_from_slice(code.text(at, text));
                }
                parts.push(if all.is_empty() { b"(anonymous namespace)".to_vec() } else { all });
            }
            Block::Class => {
                let words = (before.start..outer).take_while(|at| code.kind(*at) != Kind::Colon);
                let mut words: Vec<usize> = words.filter(|at| code.kind(*at) == Kind::Word).collect();
                words.retain(|at| code.text(*at, text) != b"final");
                if let Some(last) = words.last() {
                    parts.push(code.text(*last, text).to_vec());
                }
            }
            _ => {}
        }
    }
    parts.reverse();
    parts.join(&b"::"[..]).into()
}

/// A name that may not be known.
type Name = Option<Box<[u8]>>;

/// The name of what is launched, and its template arguments: of a variable, those of the kernel that it holds.
fn callee(callee: &Callee, fold: &mut Fold<'_>) -> (Name, Name) {
    let Callee::Name(name, arguments) = callee else { return (None, None) };
    let (code, text) = (fold.scopes.code, fold.scopes.text);
    let mut name = name.clone();
    let mut arguments = arguments.clone();
    if name.len() == 1 && arguments.is_none() {
        match fold.kernel_of(name.start) {
            Some((other, others)) => (name, arguments) = (other, others),
            None => return (None, None),
        }
    }
    let text_of = |range: Range<usize>| written(code, text, range);
    let name = name.clone().filter(|at| code.text(*at, text) != b"template");
    let mut all: Vec<u8> = Vec::new();
    for at in name {
        all.extend_from_slice(code.text(at, text));
    }
    let all = all.strip_prefix(b"::").unwrap_or(&all);
    (Some(all.into()), arguments.filter(|range| !range.is_empty()).map(text_of))
}

/// What the attributes of a kernel state.
fn bounds(head: &Head, fold: &mut Fold<'_>) -> FoundBounds {
    let code = fold.scopes.code;
    let text = fold.scopes.text;
    let mut found = FoundBounds::default();
    if head.may_hide_bounds {
        found.max_threads = Some(Term::Unknown);
        found.min_blocks = Some(Term::Unknown);
        found.max_registers = Some(Term::Unknown);
    }
    if head.is_tile {
        found.block = Some([Term::Known(1), Term::Known(1), Term::Known(1)]);
    }
    for at in &head.attributes {
        let Some(close) = code.partner(at + 1).filter(|close| *close > *at) else { continue };
        let parts = super::launches::split(code, at + 2..close);
        let is_certain = code.counts_with(*at, head.name);
        let mut number = |part: Option<&Range<usize>>| {
            part.map(|part| if is_certain { fold.number(part.clone()) } else { Term::Unknown })
        };
        match code.text(*at, text) {
            b"__launch_bounds__" => {
                join(&mut found.max_threads, number(parts.first()));
                join(&mut found.min_blocks, number(parts.get(1)));
                join(&mut found.max_cluster, number(parts.get(2)));
            }
            b"__maxnreg__" => join(&mut found.max_registers, number(parts.first())),
            b"__cluster_dims__" => {
                let all = dimensions(&parts, &mut number);
                found.cluster = Some(if found.cluster.is_some() { Default::default() } else { all });
            }
            b"__block_size__" => {
                let block = parts.first().cloned().unwrap_or(0..0);
                let is_tuple = code.kind(block.start) == Kind::ParenOpen && code.behind(block.start) == block.end;
                let block =
                    if is_tuple { super::launches::split(code, block.start + 1..block.end - 1) } else { vec![block] };
                let all = dimensions(&block, &mut number);
                found.block = Some(if found.block.is_some() { Default::default() } else { all });
            }
            _ => {}
        }
    }
    found
}

fn dimensions(parts: &[Range<usize>], number: &mut impl FnMut(Option<&Range<usize>>) -> Option<Term>) -> [Term; 3] {
    [0, 1, 2].map(|axis| number(parts.get(axis)).unwrap_or(Term::Known(1)))
}

/// Of two attributes that state the same figure, neither is certain.
fn join(known: &mut Option<Term>, new: Option<Term>) {
    let Some(new) = new else { return };
    *known = Some(match known.take() {
        Some(old) if old != new => Term::Unknown,
        _ => new,
    });
}
