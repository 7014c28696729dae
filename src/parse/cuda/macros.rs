//! The macros of a file: what they are defined as, and where each definition holds.

use hashbrown::HashMap;

use super::aliases::Define;
use super::code::{Code, name_and_rest};
use super::conditions::word;

/// Bytes of a macro's body that may be a constant, at most.
const LONGEST_CONSTANT: usize = 400;

/// Changes of one macro that are looked at for one of its uses, at most.
const MOST_CHANGES: usize = 200;

/// The macros of a file, in order.
#[derive(Debug, Default)]
pub(super) struct Macros<'t> {
    all: Vec<Define>,
    by_name: HashMap<&'t [u8], Vec<Change>>,
}

/// A `#define` of a name, or an `#undef` behind one.
#[derive(Debug, Clone, Copy)]
struct Change {
    /// The token behind it.
    before: u32,
    /// The branch of an `#if` that it stands in.
    region: u32,
    /// The definition.
    define: Option<u32>,
}

/// What a name stands for at a place, as far as macros say.
#[derive(Debug)]
pub(super) struct Reach<'m> {
    /// The definitions that may hold there.
    pub(super) definitions: Vec<&'m Define>,
    /// Whether one of them surely does; otherwise the name may mean something else.
    pub(super) is_sure: bool,
}

impl<'t> Macros<'t> {
    pub(super) fn of(code: &Code, text: &'t [u8]) -> Macros<'t> {
        let mut macros = Macros::default();
        for directive in &code.directives {
            let own = directive.token.of(text);
            let (kind, rest) = name_and_rest(own);
            let change = Change { before: directive.before, region: directive.region, define: None };
            match kind {
                b"define" => {
                    let Some(define) = Define::of(own, directive.token.start as usize) else { continue };
                    let change = Change { define: Some(macros.all.len() as u32), ..change };
                    macros.by_name.entry(define.name(text)).or_default().push(change);
                    macros.all.push(define);
                }
                b"undef" => {
                    let name = own.len() - rest.trim_ascii_start().len();
                    let start = directive.token.start as usize + name;
                    let name = word(&text[start..directive.token.end as usize]);
                    if let Some(known) = macros.by_name.get_mut(name) {
                        known.push(change);
                    }
                }
                _ => {}
            }
        }
        macros
    }

    /// The definitions of this name.
    pub(super) fn get(&self, name: &[u8]) -> impl Iterator<Item = &Define> {
        let defines = self.by_name.get(name).into_iter().flatten().filter_map(|change| change.define);
        defines.map(|at| &self.all[at as usize])
    }

    /// What `name`, with no parentheses behind it, stands for at the token `at` of the file's `code`.
    pub(super) fn reach(&self, name: &[u8], at: usize, code: &Code) -> Reach<'_> {
        let mut reach = Reach { definitions: Vec::new(), is_sure: false };
        let mut may_be_undone = false;
        let Some(changes) = self.by_name.get(name) else { return reach };
        let behind = changes.partition_point(|change| change.before as usize <= at);
        for change in changes[..behind].iter().rev().take(MOST_CHANGES) {
            // One with parameters is another macro, which such a name does not call.
            let define = change.define.map(|at| &self.all[at as usize]).filter(|define| define.parameters.is_none());
            reach.definitions.extend(define);
            may_be_undone |= define.is_none();
            if code.is_within(at, change.region) {
                reach.is_sure = !may_be_undone;
                break;
            }
        }
        reach
    }

    /// What `name` stands for where nobody knows the place.
    pub(super) fn reach_anywhere(&self, name: &[u8]) -> Reach<'_> {
        Reach { definitions: self.get(name).take(MOST_CHANGES).collect(), is_sure: false }
    }

    /// Whether there are definitions of this name.
    pub(super) fn has(&self, name: &[u8]) -> bool {
        self.by_name.contains_key(name)
    }

    /// All definitions.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Define> {
        self.all.iter()
    }

    /// The names, in no order.
    pub(super) fn names(&self) -> impl Iterator<Item = &'t [u8]> {
        self.by_name.keys().copied()
    }
}

impl Define {
    /// Whether the body may be a constant.
    pub(super) fn may_be_constant(&self) -> bool {
        self.parameters.is_none() && self.body.1 - self.body.0 <= LONGEST_CONSTANT
    }
}
