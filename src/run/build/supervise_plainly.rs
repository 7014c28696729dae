//! A build where there are no signals: what ends warplint ends the build too, as ^C in a console does.

use std::io;
use std::process::{Child, Command, ExitStatus};

/// A build that runs.
pub(super) struct Running {
    pub(super) child: Child,
}

/// Starts a build.
pub(super) fn start(mut command: Command) -> io::Result<Running> {
    command.spawn().map(|child| Running { child })
}

impl Running {
    /// Waits for the end of the build, and tells it.
    pub(super) fn supervise(mut self, tell: impl Fn(Option<ExitStatus>)) {
        tell(self.child.wait().ok());
    }
}
