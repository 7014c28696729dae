//! The two streams of a build as one log: each is passed on as it comes, and lines of both follow each other whole.

use std::io::{self, Read, Write};
use std::process::ExitStatus;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Bytes of a pipe that are taken at once, at most.
pub(super) const PIECE: usize = 64 * 1024;

/// Longest line that is kept whole while the other stream goes on; the reader of logs takes no more of one either.
const LONG_LINE: usize = 1024 * 1024;

/// When the build has ended and something that it left running holds its output open: how long nothing may come before
/// nothing more is waited for, and how long all of it may take.
const QUIET: Duration = Duration::from_secs(2);
const AT_MOST: Duration = Duration::from_secs(10);

/// Where a piece of output comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum From {
    Stdout,
    Stderr,
}

/// What a build does.
pub(super) enum Event {
    /// It prints.
    Bytes(From, Vec<u8>),
    /// It has closed a stream.
    End(From),
    /// It has ended; how, where the system tells.
    Exit(Option<ExitStatus>),
}

/// The output of a build, to be read as one log while it is passed on.
pub(super) struct Merged<'w> {
    events: Receiver<Event>,
    /// What the build is called.
    name: String,
    stdout: Stream<'w>,
    stderr: Stream<'w>,
    /// What the build prints on stdout goes to stderr.
    leaves_stdout: bool,
    /// Whole lines, and how many bytes of them were read.
    ready: Vec<u8>,
    read: usize,
    exit: Option<(Instant, Option<ExitStatus>)>,
    /// Nothing more is waited for.
    is_over: bool,
    /// Line feeds and bytes that were made ready.
    lines: usize,
    bytes: u64,
}

/// One stream of the build, and where it is passed on to.
struct Stream<'w> {
    out: &'w mut dyn Write,
    /// The line that is not whole yet.
    rest: Vec<u8>,
    has_ended: bool,
    /// The last byte that was passed on.
    last: Option<u8>,
}

impl<'w> Stream<'w> {
    fn new(out: &'w mut dyn Write) -> Stream<'w> {
        Stream { out, rest: Vec::new(), has_ended: false, last: None }
    }

    /// At once, and whoever has stopped reading does not stop the build.
    fn pass_on(&mut self, bytes: &[u8]) {
        let _ = self.out.write_all(bytes).and_then(|()| self.out.flush());
        self.last = bytes.last().copied().or(self.last);
    }
}

impl<'w> Merged<'w> {
    pub(super) fn new(
        events: Receiver<Event>,
        name: String,
        leaves_stdout: bool,
        stdout: &'w mut dyn Write,
        stderr: &'w mut dyn Write,
    ) -> Merged<'w> {
        let (stdout, stderr) = (Stream::new(stdout), Stream::new(stderr));
        let (ready, exit) = (Vec::new(), None);
        Merged { events, name, stdout, stderr, leaves_stdout, ready, read: 0, exit, is_over: false, lines: 0, bytes: 0 }
    }

    /// How the build ended, if it did and the system tells.
    pub(super) fn ended(&self) -> Option<ExitStatus> {
        self.exit.and_then(|(_, status)| status)
    }

    /// The last byte that the build has left on stdout, if any.
    pub(super) fn last_on_stdout(&self) -> Option<u8> {
        self.stdout.last
    }

    /// The number of the last line, and the bytes before it.
    pub(super) fn end(&self) -> (usize, u64) {
        (self.lines + 1, self.bytes)
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Bytes(from, bytes) => self.take_bytes(from, &bytes),
            Event::End(From::Stdout) => self.stdout.has_ended = true,
            Event::End(From::Stderr) => self.stderr.has_ended = true,
            Event::Exit(status) => self.exit = Some((Instant::now(), status)),
        }
    }

    fn take_bytes(&mut self, from: From, bytes: &[u8]) {
        let stream = match from {
            From::Stdout if !self.leaves_stdout => &mut self.stdout,
            _ => &mut self.stderr,
        };
        stream.pass_on(bytes);
        let stream = match from {
            From::Stdout => &mut self.stdout,
            From::Stderr => &mut self.stderr,
        };
        let end = memchr::memrchr(b'\n', bytes).map_or(0, |at| at + 1);
        let (whole, rest) = bytes.split_at(end);
        if !whole.is_empty() {
            self.ready.append(&mut stream.rest);
            self.ready.extend_from_slice(whole);
        }
        stream.rest.extend_from_slice(rest);
        if stream.rest.len() > LONG_LINE {
            self.ready.append(&mut stream.rest);
        }
    }

    /// What comes next, or nothing more.
    fn next(&mut self) -> Option<Event> {
        let Some((since, _)) = self.exit else { return self.events.recv().ok() };
        if self.stdout.has_ended && self.stderr.has_ended {
            return None;
        }
        let left = AT_MOST.checked_sub(since.elapsed())?;
        match self.events.recv_timeout(QUIET.min(left)) {
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => None,
        }
    }

    /// Lines without an end come last: those of one stream must not be torn by the other.
    fn finish(&mut self) {
        self.is_over = true;
        if !(self.stdout.has_ended && self.stderr.has_ended) {
            let note = format!(
                "warplint: `{}` has ended, and something that it started holds its output open: what that prints from now \
                 on is not read\n",
                self.name
            );
            let _ = self.stderr.out.write_all(note.as_bytes());
        }
        self.ready.append(&mut self.stdout.rest);
        if !self.ready.is_empty() && !self.stderr.rest.is_empty() {
            self.ready.push(b'\n');
        }
        self.ready.append(&mut self.stderr.rest);
    }
}

