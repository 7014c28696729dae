//! Finds the tools that tests run and that not every machine has, and says loudly when one is missing.

use std::io::Write as _;
use std::path::{Path, PathBuf};

/// A tool that is on `PATH`, or that `.ci/run` puts into `.venv-tools` in the package root; without it, says that `test` is
/// skipped.
pub(crate) fn tool_or_skip(name: &str, test: &str) -> Option<PathBuf> {
    let venv = Path::new(env!("CARGO_MANIFEST_DIR")).join(".venv-tools");
    let folders = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .chain([venv.join("bin"), venv.join("Scripts")])
        .collect::<Vec<PathBuf>>();
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    let found = folders.into_iter().map(|folder| folder.join(&file)).find(|path| path.is_file());
    if found.is_none() {
        skip(test, &format!("no {name} (.ci/run installs it into .venv-tools)"));
    }
    found
}

/// Says on stderr, past the capture of the test harness, that a test did not run.
pub(crate) fn skip(test: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {why}: {test}");
}
