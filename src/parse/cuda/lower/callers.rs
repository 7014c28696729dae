//! Which kernels of a file call a device function, itself or through others: their blocks are those that it runs in.

use hashbrown::HashMap;

use super::super::lexer::Kind;
use super::{File, Unit};

/// Functions on the ways from a device function up to kernels, at most.
const MOST: usize = 64;

/// Who names whom in a file.
pub(super) struct Callers {
    /// For each function those in whose bodies its name stands.
    of: Vec<Vec<usize>>,
}

impl Callers {
    pub(super) fn find(file: &File<'_>) -> Callers {
        let unit = &file.unit;
        // Which of several functions of one name is meant is open.
        let mut by_name: HashMap<&[u8], Option<usize>> = HashMap::new();
        for (at, one) in unit.functions.iter().enumerate() {
            let Some(name) = unit.text.get(one.name.clone()) else { continue };
            by_name.entry(name).and_modify(|known| *known = None).or_insert(Some(at));
        }
        let mut of = vec![Vec::new(); unit.functions.len()];
        for (at, one) in unit.functions.iter().enumerate() {
            for token in file.tokens(&one.body).into_iter().filter(|token| token.kind == Kind::Word) {
                let Some(callee) = by_name.get(token.of(unit.text)).copied().flatten() else { continue };
                let all: &mut Vec<usize> = &mut of[callee];
                if all.last() != Some(&at) {
                    all.push(at);
                }
            }
        }
        Callers { of }
    }

    /// The kernels that a device function is called from; none where somebody else may call it too.
    pub(super) fn kernels(&self, unit: &Unit<'_>, function: usize) -> Vec<usize> {
        let mut seen = vec![function];
        let mut kernels = Vec::new();
        let mut next = 0;
        while let Some(one) = seen.get(next).copied() {
            next += 1;
            if unit.functions[one].is_kernel {
                kernels.push(one);
                continue;
            }
            let callers = &self.of[one];
            if callers.is_empty() || seen.len() > MOST {
                return Vec::new();
            }
            let new: Vec<usize> = callers.iter().copied().filter(|caller| !seen.contains(caller)).collect();
            seen.extend(new);
        }
        kernels
    }
}
