//! Where a report goes: standard output, or a file that is written whole or not at all.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::thread;
#[cfg(unix)]
use std::time::{Duration, Instant};

use miette::Diagnostic;
use thiserror::Error;

/// A report that could not be written.
#[derive(Debug, Error, Diagnostic)]
pub enum OutputError {
    /// Standard output is closed or full.
    #[error("cannot write the report: {0}")]
    Stdout(io::Error),
    /// The file cannot be written.
    #[error("cannot write `{path}`: {error}")]
    #[diagnostic(help(
        "name a file in a folder that exists and can be written to; a file that was there is left as it was"
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

/// Whether `file` is standard output: what is written there without a file, or under the name `-`.
#[must_use]
pub fn is_stdout(file: Option<&Path>) -> bool {
    file.is_none_or(|path| path == Path::new("-"))
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
    let Some(path) = file.filter(|path| !is_stdout(Some(path))) else {
        return write(stdout).and_then(|()| stdout.flush()).map_err(OutputError::Stdout);
    };
    let shown = path.display().to_string();
    match destination(path) {
        Destination::Stream => stream(path, write).map_err(|error| OutputError::Stream { path: shown, error }),
        Destination::File(path) => replace(&path, write).map_err(|error| OutputError::File { path: shown, error }),
    }
}

/// Waits until no other warplint reads, changes and writes the file under this name, or for no more than a few seconds:
/// whoever holds the turn lets go of it by dropping it. Where folders cannot be locked there are no turns.
#[cfg(unix)]
pub fn turn(path: &Path) -> Option<impl Sized> {
    use nix::errno::Errno;
    use nix::fcntl::{Flock, FlockArg};
    // The file itself is replaced, and its lock with it.
    let file = file_of(path)?;
    let mut folder = fs::File::open(file.parent()?).ok()?;
    let start = Instant::now();
    while start.elapsed() < LONGEST_WAIT {
        match Flock::lock(folder, FlockArg::LockExclusiveNonblock) {
            Ok(held) => return Some(held),
            Err((same, Errno::EWOULDBLOCK | Errno::EINTR)) => folder = same,
            Err(_) => return None,
        }
        thread::sleep(Duration::from_millis(5));
    }
    None
}

/// Nothing to wait for: the last one to write wins.
#[cfg(not(unix))]
pub fn turn(_: &Path) -> Option<()> {
    None
}

/// The file that a report under this name would replace, by a name that no other of its names leads past; `None` for a stream.
#[must_use]
pub fn file_of(path: &Path) -> Option<PathBuf> {
    let Destination::File(path) = destination(path) else { return None };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    Some(folder.join(path.file_name()?))
}

/// What a path stands for.
enum Destination {
    /// A device, a pipe or an open file of this process (`/dev/stdout`): written to, not replaced.
    Stream,
    /// A file that is there or will be, at the end of all symbolic links.
    File(PathBuf),
}

/// How long a turn is waited for: to write a large baseline takes less, and another program may hold the folder for ever.
#[cfg(unix)]
const LONGEST_WAIT: Duration = Duration::from_secs(5);

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
