//! Laws of reading that hold for every log.

// A failed expectation is how a test reports.
#![allow(clippy::unwrap_used)]
// Each test program uses a part of them.
#[allow(dead_code)]
mod facts;
#[allow(dead_code)]
mod generated;

use std::io::{self, Read};
use std::path::Path;
use std::sync::LazyLock;

use generated::{ERAS, Era, Made};
use proptest::prelude::*;
use proptest::sample::{Index, select};

const ARCHS: &[&str] = &["sm_52", "sm_80", "sm_90a", "sm_103", "sm_120f"];

/// What build systems put before every line.
const PREFIXES: [&str; 10] = [
    "1>",
    "1>  ",
    "2026-03-04T05:00:00.0022657Z ",
    "#17 12.34 ",
    "[2026-03-04T05:00:00.002Z] ",
    "warning: kernels@0.1.0: ",
    "      ",
    "** ",
    "// ",
    "> ",
];

/// Lines of other tools, none of which says anything of a kernel.
const FOREIGN: [&str; 10] = [
    "[ 25%] Building CXX object src/a.cpp.o",
    "make[2]: Entering directory '/build'",
    "src/a.cpp:10:5: warning: unused variable ‘x’ [-Wunused-variable]",
    "   10 |     int x = 4 : 5;",
    "",
    "g++ -O2 -c a.cpp -o a.o",
    "\u{1b}[32m[3/9] Linking\u{1b}[0m",
    "ptxas info    : Processing _Z5otherPf",
    "test result: 12 passed : 0 failed",
    "note: see the manual: https://example.com/?a=1&b=2",
];

fn fixture(path: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(path).join("input.log")).unwrap()
}

/// Real logs of every kind.
static LOGS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    [
        "ptxas/13.5/nvlink-unknown-stack",
        "ptxas/13.5/res-usage-two-archs",
        "ptxas/13.5/cmake-ninja-terminal",
        "ptxas/13.5/interleaved-four-processes",
        "ptxas/13.5/warn-spills",
        "ptxas/13.5/piped-through-cxxfilt",
        "ptxas/13.5/wgmma-serialised",
        "ptxas/13.5/semantic-errors",
        "ptxas/nvjitlink-12.9/stack-sm80",
        "wild/054-minnctapersm-warning",
        "wild/012-vs-tight-prefix-crlf-gbk",
        "wild/005-forum-curly-quotes",
    ]
    .map(fixture)
    .into()
});

/// Gives out its bytes in pieces of the given sizes, over and over.
struct Pieces<'b> {
    bytes: &'b [u8],
    sizes: Vec<usize>,
    next: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let size = self.sizes[self.next % self.sizes.len()].min(out.len()).min(self.bytes.len());
        self.next += 1;
        out[..size].copy_from_slice(&self.bytes[..size]);
        self.bytes = &self.bytes[size..];
        Ok(size)
    }
}

fn facts_of(log: &[u8]) -> String {
    let reading = facts::read(log);
    facts::kernels(&reading.report) + &facts::messages(&reading.report)
}

/// Facts without the lines that they stand on.
fn bare_facts(log: &[u8]) -> Vec<String> {
    let report = facts::read(log).report;
    let kernels = report.kernels.iter().map(|kernel| facts::kernel(&report, kernel));
    kernels.chain(report.messages.iter().map(|message| facts::message(&report, message))).collect()
}

fn era() -> impl Strategy<Value = Era> {
    select(&ERAS[..])
}

fn kernels(most: usize) -> impl Strategy<Value = Vec<Made>> {
    prop::collection::vec(generated::kernel(ARCHS), 1..most)
}

/// The log of one ptxas run for each kernel.
fn records(kernels: &[Made], era: Era) -> Vec<String> {
    let module = || "ptxas info    : 0 bytes gmem\n".to_owned();
    kernels.iter().flat_map(|kernel| [module()].into_iter().chain(kernel.records(era))).collect()
}

