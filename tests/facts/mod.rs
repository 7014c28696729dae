//! What warplint makes of a log, as text that a person can hold against the log, and that two readings can be compared by.

use std::fmt::Write as _;
use std::io::Read;

use warplint::join::join;
use warplint::model::{Bytes, Kernel, Kind, Message, Place, Report};
use warplint::parse::{Echo, EchoMode, read_log};

/// Longest name or text that is shown whole.
const LONG: usize = 400;

/// A log as read, and the lines that were passed on.
pub(crate) struct Reading {
    /// The facts.
    pub(crate) report: Report,
    /// What is no resource report.
    pub(crate) echoed: Vec<u8>,
}

/// Reads `log`, without joining the linker's figures to the compiler's.
pub(crate) fn read_unjoined(log: &mut dyn Read) -> Reading {
    let mut report = Report::default();
    let mut echoed = Vec::new();
    read_log(log, "input.log", &mut report, &mut Echo::new(EchoMode::Others, &mut echoed))
        .expect("the log is readable");
    Reading { report, echoed }
}

/// Reads `log` as `warplint` does.
pub(crate) fn read(mut log: &[u8]) -> Reading {
    let mut reading = read_unjoined(&mut log);
    join(&mut reading.report, &[]);
    reading
}

/// Every kernel, one a line, with the lines that it was read from.
pub(crate) fn kernels(report: &Report) -> String {
    report.kernels.iter().fold(String::new(), |mut text, one| {
        let _ = writeln!(text, "{} {}", kernel(report, one), evidence(one));
        text
    })
}

/// Every message, one a line, with the line where it stands first.
pub(crate) fn messages(report: &Report) -> String {
    report.messages.iter().fold(String::new(), |mut text, one| {
        let _ = writeln!(text, "{} @ line {}", message(report, one), one.place.line);
        text
    })
}

/// One kernel without its place. What is not known is `?`.
pub(crate) fn kernel(report: &Report, kernel: &Kernel) -> String {
    let figures = &kernel.resources;
    let kind = match kernel.kind {
        Kind::Entry => "entry",
        Kind::Function => "function",
    };
    let name = kernel.name.map_or_else(|| "?".to_owned(), |name| shown(report.names.get(name)));
    let arch = kernel.arch.map_or_else(|| "?".to_owned(), |arch| arch.to_string());
    let bytes = |value: Option<Bytes>| known(value.map(Bytes::get));
    let banks = figures.constant.as_ref().map(|banks| {
        banks.iter().fold(String::from("["), |text, (bank, size)| format!("{text} {bank}:{}", size.get())) + " ]"
    });
    let mut text = format!(
        "{kind} {name} {arch}: {} registers, {} barriers, stack {}, cumulative {}, spills {}+{}, shared {}, local {}, constant {}, textures {}/{}/{}, {} ms",
        known(figures.registers),
        known(figures.barriers),
        bytes(figures.stack),
        bytes(figures.cumulative_stack),
        bytes(figures.spill_stores),
        bytes(figures.spill_loads),
        bytes(figures.static_shared),
        bytes(figures.local),
        known(banks),
        known(figures.textures),
        known(figures.surfaces),
        known(figures.samplers),
        known(figures.compile_time_ms),
    );
    for (is, word) in [(kernel.ambiguous, "ambiguous"), (kernel.unbounded_stack, "unbounded")] {
        if is {
            let _ = write!(text, ", {word}");
        }
    }
    if kernel.records != 1 {
        let _ = write!(text, ", {} records", kernel.records);
    }
    text
}

/// One message without its place.
pub(crate) fn message(report: &Report, message: &Message) -> String {
    let kernel = message.kernel.map_or_else(|| "-".to_owned(), |name| shown(report.names.get(name)));
    let arch = message.arch.map(|arch| format!(" {arch}")).unwrap_or_default();
    format!("{:?} {kernel}{arch} x{}: {}", message.kind, message.count, shown(&report.said(message)))
}

fn evidence(kernel: &Kernel) -> String {
    let line = |place: Option<Place>| known(place.map(|place| place.line));
    let evidence = &kernel.evidence;
    format!(
        "@ name {}, frame {}, usage {}",
        line(evidence.name),
        line(evidence.frame.map(|quote| quote.place)),
        line(evidence.usage.map(|quote| quote.place))
    )
}

fn known<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "?".to_owned(), |value| value.to_string())
}

/// A name or line of any bytes on one line, the middle of a very long one left out.
pub(crate) fn shown(text: &[u8]) -> String {
    if text.len() > LONG {
        let (head, tail) = (&text[..LONG / 2], &text[text.len() - 40..]);
        return format!("{}…({} bytes)…{}", head.escape_ascii(), text.len(), tail.escape_ascii());
    }
    String::from_utf8_lossy(text)
        .chars()
        .flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] })
        .collect()
}
