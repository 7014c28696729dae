//! How a run ends. The only place where exit status numbers are.

use std::process::ExitCode;

/// The end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing at or over the level that fails.
    Clean,
    /// Findings at or over it.
    Findings,
    /// The job could not be done: a wrong command line, an unreadable input, a filter that matches nothing.
    Unable,
    /// The build that was run failed, with this status; that it failed counts for more than what a lint says of it.
    Build(u8),
}

impl Outcome {
    /// The number that a shell sees.
    #[must_use]
    pub fn status(self) -> u8 {
        match self {
            Outcome::Clean => 0,
            Outcome::Findings => 1,
            Outcome::Unable => 2,
            Outcome::Build(status) => status,
        }
    }
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> ExitCode {
        ExitCode::from(outcome.status())
    }
}
