//! The file: read with the place of whatever is wrong in it, and written so that a pull request shows what changed.
//!
//! One kernel a line, sorted, without dates, versions of warplint, folders and machines.

use std::io::{self, Write};
use std::ops::Range;

use hashbrown::HashMap;

use super::wire::{Document, FORMAT, Head, Object, WireFinding, WireKernel};
use super::{Baseline, Figures, Key};
use crate::model::{Toolkit, symbol};

/// The version of the file's form, and of the JSON report's.
const VERSION: u64 = 1;

/// Bytes that are read at most.
pub const MOST: u64 = 1 << 30;

/// What is said of a form that comes later.
const LATER: &str = "a form that comes later";

/// Bytes of a line that are shown around a fault.
const AROUND: usize = 40;

/// What is wrong with a file, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What kind of file it is instead.
    pub kind: FaultKind,
    /// What is wrong at the place.
    pub message: String,
    /// The line, from 1.
    pub line: u32,
    /// What the line has around the place, and the line before it where there is one, safe to print.
    pub text: String,
    /// The place in that text.
    pub span: Range<usize>,
}

/// How a file is unfit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// It is no JSON.
    NoJson,
    /// It is JSON, and something in it is not what it should be.
    Broken,
    /// It is JSON of something else.
    Foreign,
    /// A later warplint wrote it, in this version of the form.
    Newer(u64),
}

