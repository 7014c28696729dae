//! The macros of a file: what they are defined as, and whether that is the same everywhere.

use hashbrown::HashMap;

use super::aliases::Define;
use super::code::{Code, name_and_rest};

/// Bytes of a macro's body that may be a constant, at most.
const LONGEST_CONSTANT: usize = 400;

/// The macros of a file, in order.
#[derive(Debug, Default)]
pub(super) struct Macros<'t> {
    all: Vec<Define>,
    by_name: HashMap<&'t [u8], Vec<u32>>,
}

impl<'t> Macros<'t> {
    pub(super) fn of(code: &Code, text: &'t [u8]) -> Macros<'t> {
        let mut macros = Macros::default();
        for directive in &code.directives {
            let own = directive.token.of(text);
            if name_and_rest(own).0 != b"define" {
                continue;
            }
            let Some(define) = Define::of(own, directive.token.start as usize) else { continue };
            let at = macros.all.len() as u32;
            macros.by_name.entry(define.name(text)).or_default().push(at);
            macros.all.push(define);
        }
        macros
    }

    /// The definitions of this name.
    pub(super) fn get(&self, name: &[u8]) -> impl Iterator<Item = &Define> {
        self.by_name.get(name).into_iter().flatten().map(|at| &self.all[*at as usize])
    }

    /// Whether there are definitions of this name.
    pub(super) fn has(&self, name: &[u8]) -> bool {
        self.by_name.contains_key(name)
    }

    /// All definitions.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Define> {
        self.all.iter()
    }

    /// The names, in the order of their first definitions.
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
