//! Where a report goes: standard output, or a file that is written whole or not at all.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use miette::Diagnostic;
use thiserror::Error;

/// A report that could not be written.
#[derive(Debug, Error, Diagnostic)]
pub enum OutputError {
    /// Standard output is closed or full.
    #[error("cannot write the report: {0}")]
    Stdout(io::Error),
    /// The file cannot be written.
    #[error("cannot write the report to `{path}`: {error}")]
    #[diagnostic(help(
        "the file was left as it was; give --output a path in a folder that exists and can be written to"
    ))]
    File {
        /// The path.
        path: String,
        /// The system's reason.
        error: io::Error,
    },
}

impl OutputError {
    /// The reader of the report went away, as `head` does.
    #[must_use]
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, OutputError::Stdout(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// Writes what `write` makes to `file`, or to `stdout` without one.
///
/// # Errors
/// When it cannot be written; a file is then as it was before.
pub fn write(
    file: Option<&Path>,
    stdout: &mut dyn Write,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), OutputError> {
    let Some(path) = file else {
        return write(stdout).and_then(|()| stdout.flush()).map_err(OutputError::Stdout);
    };
    let failed = |error| OutputError::File { path: path.display().to_string(), error };
    // A device or pipe (/dev/stdout, /dev/null) is written to, not replaced.
    let special = fs::metadata(path).is_ok_and(|metadata| !metadata.is_file());
    if special {
        let mut out = BufWriter::new(fs::OpenOptions::new().write(true).open(path).map_err(failed)?);
        return write(&mut out).and_then(|()| out.flush()).map_err(failed);
    }
    replace(path, write).map_err(failed)
}

fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let name = path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "it names no file"))?;
    let mut partial = name.to_owned();
    partial.push(format!(".{}.partial", std::process::id()));
    let partial = path.with_file_name(partial);
    let written = fs::File::create(&partial).and_then(|file| {
        let mut out = BufWriter::new(file);
        write(&mut out)?;
        out.flush()
    });
    let result = written.and_then(|()| fs::rename(&partial, path));
    if result.is_err() {
        let _ = fs::remove_file(&partial);
    }
    result
}

/// Columns of the terminal at standard output, where there is one.
#[must_use]
pub fn terminal_width() -> Option<usize> {
    terminal_size::terminal_size().map(|(terminal_size::Width(columns), _)| usize::from(columns))
}