/// Whether a text that begins like `start` is JSON: an object, as our files are, begins with a brace, and no log does.
#[must_use]
pub fn looks_like_json(start: &[u8]) -> bool {
    let is_wide = start.starts_with(&[0xff, 0xfe]) || start.starts_with(&[0xfe, 0xff]);
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
    let mut letters = start.iter().skip(if is_wide { 2 } else { 0 }).filter(|byte| !(is_wide && **byte == 0));
    letters.find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{')
}

/// Reads a baseline.
///
/// # Errors
/// When it is none: what is wrong, at its place.
pub fn read(content: &[u8]) -> Result<Baseline, Fault> {
    parse(content, true).map(|(baseline, _)| baseline)
}

/// Reads the kernels of a baseline, of a JSON report, or of what `kernels` prints as JSON; and counts those whose figures may
/// be another's, which are left out.
///
/// # Errors
/// When it is none of these: what is wrong, at its place.
pub fn read_any(content: &[u8]) -> Result<(Baseline, usize), Fault> {
    parse(content, false)
}

fn parse(content: &[u8], only_baseline: bool) -> Result<(Baseline, usize), Fault> {
    let wide = utf8_of(content);
    let content = wide.as_deref().map_or(content, str::as_bytes);
    let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
    let document = match serde_json::from_slice(content) {
        Ok(Object::<Document>(document)) => document,
        Err(error) => return Err(fault(content, &error)),
    };
    let foreign = |message: &str| Err(whole(content, FaultKind::Foreign, message));
    let is_baseline = document.format.as_deref() == Some(FORMAT);
    match (document.version, document.kernels) {
        (Some(newer), _) if newer > VERSION => Err(whole(content, FaultKind::Newer(newer), LATER)),
        (Some(VERSION), _) if only_baseline && !is_baseline => foreign("this has no `format` of a baseline"),
        (Some(VERSION), Some(kernels)) => {
            let mut baseline = Baseline { kernels: kernels.all, ..Baseline::default() };
            if is_baseline {
                for figures in baseline.kernels.values_mut().flatten() {
                    figures.toolkit = figures.toolkit.or(document.toolkit);
                }
                for (accepted, count) in document.findings.0 {
                    let known = baseline.findings.entry(accepted).or_default();
                    *known = known.saturating_add(count);
                }
            } else {
                // A report does not tell it.
                baseline.kernels.values_mut().flatten().for_each(|figures| figures.linked = None);
            }
            Ok((baseline, kernels.ambiguous))
        }
        (Some(VERSION), None) => foreign("this has no `kernels`"),
        _ => foreign("this has no `version` of warplint's files"),
    }
}

/// UTF-16, which PowerShell makes of whatever it redirects, as UTF-8.
fn utf8_of(content: &[u8]) -> Option<String> {
    let unit: fn([u8; 2]) -> u16 = match content.get(..2)? {
        [0xff, 0xfe] => u16::from_le_bytes,
        [0xfe, 0xff] => u16::from_be_bytes,
        _ => return None,
    };
    let units = content[2..].chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    Some(char::decode_utf16(units).map(|read| read.unwrap_or(char::REPLACEMENT_CHARACTER)).collect())
}

fn fault(content: &[u8], error: &serde_json::Error) -> Fault {
    let told = error.to_string();
    let message = told.rsplit_once(" at line ").map_or(told.as_str(), |(message, _)| message);
    let message = &in_words(message);
    // A later version may say the same otherwise.
    let later = serde_json::from_slice::<Object<Head>>(content)
        .ok()
        .and_then(|Object(head)| head.version)
        .filter(|one| *one > VERSION);
    if let Some(version) = later {
        return whole(content, FaultKind::Newer(version), LATER);
    }
    let kind = if error.is_data() { FaultKind::Broken } else { FaultKind::NoJson };
    at(content, kind, message, error.line(), error.column())
}

/// What serde says, without the names that things have in this program.
fn in_words(message: &str) -> String {
    let whole = [("u64", u64::MAX), ("u32", u32::MAX.into())]
        .map(|(name, most)| (format!("expected {name}"), format!("expected a whole number from 0 to {most}")));
    let ends = ("EOF while parsing".to_owned(), "the file ends within".to_owned());
    whole.into_iter().chain([ends]).fold(message.to_owned(), |text, (name, words)| text.replacen(&name, &words, 1))
}

fn whole(content: &[u8], kind: FaultKind, message: &str) -> Fault {
    at(content, kind, message, 1, 1)
}

/// A fault at a byte of a line, both from 1.
fn at(content: &[u8], kind: FaultKind, message: &str, line: usize, column: usize) -> Fault {
    let start = match line.checked_sub(2) {
        Some(feeds) => memchr::memchr_iter(b'\n', content).nth(feeds).map_or(content.len(), |at| at + 1),
        None => 0,
    };
    let text = &content[start..];
    let text = &text[..memchr::memchr(b'\n', text).unwrap_or(text.len())];
    let place = column.saturating_sub(1).min(text.len());
    let clean = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).replace(['\t', '\r'], " ");
        symbol::printable(&text).into_owned()
    };
    let lines_before = &content[..start.saturating_sub(1)];
    let last = memchr::memrchr(b'\n', lines_before).map_or(0, |feed| feed + 1);
    let above = &lines_before[last..lines_before.len().min(last + 2 * AROUND)];
    let above = if start > 0 { format!("{}\n", clean(above)) } else { String::new() };
    let before = above + &clean(&text[place.saturating_sub(AROUND)..place]);
    let mark = clean(&text[place..text.len().min(place + 1)]);
    let after = clean(&text[text.len().min(place + 1)..text.len().min(place + AROUND)]);
    let span = before.len()..before.len() + mark.len();
    let message = symbol::printable(&symbol::cut_middle(message, 200)).into_owned();
    Fault { kind, message, line: u32::try_from(line.max(1)).unwrap_or(u32::MAX), text: before + &mark + &after, span }
}

