//! Kernels chosen by name: a glob is held against every form of a name that people write.

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};

use crate::model::symbol;

/// The glob that `text` is: `*` stands for anything, `?` for one character, `[…]` for one of several, `{a,b}` for
/// either.
///
/// # Errors
/// When it is broken, with the reason.
pub fn glob(text: &str) -> Result<Glob, String> {
    let built = GlobBuilder::new(text).literal_separator(false).backslash_escape(true).build();
    built.map_err(|error| error.kind().to_string())
}

/// Whether `holds` for a form of `name`, cheapest first: as printed, short, demangled, demangled without parameters.
pub fn any_form(name: &[u8], mut holds: impl FnMut(&str) -> bool) -> bool {
    holds(String::from_utf8_lossy(name).as_ref())
        || holds(&symbol::short(name))
        || symbol::demangle(name).is_some_and(|full| holds(&full) || holds(without_parameters(&full)))
}

/// `void ns::k<4>(float*)` as people write it: `ns::k<4>`.
fn without_parameters(full: &str) -> &str {
    let head = full.rsplit_once('(').map_or(full, |(head, _)| head);
    head.strip_prefix("void ").unwrap_or(head)
}

/// Many globs at once.
#[derive(Debug, Clone, Default)]
pub struct Patterns(GlobSet);

impl Patterns {
    /// All of `globs`.
    ///
    /// # Errors
    /// When they are too many or too large together, with the reason.
    pub fn new<'g>(globs: impl IntoIterator<Item = &'g Glob>) -> Result<Patterns, String> {
        let mut builder = GlobSetBuilder::new();
        for glob in globs {
            builder.add(glob.clone());
        }
        builder.build().map(Patterns).map_err(|error| error.kind().to_string())
    }

    /// Which of the globs match a form of `name`, in ascending order.
    #[must_use]
    pub fn matching(&self, name: &[u8]) -> Vec<usize> {
        let mut found = Vec::new();
        any_form(name, |form| {
            found.extend(self.0.matches(form));
            false
        });
        found.sort_unstable();
        found.dedup();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glob_matches_each_form_of_a_name() {
        let name = b"_Z5heavyILi200EEvPf";
        for text in ["_Z5heavy*", "heavy<200>", "heavy*", "void heavy<200>(float?)", "{light,heavy}<*>"] {
            let set = Patterns::new(&[glob(text).expect("a glob")]).expect("a set");
            assert_eq!(set.matching(name), [0], "{text}");
        }
        let set = Patterns::new(&[glob("heavy").expect("a glob"), glob("*200*").expect("a glob")]).expect("a set");
        assert_eq!(set.matching(name), [1]);
        assert!(Patterns::default().matching(name).is_empty());
    }

    #[test]
    fn a_broken_glob_says_why() {
        assert_eq!(glob("[").expect_err("no glob"), "unclosed character class; missing ']'");
    }
}