/// One change that a log may suffer.
#[derive(Debug, Clone)]
enum Damage {
    Flip(Index, u8),
    Cut(Index, Index),
    Twice(Index),
    Swap(Index, Index),
    Insert(Index, Vec<u8>),
    /// The write of a long record ended here, and another's came between.
    Tear(Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<Index>;
    prop_oneof![
        (at(), any::<u8>()).prop_map(|(at, byte)| Damage::Flip(at, byte)),
        (at(), at()).prop_map(|(from, to)| Damage::Cut(from, to)),
        at().prop_map(Damage::Twice),
        (at(), at()).prop_map(|(one, other)| Damage::Swap(one, other)),
        (at(), prop::collection::vec(any::<u8>(), 0..40)).prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
        at().prop_map(Damage::Tear),
    ]
}

fn damaged(mut log: Vec<u8>, damages: &[Damage]) -> Vec<u8> {
    for damage in damages.iter().filter(|_| !log.is_empty()).cloned().collect::<Vec<Damage>>() {
        if log.is_empty() {
            break;
        }
        let length = log.len();
        match damage {
            Damage::Flip(at, byte) => log[at.index(length)] ^= byte,
            Damage::Cut(one, other) => {
                let (from, to) = (one.index(length), other.index(length));
                log.drain(from.min(to)..from.max(to).min(from.min(to) + 500));
            }
            Damage::Twice(at) => {
                on_lines(&mut log, |lines| lines.insert(at.index(lines.len()), lines[at.index(lines.len())].clone()))
            }
            Damage::Swap(one, other) => on_lines(&mut log, |lines| {
                let (one, other) = (one.index(lines.len()), other.index(lines.len()));
                lines.swap(one, other);
            }),
            Damage::Insert(at, bytes) => drop(log.splice(at.index(length)..at.index(length), bytes)),
            Damage::Tear(at) => {
                let record = b"ptxas info    : Compiling entry function '_Z1tPf' for 'sm_80'\n".to_vec();
                log.splice(at.index(length)..at.index(length), record);
            }
        }
    }
    log
}

fn on_lines(log: &mut Vec<u8>, change: impl FnOnce(&mut Vec<Vec<u8>>)) {
    let mut lines: Vec<Vec<u8>> = log.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    change(&mut lines);
    *log = lines.concat();
}

/// Few enough for every run of the tests; the environment may ask for more.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(96)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read(log in prop::collection::vec(any::<u8>(), 0..2000)) {
        let reading = facts::read(&log);
        prop_assert_eq!(reading.report.inputs.len(), 1);
    }

    #[test]
    fn a_damaged_log_is_read_and_its_facts_do_not_depend_on_how_it_comes_in_pieces(
        which in any::<Index>(),
        damages in prop::collection::vec(damage(), 0..6),
        sizes in prop::collection::vec(select(&[1_usize, 2, 3, 7, 64, 4096, 70_000][..]), 1..5),
    ) {
        let log = damaged(LOGS[which.index(LOGS.len())].clone(), &damages);
        let mut reading = facts::read_unjoined(&mut Pieces { bytes: &log, sizes, next: 0 });
        warplint::join::join(&mut reading.report, &[]);
        prop_assert_eq!(facts::kernels(&reading.report) + &facts::messages(&reading.report), facts_of(&log));
        let whole = facts::read(&log).report;
        prop_assert_eq!(&reading.report.inputs, &whole.inputs);
    }

    #[test]
    fn what_ptxas_prints_of_a_kernel_is_read_back(kernels in kernels(8), era in era()) {
        let log = records(&kernels, era).concat();
        let mut expected: Vec<String> = kernels.iter().map(|kernel| kernel.facts(era)).collect();
        expected.dedup();
        prop_assert_eq!(bare_facts(log.as_bytes()), expected);
    }

    #[test]
    fn lines_of_other_tools_change_no_fact(
        kernels in kernels(6),
        era in era(),
        places in prop::collection::vec((any::<Index>(), select(&FOREIGN[..])), 0..12),
    ) {
        let plain = records(&kernels, era);
        let mut mixed = plain.clone();
        for (at, line) in places {
            mixed.insert(at.index(mixed.len() + 1), format!("{line}\n"));
        }
        prop_assert_eq!(bare_facts(mixed.concat().as_bytes()), bare_facts(plain.concat().as_bytes()));
    }

    #[test]
    fn a_prefix_before_every_line_changes_no_fact(
        kernels in kernels(6),
        era in era(),
        prefix in select(&PREFIXES[..]),
        end in select(&["\n", "\r\n"][..]),
    ) {
        let plain = records(&kernels, era).concat();
        let prefixed: String = plain.lines().map(|line| format!("{prefix}{line}{end}")).collect();
        prop_assert_eq!(bare_facts(prefixed.as_bytes()), bare_facts(plain.as_bytes()));
    }

    #[test]
    fn two_halves_give_what_the_whole_gives(one in kernels(5), other in kernels(5), era in era()) {
        let (first, second) = (records(&one, era).concat(), records(&other, era).concat());
        // What both halves say of a kernel is one fact of the whole.
        prop_assume!(one.iter().all(|kernel| !other.contains(kernel)));
        let halves = [bare_facts(first.as_bytes()), bare_facts(second.as_bytes())].concat();
        prop_assert_eq!(bare_facts((first + &second).as_bytes()), halves);
    }

    #[test]
    fn a_terminal_that_breaks_lines_changes_no_fact(
        kernels in kernels(4),
        era in era(),
        width in select(&[72_usize, 80, 100, 120][..]),
    ) {
        // Where a blank stood at the end of a line, a name that holds blanks cannot be put together again.
        let kernels: Vec<Made> = kernels.into_iter().filter(|kernel| !kernel.name.contains(' ')).collect();
        let plain = records(&kernels, era).concat();
        let broken: String = plain.lines().map(|line| wrapped(line, width)).collect();
        prop_assert_eq!(bare_facts(broken.as_bytes()), bare_facts(plain.as_bytes()), "{}", broken);
    }
}

/// What one copies from a terminal: lines that are broken at its width, without blanks at their ends.
fn wrapped(line: &str, width: usize) -> String {
    let bytes = line.as_bytes();
    bytes.chunks(width).map(|piece| format!("{}\n", String::from_utf8_lossy(piece).trim_end())).collect()
}