/// Writes a baseline.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write(baseline: &Baseline, out: &mut dyn Write) -> io::Result<()> {
    let usual = usual_toolkit(baseline);
    writeln!(out, "{{\n  \"version\": {VERSION},\n  \"format\": \"{FORMAT}\",")?;
    if let Some(toolkit) = usual {
        writeln!(out, "  \"toolkit\": \"{toolkit}\",")?;
    }
    let mut kernels: Vec<(&Key, &Figures)> =
        baseline.kernels.iter().flat_map(|(key, all)| all.iter().map(move |one| (key, one))).collect();
    kernels.sort_by(|(key, one), (other_key, other)| {
        key.cmp(other_key).then_with(|| (one.numbers(), one.records).cmp(&(other.numbers(), other.records)))
    });
    list("kernels", kernels, ",", out, |(key, figures)| WireKernel::new(key, figures, usual))?;
    list("findings", &baseline.findings, "", out, |(accepted, count)| WireFinding::new(accepted, *count))?;
    writeln!(out, "}}")
}

/// One item a line.
fn list<T, W: serde::Serialize>(
    key: &str,
    items: impl IntoIterator<Item = T>,
    after: &str,
    out: &mut dyn Write,
    wire: impl Fn(T) -> W,
) -> io::Result<()> {
    write!(out, "  \"{key}\": [")?;
    let mut separator = "\n    ";
    for item in items {
        out.write_all(separator.as_bytes())?;
        serde_json::to_writer(&mut *out, &wire(item)).map_err(io::Error::from)?;
        separator = ",\n    ";
    }
    let end = if separator.starts_with(',') { "\n  ]" } else { "]" };
    writeln!(out, "{end}{after}")
}