impl Read for Merged<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.read == self.ready.len() {
            if self.is_over {
                return Ok(0);
            }
            self.ready.clear();
            self.read = 0;
            match self.next() {
                Some(event) => self.take(event),
                None => self.finish(),
            }
            self.lines += bytecount::count(&self.ready, b'\n');
            self.bytes += self.ready.len() as u64;
        }
        let left = &self.ready[self.read..];
        let count = left.len().min(buffer.len());
        buffer[..count].copy_from_slice(&left[..count]);
        self.read += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    struct Seen {
        log: String,
        stdout: String,
        stderr: String,
        end: (usize, u64),
    }

    /// What comes of `events`, after which the build has gone without a word.
    fn seen(leaves_stdout: bool, events: Vec<Event>) -> Seen {
        let (sender, receiver) = channel();
        events.into_iter().for_each(|event| sender.send(event).expect("received"));
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let mut merged = Merged::new(receiver, "make".to_owned(), leaves_stdout, &mut stdout, &mut stderr);
        let mut log = String::new();
        merged.read_to_string(&mut log).expect("text");
        let end = merged.end();
        let text = |bytes| String::from_utf8(bytes).expect("text");
        Seen { log, stdout: text(stdout), stderr: text(stderr), end }
    }

    fn bytes(from: From, text: &str) -> Event {
        Event::Bytes(from, text.as_bytes().to_vec())
    }

    #[test]
    fn lines_of_two_streams_follow_each_other_whole_and_each_stream_is_passed_on_as_it_is() {
        let events = vec![
            bytes(From::Stderr, "ptxas info    : Us"),
            bytes(From::Stdout, "[1/2] a.cu\n[2/"),
            bytes(From::Stderr, "ed 8 registers\nlast"),
            bytes(From::Stdout, "2] b.cu\nunfinished"),
            Event::End(From::Stdout),
            Event::End(From::Stderr),
            Event::Exit(None),
        ];
        let seen = seen(false, events);
        assert_eq!(
            seen.log, "[1/2] a.cu\nptxas info    : Used 8 registers\n[2/2] b.cu\nunfinished\nlast",
            "the lines that nobody ended come last"
        );
        assert_eq!(seen.stdout, "[1/2] a.cu\n[2/2] b.cu\nunfinished");
        assert_eq!(seen.stderr, "ptxas info    : Used 8 registers\nlast");
        assert_eq!(seen.end, (5, seen.log.len() as u64));
    }

    #[test]
    fn stdout_is_left_to_a_report_that_wants_it() {
        let events = vec![
            bytes(From::Stdout, "one\n"),
            bytes(From::Stderr, "two\n"),
            Event::End(From::Stdout),
            Event::End(From::Stderr),
            Event::Exit(None),
        ];
        let seen = seen(true, events);
        assert_eq!((seen.stdout.as_str(), seen.stderr.as_str(), seen.log.as_str()), ("", "one\ntwo\n", "one\ntwo\n"));
    }

    #[test]
    fn a_line_without_end_is_not_kept_without_end() {
        let long = "x".repeat(LONG_LINE / 4);
        let mut events: Vec<Event> = (0..9).map(|_| bytes(From::Stdout, &long)).collect();
        events.extend([Event::End(From::Stdout), Event::End(From::Stderr), Event::Exit(None)]);
        let (sender, receiver) = channel();
        events.into_iter().for_each(|event| sender.send(event).expect("received"));
        let (mut stdout, mut stderr) = (io::sink(), io::sink());
        let mut merged = Merged::new(receiver, "make".to_owned(), false, &mut stdout, &mut stderr);
        let mut buffer = vec![0; 4 * LONG_LINE];
        let first = merged.read(&mut buffer).expect("bytes");
        assert!(first > LONG_LINE && first <= LONG_LINE + long.len(), "{first}");
    }

    #[test]
    fn what_is_left_running_is_waited_for_only_so_long() {
        let start = Instant::now();
        let (sender, receiver) = channel();
        sender.send(bytes(From::Stdout, "built\n")).expect("received");
        sender.send(Event::Exit(None)).expect("received");
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let mut merged = Merged::new(receiver, "make".to_owned(), false, &mut stdout, &mut stderr);
        let mut log = String::new();
        merged.read_to_string(&mut log).expect("text");
        drop(sender);
        assert_eq!(log, "built\n");
        assert!(start.elapsed() >= QUIET && start.elapsed() < AT_MOST, "{:?}", start.elapsed());
        assert!(String::from_utf8_lossy(&stderr).contains("`make` has ended"), "the user is told");
    }
}
