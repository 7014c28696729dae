//! Text for people and programs, as pure functions of what was settled.

mod also;
mod branches;
mod excerpt;
mod explain;
pub mod gpus;
mod harmless;
mod human;
mod json;
mod kernels;
pub mod occupancy;
mod plot;
mod rules;
mod short;
mod style;

use std::io::{self, Write};

use crate::settle::Verdict;

pub use branches::{branches_human, branches_json};
pub use excerpt::Excerpt;
pub use explain::explain;
pub use kernels::{Sort, kernels_csv, kernels_human, kernels_json, kernels_markdown};
pub use rules::{rules_human, rules_json};
pub use style::{DataFormat, Style};

/// The forms of a report that this version writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Diagnostics for people.
    Human,
    /// One line a finding, for editors.
    Short,
    /// The JSON report.
    Json,
}

/// How a report for people is laid out.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// Characters, colours and width.
    pub style: Style,
    /// Groups that are shown in full at most.
    pub limit: usize,
    /// Notes in full, full signatures.
    pub verbose: bool,
    /// No more than the findings.
    pub quiet: bool,
}

/// What went wrong, for a person.
#[must_use]
pub fn failure(failure: &dyn miette::Diagnostic, style: Style) -> String {
    let failure = harmless::Harmless::of(failure);
    let mut text = String::new();
    match human::handler(style).render_report(&mut text, &failure) {
        Ok(()) => format!("{}\n", text.trim_end()),
        Err(_) => format!("warplint: {failure}\n"),
    }
}

/// Writes the report.
///
/// # Errors
/// When `out` cannot be written to.
pub fn render(format: Format, verdict: &Verdict<'_>, layout: &Layout, out: &mut dyn Write) -> io::Result<()> {
    match format {
        Format::Human => human::render(verdict, layout, out),
        Format::Short => short::render(verdict, out),
        Format::Json => json::render(verdict, out),
    }
}
