//! Reads the inputs of a run, and tells a terminal how far that is.

use std::fs::{File, Metadata};
use std::io::{self, Read, Write};

use super::broken_ptx::BrokenPtx;
use super::{Streams, understands_escapes};
use crate::cli::{LookArgs, Passthrough};
use crate::discover::{Input, InputError};
use crate::model::{Report, symbol};
use crate::parse::cuda::{looks_like_source, may_become_source};
use crate::parse::ptx::{PtxFault, looks_like_ptx, may_become_ptx, read_ptx};
use crate::parse::{Echo, EchoMode, plain, read_log};
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
        Input::Stdin => match read_stdin(passthrough, shows_progress, report, streams) {
            Ok(Some(fault)) => return Err(BrokenPtx::new(fault).into()),
            other => (other.map(drop), STDIN.to_owned()),
        },
        Input::Log(path) => {
            let name = path.display().to_string();
            let terminal: Option<&mut dyn Write> = if shows_progress { Some(&mut *streams.stderr) } else { None };
            match File::open(path).and_then(|file| read_file(file, &name, report, terminal)) {
                Ok(Some(fault)) => return Err(BrokenPtx::new(fault).into()),
                other => (other.map(drop), name),
            }
        }
        // Sources are read many at a time.
        Input::Source(_) => return Ok(()),
        Input::Ptx(path) => {
            let name = path.display().to_string();
            match std::fs::read(path).map(plain) {
                Ok(text) => return Ok(read_ptx(text, &name, report).map_err(BrokenPtx::new)?),
                Err(error) => (Err(error), name),
            }
        }
    };
    result.map_err(|error| {
        let name = symbol::printable(&name).into_owned();
        match error.get_ref() {
            Some(error) if error.is::<IsSource>() => InputError::PipedSource { name }.into(),
            _ => InputError::Unreadable { path: name, reason: error.to_string() }.into(),
        }
    })
}

/// What is piped in is no log.
#[derive(Debug, thiserror::Error)]
#[error("it is CUDA source")]
struct IsSource;

/// What standard input is called.
const STDIN: &str = "<stdin>";

fn read_stdin(
    passthrough: Passthrough,
    shows_progress: bool,
    report: &mut Report,
    streams: &mut Streams<'_>,
) -> io::Result<Option<PtxFault>> {
    let start = first_piece(streams.stdin)?;
    if looks_like_ptx(&start) {
        let mut text = start;
        streams.stdin.read_to_end(&mut text)?;
        return Ok(read_ptx(text, STDIN, report).err());
    }
    if looks_like_source(&start) {
        return Err(io::Error::other(IsSource));
    }
    let mut stdin = start.as_slice().chain(&mut *streams.stdin);
    let mode = match passthrough {
        Passthrough::Auto => EchoMode::Others,
        Passthrough::All => EchoMode::All,
        Passthrough::None => EchoMode::None,
    };
    if mode != EchoMode::None {
        // What is passed on shows how far the build is.
        return read_log(&mut stdin, STDIN, report, &mut Echo::new(mode, streams.stderr)).map(|()| None);
    }
    let terminal: Option<&mut dyn Write> = if shows_progress { Some(&mut *streams.stderr) } else { None };
    let mut source = Metered::new(&mut stdin, STDIN, None, terminal);
    read_log(&mut source, STDIN, report, &mut Echo::new(mode, &mut io::sink())).map(|()| None)
}

/// What the output of a build that warplint runs is called.
pub(super) const BUILD: &str = "<build>";

/// Reads what a build prints, which is passed on elsewhere: a log, or the PTX that it makes.
pub(super) fn read_build(output: &mut dyn Read, report: &mut Report) -> miette::Result<()> {
    let fault = first_piece(output).and_then(|start| read_either(start, output, BUILD, report));
    match fault {
        Ok(None) => Ok(()),
        Ok(Some(fault)) => Err(BrokenPtx::new(fault).into()),
        Err(error) => Err(InputError::Unreadable { path: BUILD.to_owned(), reason: error.to_string() }.into()),
    }
}

/// Reads PTX or a log, whatever `start` begins.
fn read_either(start: Vec<u8>, rest: &mut dyn Read, name: &str, report: &mut Report) -> io::Result<Option<PtxFault>> {
    if looks_like_ptx(&start) {
        let mut text = start;
        rest.read_to_end(&mut text)?;
        return Ok(read_ptx(text, name, report).err());
    }
    let mut log = start.as_slice().chain(rest);
    read_log(&mut log, name, report, &mut Echo::new(EchoMode::None, &mut io::sink())).map(|()| None)
}

/// Bytes that decide what is piped in, at most.
const PIECE: usize = 64 * 1024;

/// What comes first, as far as it takes to tell PTX and sources from a log: they begin with comments, and no log does.
fn first_piece(source: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let read = match source.read(&mut piece) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        start.extend_from_slice(&piece[..read]);
        if read == 0 || start.len() >= PIECE || !(may_become_ptx(&start) || may_become_source(&start)) {
            return Ok(start);
        }
    }
}

fn read_file(
    mut file: File,
    name: &str,
    report: &mut Report,
    terminal: Option<&mut dyn Write>,
) -> io::Result<Option<PtxFault>> {
    let size = file.metadata().ok().filter(Metadata::is_file).map(|about| about.len());
    // What a pipe holds, as that of `<(make)`, is not known before it is read.
    let start = if size.is_none() { first_piece(&mut file)? } else { Vec::new() };
    if looks_like_ptx(&start) {
        let mut text = start;
        file.read_to_end(&mut text)?;
        return Ok(read_ptx(text, name, report).err());
    }
    if looks_like_source(&start) {
        return Err(io::Error::other(IsSource));
    }
    let mut file = start.as_slice().chain(file);
    let mut source = Metered::new(&mut file, name, size, terminal);
    read_log(&mut source, name, report, &mut Echo::new(EchoMode::None, &mut io::sink())).map(|()| None)
}
