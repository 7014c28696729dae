//! Runs a build: its output is passed on as it comes and is the log that is linted; its status is kept.

mod merge;
#[cfg(unix)]
mod supervise;
#[cfg(not(unix))]
#[path = "supervise_plainly.rs"]
mod supervise;

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use miette::Diagnostic;

use super::inputs;
use crate::model::{Message, MessageKind, Place, Report, symbol};
use crate::parse::note_command;
use merge::{Event, From, Merged, PIECE};

/// A build that is to be run, or that was.
pub(super) struct Build<'a> {
    command: &'a [OsString],
    /// What it prints on stdout goes to stderr, since the report is to have stdout to itself.
    pub(super) leaves_stdout: bool,
    /// How it ended, as a shell says it; `None` before it was run.
    status: Option<u8>,
    /// The last byte that it left on stdout.
    last_on_stdout: Option<u8>,
}

/// A build that could not be started.
#[derive(Debug, thiserror::Error, Diagnostic)]
enum StartError {
    #[error("there is no command `{command}`")]
    #[diagnostic(help("what stands after `--` is run as it is, without a shell: {hint}"))]
    NotFound { command: String, hint: &'static str },
    #[error("the command `{command}` cannot be run: {reason}")]
    #[diagnostic(help(
        "what stands after `--` is run as it is, without a shell: a script begins with `#!` and the path of what runs it, \
         and is executable (`chmod +x`)"
    ))]
    NotRunnable { command: String, reason: String },
}

/// Statuses that shells have for them.
const NOT_FOUND: u8 = 127;
const NOT_RUNNABLE: u8 = 126;

/// Pieces of output on their way, at most: a build that prints faster than it is linted waits.
const ON_THE_WAY: usize = 16;

impl<'a> Build<'a> {
    pub(super) fn new(command: &'a [OsString], leaves_stdout: bool) -> Build<'a> {
        Build { command, leaves_stdout, status: None, last_on_stdout: None }
    }

    /// The status that counts: of a build that was not asked for, or that ended well, there is none.
    pub(super) fn failure(&self) -> Option<u8> {
        self.status.filter(|status| *status != 0)
    }

    /// What a report on stdout begins with, so that it stands on lines of its own.
    pub(super) fn gap(&self) -> &'static str {
        match self.last_on_stdout {
            None | Some(b'\n') => "",
            Some(_) => "\n",
        }
    }

    /// Runs it, passes on what it prints, and reads that into `report`.
    ///
    /// # Errors
    /// When it cannot be started, or prints PTX that is torn.
    pub(super) fn read(
        &mut self,
        report: &mut Report,
        stdout: &mut dyn Write,
        stderr: &mut dyn Write,
    ) -> miette::Result<()> {
        let (sender, events) = sync_channel(ON_THE_WAY);
        if let Err(error) = self.start(&sender) {
            let error = self.start_error(&error);
            self.status = Some(if matches!(error, StartError::NotFound { .. }) { NOT_FOUND } else { NOT_RUNNABLE });
            return Err(error.into());
        }
        drop(sender);
        let name = self.name();
        let mut output = Merged::new(events, name.clone(), self.leaves_stdout, stdout, stderr);
        let input = report.inputs.len();
        let read = inputs::read_build(&mut output, report);
        if let Some(facts) = report.inputs.get_mut(input) {
            facts.is_captured = true;
            let words: Vec<_> = self.command.iter().map(|word| word.to_string_lossy()).collect();
            note_command(&words, facts);
        }
        self.last_on_stdout = output.last_on_stdout();
        let ended = output.ended();
        let status = ended.map_or(1, status_of);
        self.status = Some(status);
        if status != 0 {
            tell_failure(&name, ended, output.end(), report);
        }
        read
    }

    fn start(&self, events: &SyncSender<Event>) -> io::Result<()> {
        let (program, args) = self.command.split_first().ok_or(io::ErrorKind::NotFound)?;
        let mut command = Command::new(program);
        command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = supervise::start(command)?;
        forward(From::Stdout, running.child.stdout.take(), events);
        forward(From::Stderr, running.child.stderr.take(), events);
        let events = events.clone();
        thread::spawn(move || running.supervise(|status| drop(events.send(Event::Exit(status)))));
        Ok(())
    }

    /// What the user calls it: its first word.
    fn name(&self) -> String {
        let word = self.command.first().map_or_else(Default::default, |word| word.to_string_lossy());
        symbol::printable(&word).into_owned()
    }

    fn start_error(&self, error: &io::Error) -> StartError {
        let command = self.name();
        let is_there = command.contains('/') && Path::new(&self.command[0]).exists();
        let reason = match error.kind() {
            io::ErrorKind::NotFound if is_there => "what its first line says runs it is not there".to_owned(),
            io::ErrorKind::NotFound => {
                let is_line = command.contains(char::is_whitespace) && self.command.len() == 1;
                let hint = if is_line {
                    "write its words apart, or `sh -c '…'`"
                } else {
                    "look at its name and at PATH; what a shell understands wants `sh -c '…'`"
                };
                return StartError::NotFound { command, hint };
            }
            io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
            _ => error.to_string(),
        };
        StartError::NotRunnable { command, reason }
    }
}

/// Sends on what `pipe` brings, piece by piece as it comes.
fn forward(from: From, pipe: Option<impl Read + Send + 'static>, events: &SyncSender<Event>) {
    let events = events.clone();
    thread::spawn(move || {
        let mut piece = vec![0; PIECE];
        let mut pipe = pipe;
        while let Some(pipe) = &mut pipe {
            let event = match pipe.read(&mut piece) {
                Ok(read) if read > 0 => Event::Bytes(from, piece[..read].to_vec()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Ok(_) | Err(_) => break,
            };
            if events.send(event).is_err() {
                return;
            }
        }
        let _ = events.send(Event::End(from));
    });
}

/// A status as a shell says it.
fn status_of(status: ExitStatus) -> u8 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return u8::try_from(128 + signal).unwrap_or(u8::MAX);
    }
    match status.code() {
        Some(0) => 0,
        // Elsewhere than on Unix a status has 32 bits, and none that is not 0 may become 0.
        Some(code) => u8::try_from(code).unwrap_or(1),
        None => 1,
    }
}

/// A build that failed without a word of it in its output says so in the report, as a build tool would: a report of it, in a
/// file of its own, must not look like one of a build that went well.
fn tell_failure(name: &str, ended: Option<ExitStatus>, (line, offset): (usize, u64), report: &mut Report) {
    let Some(input) = report.inputs.len().checked_sub(1).and_then(|at| u32::try_from(at).ok()) else { return };
    if report.messages.iter().any(|message| message.kind.fails_build()) {
        return;
    }
    let text = report.texts.intern(format!("`{name}` {}", how(ended)).as_bytes());
    let place = Place { input, line: u32::try_from(line).unwrap_or(u32::MAX), offset, ..Place::default() };
    report.messages.push(Message::new(MessageKind::BuildStopped, text, place));
}

fn how(ended: Option<ExitStatus>) -> String {
    let Some(status) = ended else { return "ended, and the system does not tell how".to_owned() };
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return format!("was ended by {}", supervise::signal_name(signal));
    }
    format!("exited with status {}", status.code().unwrap_or_default())
}
