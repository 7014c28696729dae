//! Where a report goes: standard output, or a file that is written whole or not at all.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

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
    /// The device or pipe took no more.
    #[error("cannot write the report to `{path}`: {error}")]
    #[diagnostic(help("it is no file, so that what was written before stays written; give --output a file"))]
    Stream {
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

/// Standard output on which something stands already: what is written there begins with a gap, and nothing with nothing.
pub struct After<'w> {
    /// What comes first.
    pub gap: &'static str,
    /// Standard output.
    pub out: &'w mut dyn Write,
}

impl Write for After<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !bytes.is_empty() {
            self.out.write_all(std::mem::take(&mut self.gap).as_bytes())?;
        }
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
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
    let shown = path.display().to_string();
    match destination(path) {
        Destination::Stream => stream(path, write).map_err(|error| OutputError::Stream { path: shown, error }),
        Destination::File(path) => replace(&path, write).map_err(|error| OutputError::File { path: shown, error }),
    }
}

/// What a path stands for.
enum Destination {
    /// A device, a pipe or an open file of this process (`/dev/stdout`): written to, not replaced.
    Stream,
    /// A file that is there or will be, at the end of all symbolic links.
    File(PathBuf),
}

/// Links that are followed, as many as Linux follows.
const MAX_LINKS: usize = 40;

fn destination(path: &Path) -> Destination {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        // `/dev/stdout` may lead to an ordinary file, which the shell has opened and which must stay that file.
        let open = path.starts_with("/dev") || path.starts_with("/proc");
        if open || fs::metadata(&path).is_ok_and(|metadata| !metadata.is_file()) {
            return Destination::Stream;
        }
        let Ok(target) = fs::read_link(&path) else { break };
        path = path.parent().map_or(target.clone(), |folder| folder.join(&target));
    }
    Destination::File(path)
}

/// Appends, so that `>> file` before `-o /dev/stdout` keeps what the file holds.
fn stream(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::new(fs::OpenOptions::new().append(true).open(path)?);
    write(&mut out)?;
    out.flush()
}

fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    if path.file_name().is_none() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it names no file"));
    }
    let partial = path.with_file_name(format!(".warplint-{}.partial", std::process::id()));
    // One that an interrupted run has left; a link in its place is not followed.
    let _ = fs::remove_file(&partial);
    let written = fs::File::create_new(&partial).and_then(|file| {
        if let Ok(old) = fs::metadata(path) {
            file.set_permissions(old.permissions())?;
        }
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
