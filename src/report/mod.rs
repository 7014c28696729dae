//! Text for people and programs, as pure functions of what was settled.

mod also;
mod baseline;
mod branches;
mod csv;
mod diff;
mod excerpt;
mod explain;
mod github;
mod gitlab;
pub mod gpus;
mod harmless;
mod html;
mod human;
mod json;
mod junit;
mod kernels;
pub mod launch;
mod markdown;
mod not_followed;
pub mod occupancy;
mod plot;
mod rules;
mod sarif;
mod short;
mod style;
mod summary;
mod wire;

use std::io::{self, Write};

use crate::settle::{FailOn, Verdict};

pub use baseline::Written;
pub use branches::{branches_human, branches_json};
pub use diff::{diff_human, diff_json, diff_markdown};
pub use excerpt::Excerpt;
pub use explain::explain;
pub use kernels::{Sort, kernels_csv, kernels_human, kernels_json, kernels_markdown};
pub use rules::{rules_human, rules_json};
pub use style::{DataFormat, Style};

use wire::Escaped;
pub use wire::harmless_lines;

/// The forms of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    /// Diagnostics for people.
    #[default]
    Human,
    /// One line a finding, for editors.
    Short,
    /// The JSON report.
    Json,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// Annotations of GitHub Actions.
    Github,
    /// Code Quality of GitLab.
    Gitlab,
    /// Test results.
    Junit,
    /// A comment on a pull request.
    Markdown,
    /// One row a finding.
    Csv,
    /// A page to look at.
    Html,
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
    /// What fails the run.
    pub fail_on: FailOn,
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
        Format::Json => json::render(verdict, &mut Escaped(out)),
        Format::Sarif => sarif::render(verdict, &mut Escaped(out)),
        Format::Github => github::render(verdict, out),
        Format::Gitlab => gitlab::render(verdict, &mut Escaped(out)),
        Format::Junit => junit::render(verdict, layout.fail_on, out),
        Format::Markdown => markdown::render(verdict, layout, out),
        Format::Csv => csv::render(verdict, out),
        Format::Html => html::render(verdict, out),
    }
}
