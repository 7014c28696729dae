//! How far a long reading is: one line on a terminal, written over, of which nothing is left in the end.

use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

use crate::model::symbol;

/// What takes less is over before anyone asks.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long a line stands at least: nobody reads faster.
const PAUSE: Duration = Duration::from_millis(100);
/// Longest name that is shown whole.
const LONG_NAME: usize = 40;

/// To the first column, and everything on the line away.
const CLEAR: &str = "\r\u{1b}[2K";

/// Passes bytes on, and tells a terminal how many, while that takes long.
pub struct Metered<'s, 't> {
    source: &'s mut dyn Read,
    /// `None` where nobody would see it.
    meter: Option<Meter<'t>>,
}

impl<'s, 't> Metered<'s, 't> {
    /// Reads `source`, which is called `name` and has `size` bytes where that is known; tells `terminal` if there is one.
    pub fn new(
        source: &'s mut dyn Read,
        name: &str,
        size: Option<u64>,
        terminal: Option<&'t mut dyn Write>,
    ) -> Metered<'s, 't> {
        let meter = terminal.map(|terminal| Meter {
            terminal,
            name: symbol::cut_middle(&symbol::printable(name), LONG_NAME).into_owned(),
            size: size.filter(|size| *size > 0),
            read: 0,
            start: Instant::now(),
            shown: None,
        });
        Metered { source, meter }
    }
}

impl Read for Metered<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        if let Some(meter) = &mut self.meter {
            meter.add(read, Instant::now());
        }
        Ok(read)
    }
}

impl Drop for Metered<'_, '_> {
    fn drop(&mut self) {
        if let Some(meter) = &mut self.meter {
            meter.clear();
        }
    }
}

struct Meter<'a> {
    terminal: &'a mut dyn Write,
    name: String,
    size: Option<u64>,
    read: u64,
    start: Instant,
    /// When the line was written last.
    shown: Option<Instant>,
}

impl Meter<'_> {
    fn add(&mut self, bytes: usize, now: Instant) {
        self.read += bytes as u64;
        let due = self.shown.map_or(self.start + PATIENCE, |shown| shown + PAUSE);
        if now < due {
            return;
        }
        self.shown = Some(now);
        let line = format!("{CLEAR}reading {}: {}", self.name, self.so_far());
        // A terminal that is gone must not stop a lint.
        let _ = self.terminal.write_all(line.as_bytes()).and_then(|()| self.terminal.flush());
    }

    fn so_far(&self) -> String {
        match self.size {
            Some(size) if size >= self.read => {
                format!("{} % of {}", self.read.saturating_mul(100) / size, amount(size))
            }
            // A log that grows while it is read, or a pipe.
            _ => amount(self.read),
        }
    }

    fn clear(&mut self) {
        if self.shown.take().is_some() {
            let _ = self.terminal.write_all(CLEAR.as_bytes()).and_then(|()| self.terminal.flush());
        }
    }
}

/// `734 MB`, `2.9 GB`
fn amount(bytes: u64) -> String {
    const MB: u64 = 1_000_000;
    if bytes < 1000 * MB { format!("{} MB", bytes / MB) } else { format!("{:.1} GB", bytes as f64 / 1e9) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a terminal gets while `steps` of so many bytes come after so many milliseconds.
    fn shown(size: Option<u64>, steps: &[(u64, usize)]) -> String {
        let mut terminal = Vec::new();
        let mut nothing = io::empty();
        let mut metered = Metered::new(&mut nothing, "build\u{1b}.log", size, Some(&mut terminal));
        let meter = metered.meter.as_mut().expect("a terminal");
        let start = meter.start;
        for (after, bytes) in steps {
            meter.add(*bytes, start + Duration::from_millis(*after));
        }
        drop(metered);
        String::from_utf8(terminal).expect("text").replace(CLEAR, "|")
    }

    #[test]
    fn what_is_quick_shows_nothing() {
        assert_eq!(shown(Some(5_000_000), &[(10, 4_000_000), (499, 1_000_000)]), "");
    }

    #[test]
    fn a_long_reading_is_told_now_and_then_and_leaves_nothing() {
        let steps = [(400, 300_000_000), (600, 400_000_000), (650, 10_000_000), (710, 20_000_000)];
        let name = "reading build\\u{1b}.log: ";
        assert_eq!(shown(Some(2_900_000_000), &steps), format!("|{name}24 % of 2.9 GB|{name}25 % of 2.9 GB|"));
        assert_eq!(shown(None, &steps), format!("|{name}700 MB|{name}730 MB|"));
    }

    #[test]
    fn a_log_that_grows_has_no_share() {
        assert_eq!(shown(Some(1), &[(600, 1_500_000_000)]), "|reading build\\u{1b}.log: 1.5 GB|");
    }

    #[test]
    fn without_a_terminal_the_bytes_are_only_passed_on() {
        let mut text = &b"a log"[..];
        let mut read = String::new();
        Metered::new(&mut text, "x", None, None).read_to_string(&mut read).expect("text");
        assert_eq!(read, "a log");
    }
}
