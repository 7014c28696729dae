//! `--kernel` and `--arch`: which kernels the user asked about.

use globset::GlobMatcher;
use miette::Diagnostic;
use thiserror::Error;

use crate::model::{Arch, Kernel, Kind, NameId, Names, Report};
use crate::pattern::{self, any_form};

/// A choice of kernels.
#[derive(Debug, Default)]
pub struct Filter {
    kernel: Option<(String, GlobMatcher)>,
    arch: Option<(String, Arch)>,
}

/// A filter that cannot be meant.
#[derive(Debug, Error, Diagnostic)]
pub enum FilterError {
    /// The pattern is broken.
    #[error("`--kernel {glob}` is no pattern: {reason}")]
    #[diagnostic(help("`*` stands for anything, `?` for one character: --kernel 'gemm_*'"))]
    Glob {
        /// The pattern.
        glob: String,
        /// Why.
        reason: String,
    },
    /// Not the name of an architecture.
    #[error("`--arch {0}` is no architecture")]
    #[diagnostic(help("write it as sm_90, sm_90a or 90"))]
    Arch(String),
    /// No kernel is left.
    #[error("`--{option} {value}` matches no kernel of the input")]
    #[diagnostic(help("{seen}"))]
    Nothing {
        /// The option.
        option: &'static str,
        /// Its value.
        value: String,
        /// What the input holds.
        seen: String,
    },
}

impl Filter {
    /// The filter of the options' values.
    ///
    /// # Errors
    /// When a value cannot be meant.
    pub fn new(kernel: Option<&str>, arch: Option<&str>) -> Result<Filter, FilterError> {
        let glob = |text: &str| {
            let glob = pattern::glob(text).map_err(|reason| FilterError::Glob { glob: text.to_owned(), reason })?;
            Ok((text.to_owned(), glob.compile_matcher()))
        };
        let named = |text: &str| {
            let digits = text.starts_with(|c: char| c.is_ascii_digit());
            let full = if digits { format!("sm_{text}") } else { text.to_owned() };
            full.parse().map(|arch| (text.to_owned(), arch)).map_err(|_| FilterError::Arch(text.to_owned()))
        };
        Ok(Filter { kernel: kernel.map(glob).transpose()?, arch: arch.map(named).transpose()? })
    }

    /// Whether a kernel is asked about that has one of these names.
    #[must_use]
    pub fn keeps(&self, names: &[&[u8]], arch: Option<Arch>) -> bool {
        let of_name =
            |(_, glob): &(String, GlobMatcher)| names.iter().any(|name| any_form(name, |form| glob.is_match(form)));
        self.arch.as_ref().is_none_or(|(_, wanted)| arch == Some(*wanted)) && self.kernel.as_ref().is_none_or(of_name)
    }

    /// The error of a filter that leaves nothing of what is `seen`; `None` for one that leaves everything.
    #[must_use]
    pub fn nothing(&self, seen: &str) -> Option<FilterError> {
        let kernel = self.kernel.as_ref().map(|(text, _)| ("kernel", text));
        let (option, value) = kernel.or_else(|| self.arch.as_ref().map(|(text, _)| ("arch", text)))?;
        Some(FilterError::Nothing { option, value: value.clone(), seen: seen.to_owned() })
    }

    /// Takes everything out of `report` that is about other kernels. Messages that name no kernel stay: they may be
    /// about any.
    ///
    /// # Errors
    /// When nothing is left: a gate that measured nothing has not passed.
    pub fn apply(&self, report: &mut Report) -> Result<(), FilterError> {
        report.is_filtered = self.arch.is_some() || self.kernel.is_some();
        if let Some((text, arch)) = &self.arch {
            let any = report.kernels.iter().any(|kernel| kernel.arch == Some(*arch));
            if !any {
                let mut seen: Vec<Arch> = report.kernels.iter().filter_map(|kernel| kernel.arch).collect();
                seen.sort_unstable();
                seen.dedup();
                let list: Vec<String> = seen.iter().map(Arch::to_string).collect();
                let seen = if list.is_empty() {
                    "it names no architecture".to_owned()
                } else {
                    format!("it has {}", list.join(", "))
                };
                return Err(FilterError::Nothing { option: "arch", value: text.clone(), seen });
            }
            report.kernels.retain(|kernel| kernel.arch == Some(*arch));
            report.messages.retain(|message| message.arch.is_none_or(|named| named == *arch));
        }
        if let Some((text, glob)) = &self.kernel {
            let mut wanted = Wanted { glob, known: vec![None; report.names.len()] };
            let names = &report.names;
            let held = counted(&report.kernels);
            report.kernels.retain(|kernel| kernel.name.is_some_and(|name| wanted.has(names, name)));
            report.messages.retain(|message| message.kernel.is_none_or(|name| wanted.has(names, name)));
            if report.kernels.is_empty() {
                let seen = format!("it has {held}; `warplint kernels` lists them");
                return Err(FilterError::Nothing { option: "kernel", value: text.clone(), seen });
            }
        }
        Ok(())
    }
}

/// `4 kernels`, `1 kernel and 2 device functions`
fn counted(kernels: &[Kernel]) -> String {
    let entries = kernels.iter().filter(|kernel| kernel.kind == Kind::Entry).count();
    let plural = |count: usize, one: &str| if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") };
    match kernels.len() - entries {
        0 => plural(entries, "kernel"),
        functions => format!("{} and {}", plural(entries, "kernel"), plural(functions, "device function")),
    }
}

/// Each name is matched once.
struct Wanted<'a> {
    glob: &'a GlobMatcher,
    known: Vec<Option<bool>>,
}

impl Wanted<'_> {
    fn has(&mut self, names: &Names, id: NameId) -> bool {
        let glob = self.glob;
        *self.known[id.index()].get_or_insert_with(|| any_form(names.get(id), |form| glob.is_match(form)))
    }
}
