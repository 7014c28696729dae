//! Reads the inputs of a run, and tells a terminal how far that is.

use std::fs::{File, Metadata};
use std::io::{self, Write};

use super::broken_ptx::BrokenPtx;
use super::{Streams, understands_escapes};
use crate::cli::{LookArgs, Passthrough};
use crate::discover::{Input, InputError};
use crate::model::{Report, symbol};
use crate::parse::ptx::read_ptx;
use crate::parse::{Echo, EchoMode, read_log};
use crate::progress::Metered;

/// Reads `input` into `report`; what is no resource report is passed on, if it is piped in.
pub(super) fn read(
    input: &Input,
    passthrough: Passthrough,
    look: LookArgs,
    report: &mut Report,
    streams: &mut Streams<'_>,
) -> miette::Result<()> {
    let shows_progress = streams.stderr_is_terminal && !look.quiet && understands_escapes();
    let (result, name) = match input {
        Input::Stdin => (read_stdin(passthrough, shows_progress, report, streams), STDIN.to_owned()),
        Input::Log(path) => {
            let name = path.display().to_string();
            let terminal: Option<&mut dyn Write> = if shows_progress { Some(&mut *streams.stderr) } else { None };
            (File::open(path).and_then(|file| read_file(file, &name, report, terminal)), name)
        }
        Input::Ptx(path) => {
            let name = path.display().to_string();
            match std::fs::read(path) {
                Ok(text) => return Ok(read_ptx(text.into(), &name, report).map_err(BrokenPtx::new)?),
                Err(error) => (Err(error), name),
            }
        }
    };
    result.map_err(|error| {
        InputError::Unreadable { path: symbol::printable(&name).into_owned(), reason: error.to_string() }.into()
    })
}

/// What standard input is called.
const STDIN: &str = "<stdin>";

fn read_stdin(
    passthrough: Passthrough,
    shows_progress: bool,
    report: &mut Report,
    streams: &mut Streams<'_>,
) -> io::Result<()> {
    let mode = match passthrough {
        Passthrough::Auto => EchoMode::Others,
        Passthrough::All => EchoMode::All,
        Passthrough::None => EchoMode::None,
    };
    if mode != EchoMode::None {
        // What is passed on shows how far the build is.
        return read_log(streams.stdin, STDIN, report, &mut Echo::new(mode, streams.stderr));
    }
    let terminal: Option<&mut dyn Write> = if shows_progress { Some(&mut *streams.stderr) } else { None };
    let mut source = Metered::new(streams.stdin, STDIN, None, terminal);
    read_log(&mut source, STDIN, report, &mut Echo::new(mode, &mut io::sink()))
}

fn read_file(mut file: File, name: &str, report: &mut Report, terminal: Option<&mut dyn Write>) -> io::Result<()> {
    let size = file.metadata().ok().filter(Metadata::is_file).map(|about| about.len());
    let mut source = Metered::new(&mut file, name, size, terminal);
    read_log(&mut source, name, report, &mut Echo::new(EchoMode::None, &mut io::sink()))
}