/// The toolkit of most kernels: it stands once. Where some have none, each has its own.
fn usual_toolkit(baseline: &Baseline) -> Option<Toolkit> {
    let mut counts: HashMap<Toolkit, usize> = HashMap::new();
    for figures in baseline.kernels.values().flatten() {
        *counts.entry(figures.toolkit?).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(toolkit, count)| (*count, *toolkit)).map(|(toolkit, _)| toolkit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::baseline::{Accepted, From, LaunchFigures};
    use crate::finding::Level;
    use crate::model::{BlockSize, Bytes};

    fn sample() -> Baseline {
        let figures = |registers: u32, toolkit: &str| Figures {
            name: Some("_Z1kPf".into()),
            registers: Some(registers),
            spill_stores: Some(Bytes(16)),
            spill_loads: Some(Bytes(20)),
            stack: Some(Bytes(16)),
            static_shared: Some(Bytes(0)),
            records: 1,
            toolkit: toolkit.parse().ok(),
            launches: vec![LaunchFigures {
                gpu: "sm_80".into(),
                block: BlockSize { x: 16, y: 16, z: 1 },
                source: crate::analyse::BlockSource::Option,
                dynamic_shared: Some(Bytes(1024)),
                occupancy: 0.75,
            }],
            ..Figures::default()
        };
        let key = |name: &str, arch: &str| Key { kernel: name.into(), arch: arch.parse().ok() };
        let mut baseline = Baseline::default();
        baseline.kernels.insert(key("_Z1kPf", "sm_80"), vec![figures(40, "13.0"), figures(32, "13.0")]);
        baseline.kernels.insert(key("_Z1kPf", "sm_90a"), vec![figures(32, "12.4")]);
        let accepted = |rule: &str, cap| Accepted {
            kernel: Some("_Z1kPf".into()),
            arch: "sm_80".parse().ok(),
            rule: rule.into(),
            gpu: None,
            path: None,
            from: From::Log,
            fingerprint: None,
            cap,
            severity: (cap == Level::Note).then_some(107),
        };
        baseline.findings.insert(accepted("register-spill", Level::Deny), 1);
        baseline.findings.insert(accepted("register-cliff", Level::Note), 2);
        baseline
    }

    fn text(baseline: &Baseline) -> String {
        let mut out = Vec::new();
        write(baseline, &mut out).expect("memory");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn what_is_written_is_read_and_written_alike() {
        let written = text(&sample());
        let read = read(written.as_bytes()).expect("a baseline");
        assert_eq!(text(&read), written);
        assert_eq!(read.findings, sample().findings);
        assert_eq!((read.kernel_count(), read.finding_count()), (3, 3));
        let toolkits: Vec<_> = read.kernels.values().flatten().filter_map(|one| one.toolkit).collect();
        assert_eq!(toolkits.len(), 3);
        assert_eq!(written.lines().filter(|line| line.contains("\"toolkit\":\"12.4\"")).count(), 1, "{written}");
        let registers: Vec<&str> = written.lines().filter(|line| line.contains("sm_80\",\"dem")).collect();
        assert!(registers[0].contains("\"registers\":32") && registers[1].contains("\"registers\":40"), "{written}");
    }

    #[test]
    fn powershell_and_editors_may_have_saved_it() {
        let written = text(&sample());
        let wide: Vec<u8> = [0xfeff].into_iter().chain(written.encode_utf16()).flat_map(u16::to_le_bytes).collect();
        let marked = ["\u{feff}", &written].concat();
        for content in [wide.as_slice(), marked.as_bytes()] {
            assert!(looks_like_json(content));
            assert_eq!(read(content).as_ref().map(text).as_deref(), Ok(written.as_str()));
        }
        assert!(!looks_like_json(b"ptxas info    : {"));
    }

    #[test]
    fn faults_are_told_at_their_place() {
        let fault = |text: &str| {
            let fault = read(text.as_bytes()).expect_err(text);
            (fault.kind, fault.message, fault.line, fault.text[fault.span].to_owned())
        };
        let base = "{\"version\": 1, \"format\": \"warplint-baseline\",\n";
        let with = |rest: &str| fault(&format!("{base}{rest}"));
        let (kind, message, line, mark) = with("\"kernels\": [{\"kernel\": \"k\", \"arch\": 3}]}");
        assert_eq!((kind, line, mark.as_str()), (FaultKind::Broken, 2, "3"), "{message}");
        assert!(message.starts_with("invalid type"), "{message}");
        assert_eq!(with("\"kernels\": [}").0, FaultKind::NoJson);
        assert_eq!(with("\"kernels\": [").0, FaultKind::NoJson);
        for wrong in [
            "\"arch\": \"sm_x\"",
            "\"registers\": -1",
            "\"registers\": 99999999",
            "\"registers\": 1.5",
            "\"occupancy\": [{\"gpu\": \"x\", \"block\": [0,1,1], \"occupancy\": 1}]",
            "\"occupancy\": [{\"gpu\": \"x\", \"block\": [1,1,1], \"occupancy\": 7}]",
            "\"toolkit\": \"new\"",
        ] {
            assert_eq!(
                with(&format!("\"kernels\": [{{\"kernel\": \"k\", {wrong}}}]}}")).0,
                FaultKind::Broken,
                "{wrong}"
            );
        }
        for (text, kind) in [
            ("{}", FaultKind::Foreign),
            ("{\"version\": 1, \"kernels\": []}", FaultKind::Foreign),
            ("{\"version\": 2, \"kernels\": 3}", FaultKind::Newer(2)),
            ("{\"version\": 2, \"format\": \"warplint-baseline\", \"kernels\": []}", FaultKind::Newer(2)),
            ("", FaultKind::NoJson),
            ("[1]", FaultKind::Broken),
        ] {
            assert_eq!(fault(text).0, kind, "{text}");
        }
        let deep = format!("{base}\"kernels\": {}", "[".repeat(1_000_000));
        assert_eq!(fault(&deep).0, FaultKind::Broken);
        let ignored = format!("{base}\"other\": {}", "[".repeat(1_000_000));
        assert_eq!(fault(&ignored).0, FaultKind::NoJson);
    }

    #[test]
    fn a_fault_in_a_line_without_an_end_shows_what_is_around_it() {
        let text = format!("{{\"version\": 1, \"kernels\": [{}\u{1b}[2J", " ".repeat(100_000));
        let fault = read(text.as_bytes()).expect_err("broken");
        assert!(fault.text.len() < 200 && !fault.text.contains('\u{1b}'), "{fault:?}");
    }
}
