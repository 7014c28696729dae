//! A build and the signals that are meant for it: each reaches every process of the build once, and warplint stays to report.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, getpgrp, tcgetpgrp};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

/// How long after the end of the build a signal is still the one that ended it.
const SAME: Duration = Duration::from_millis(500);

/// A build that runs.
pub(super) struct Running {
    pub(super) child: Child,
    signals: Signals,
    reach: Reach,
}

/// Whom a signal is sent to.
#[derive(Debug, Clone, Copy)]
enum Reach {
    /// The build has a process group of its own.
    Group(Pid),
    /// The build shares the foreground of a terminal, which sends ^C to all of it; it may also ask there for a password.
    Terminal(Pid),
}

/// Starts a build, with the signals under control before it is there.
pub(super) fn start(mut command: Command) -> io::Result<Running> {
    let handled = [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|signal| !is_ignored(*signal));
    let signals = Signals::new(handled.chain([SIGCHLD]))?;
    let shares = is_in_foreground();
    if !shares {
        command.process_group(0);
    }
    let child = command.spawn()?;
    let pid = Pid::from_raw(i32::try_from(child.id()).map_err(io::Error::other)?);
    let reach = if shares { Reach::Terminal(pid) } else { Reach::Group(pid) };
    Ok(Running { child, signals, reach })
}

/// Whether this process is of the group that a terminal sends its signals to.
fn is_in_foreground() -> bool {
    File::open("/dev/tty").is_ok_and(|terminal| tcgetpgrp(terminal).is_ok_and(|group| group == getpgrp()))
}

/// Whether whoever started warplint wants the signal to be ignored, as `nohup` does. Only Linux tells; elsewhere it counts.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

impl Running {
    /// Waits for the end of the build, and tells it; goes on for signals that come later.
    pub(super) fn supervise(mut self, tell: impl Fn(Option<ExitStatus>)) {
        let mut ended: Option<Instant> = None;
        let mut signalled = 0;
        for signal in self.signals.forever() {
            match ended {
                None if signal == SIGCHLD => {
                    let status = match self.child.try_wait() {
                        Ok(None) => continue,
                        Ok(status) => status,
                        Err(_) => None,
                    };
                    ended = Some(Instant::now());
                    if signalled > 0 {
                        self.reach.end_the_rest();
                    }
                    tell(status);
                }
                None => {
                    signalled += 1;
                    self.reach.forward(signal, signalled);
                }
                Some(since) if signal == SIGCHLD || since.elapsed() < SAME => {}
                // The report takes too long for someone, or goes nowhere.
                Some(_) => drop(emulate_default_handler(signal)),
            }
        }
    }
}

impl Reach {
    /// Sends `signal` on, which is the `count`th. The build may be gone.
    fn forward(self, signal: i32, count: usize) {
        let Ok(signal) = Signal::try_from(signal) else { return };
        let _ = match self {
            // What is stopped would take it only when someone lets it go on.
            Reach::Group(group) => killpg(group, signal).and_then(|()| killpg(group, Signal::SIGCONT)),
            // The terminal has sent it to the build too, unless it came from elsewhere: then it comes again.
            Reach::Terminal(_) if signal == Signal::SIGINT && count == 1 => Ok(()),
            Reach::Terminal(build) => kill(build, signal).and_then(|()| kill(build, Signal::SIGCONT)),
        };
    }

    /// Processes of the build that did not end with it when it was told to end.
    fn end_the_rest(self) {
        if let Reach::Group(group) = self {
            let _ = killpg(group, Signal::SIGTERM);
        }
    }
}

/// `signal 9 (SIGKILL)`
pub(super) fn signal_name(signal: i32) -> String {
    match Signal::try_from(signal) {
        Ok(name) => format!("signal {signal} ({name})"),
        Err(_) => format!("signal {signal}"),
    }
}
