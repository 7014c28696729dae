//! Every era of ptxas behind every build system, with one to four compilers that write into one log at a time, and the
//! damage that logs take: no fact is wrong, and no more is in doubt than the log leaves open.

// A failed expectation is how a test reports.
#![allow(clippy::unwrap_used)]
// Each test program uses a part of them.
#[allow(dead_code)]
mod facts;
#[allow(dead_code)]
mod generated;

use std::collections::BTreeSet;

use generated::{ERAS, Era, Made};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use warplint::model::{Kernel, Kind, Report};

/// Kernels that one compiler reports, and compilers of one log.
const KERNELS: usize = 7;
const COMPILERS: usize = 8;

/// How the lines of a build system look: what stands before each, and what it says of a step.
struct Wrap {
    name: &'static str,
    before: &'static str,
    /// Before the line of a frame, where that is another.
    before_frame: Option<&'static str>,
    step: Option<&'static str>,
}

const fn wrap(name: &'static str, before: &'static str, step: Option<&'static str>) -> Wrap {
    Wrap { name, before, before_frame: None, step }
}

/// `{n}` is a number that grows from line to line.
const WRAPS: [Wrap; 11] = [
    wrap("none", "", None),
    wrap("make", "", Some("nvcc -O3 -Xptxas -v -c src/tu{n}.cu -o build/tu{n}.o")),
    wrap("ninja", "", Some("[{n}/40] Building CUDA object CMakeFiles/lib.dir/src/tu{n}.cu.o")),
    wrap("cmake", "", Some("[ 12%] Building CUDA object CMakeFiles/lib.dir/src/tu{n}.cu.o")),
    wrap("gha", "2026-03-04T05:00:{n}.0022657Z ", Some("[{n}/40] Building CUDA object src/tu{n}.cu.o")),
    wrap("buildkit", "#17 {n}.34 ", Some("[{n}/40] Building CUDA object src/tu{n}.cu.o")),
    wrap("msbuild", "1>  ", Some("Compiling CUDA source file src/tu{n}.cu...")),
    wrap("cargo", "warning: kernels@0.1.0: ", None),
    wrap("pip", "      ", Some("[{n}/40] nvcc --generate-dependencies-with-compile -c src/tu{n}.cu -o build/tu{n}.o")),
    wrap("jenkins", "[2026-03-04T05:00:{n}.002Z] ", Some("[{n}/40] Building CUDA object src/tu{n}.cu.o")),
    Wrap { name: "jit", before: "", before_frame: Some("ptxas         . "), step: None },
];

/// What happens to a log.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Damage {
    None,
    /// Windows ends its lines.
    CarriageReturns,
    /// The lines of steps are coloured.
    Colours,
    /// Its last bytes are missing.
    Cut,
}

/// Numbers without any pattern, the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }
}

/// One `write` of a compiler, and what it is of.
struct Written {
    text: String,
    /// Which kernel of the log.
    kernel: Option<usize>,
}

/// What a log says, in the order in which it does.
struct Log {
    era: Era,
    made: Vec<Made>,
    writes: Vec<Written>,
}

/// The architectures that a release compiles for.
fn archs(era: Era) -> &'static [&'static str] {
    match era.release {
        "2" => &["sm_13", "sm_21"],
        "4" => &["sm_20", "sm_35"],
        "10" => &["sm_60", "sm_75"],
        _ => &["sm_80", "sm_90a"],
    }
}

/// A log of several compilers, of which `at_once` write at a time.
fn log(era: Era, at_once: usize, seed: u64) -> Log {
    let mut runner = TestRunner::deterministic();
    let mut dice = Dice(seed);
    let mut log = Log { era, made: Vec::new(), writes: Vec::new() };
    let mut runs: Vec<Vec<Written>> = Vec::new();
    for compiler in 0..COMPILERS {
        let archs = archs(era);
        let of_one_arch: &'static [&'static str] = &archs[compiler % archs.len()..][..1];
        let strategy = generated::kernel(of_one_arch);
        let module = "ptxas info    : 0 bytes gmem\n".to_owned();
        let mut run = vec![Written { text: module, kernel: None }];
        for _ in 0..KERNELS {
            let mut made = strategy.new_tree(&mut runner).unwrap().current();
            // One template is instantiated for both architectures, as builds do; other names are of one kernel.
            let pair = log.made.len() - (compiler % 2) * KERNELS.min(log.made.len());
            made.name =
                format!("{}_{pair}", made.name.replace(['\'', '(', ')', ' ', ',', '<', '>', '&', '*', ':'], "_"));
            let kernel = Some(log.made.len());
            run.extend(made.records(era).into_iter().map(|text| Written { text, kernel }));
            log.made.push(made);
        }
        runs.push(run);
    }
    let mut runs = runs.into_iter();
    loop {
        let mut together: Vec<_> = runs.by_ref().take(at_once).map(Vec::into_iter).collect();
        if together.is_empty() {
            return log;
        }
        let mut turn = 0;
        while !together.is_empty() {
            // A compiler writes several records before another has its turn.
            if dice.roll(7) == 0 {
                turn = dice.roll(together.len());
            }
            let at = turn % together.len();
            match together[at].next() {
                Some(written) => log.writes.push(written),
                None => drop(together.remove(at)),
            }
        }
    }
}

impl Log {
    /// Its bytes.
    fn print(&self, wrap: &Wrap, damage: Damage) -> Vec<u8> {
        let mut text = String::new();
        let end = if damage == Damage::CarriageReturns { "\r\n" } else { "\n" };
        let mut number = 10;
        let mut line = |before: &str, line: &str| {
            number += 1;
            text += &before.replace("{n}", &number.to_string());
            text += &line.replace("{n}", &number.to_string());
            text += end;
        };
        for (at, written) in self.writes.iter().enumerate() {
            if let Some(step) = wrap.step.filter(|_| at % 9 == 0) {
                let colour = damage == Damage::Colours;
                line(wrap.before, &if colour { format!("\u{1b}[32m{step}\u{1b}[0m") } else { step.to_owned() });
            }
            for record in written.text.lines() {
                let is_frame = record.starts_with(' ');
                line(wrap.before_frame.filter(|_| is_frame).unwrap_or(wrap.before), record);
            }
        }
        let mut bytes = text.into_bytes();
        if damage == Damage::Cut {
            bytes.truncate(bytes.len() - 37);
        }
        bytes
    }

    /// Names of kernels between whose name and figures another was open, so that figures may be the other's: unless both
    /// have the same.
    fn mixed(&self) -> BTreeSet<&str> {
        let mut open: Vec<usize> = Vec::new();
        let mut mixed = BTreeSet::new();
        let figures = |at: usize| self.made[at].records(self.era).into_iter().find(|record| record.contains(": Used"));
        for written in &self.writes {
            let Some(kernel) = written.kernel else { continue };
            if written.text.contains(": Compiling entry") {
                for other in open.iter().filter(|other| figures(**other) != figures(kernel)) {
                    mixed.extend([self.made[*other].name.as_str(), self.made[kernel].name.as_str()]);
                }
                open.push(kernel);
            } else if written.text.contains(": Used") {
                open.retain(|other| *other != kernel);
            }
        }
        mixed
    }
}

fn name_of(report: &Report, kernel: &Kernel) -> String {
    kernel.name.map_or_else(String::new, |name| String::from_utf8_lossy(report.names.get(name)).into_owned())
}

/// Its facts, however often they were read.
fn facts_of(report: &Report, kernel: &Kernel) -> String {
    facts::kernel(report, &Kernel { records: 1, ..kernel.clone() })
}

/// Facts without the compile time, which a log of several compilers hides more often.
fn timeless(facts: &str) -> String {
    facts.rsplit_once(", ").map_or(facts, |(facts, _)| facts).to_owned()
}

/// Whether every figure that was read is the true one.
fn is_part_of(facts: &str, truth: &str) -> bool {
    let (read, truth) = (figures(facts), figures(truth));
    read.len() == truth.len() && read.iter().zip(&truth).all(|(read, truth)| *read == "?" || read == truth)
}

/// The figures of a line of facts, one by one; of constant banks all as one.
fn figures(facts: &str) -> Vec<&str> {
    let (before, banks) = facts.split_once("constant ").unwrap_or((facts, ""));
    let (banks, after) = banks.split_once(", textures").unwrap_or((banks, ""));
    let words =
        |text| str::split(text, [' ', '+', '/']).map(|word| word.trim_end_matches(',')).filter(|word| !word.is_empty());
    words(before).chain([banks]).chain(words(after)).collect()
}

fn check(log: &Log, wrap: &Wrap, at_once: usize, damage: Damage) {
    let bytes = log.print(wrap, damage);
    let report = facts::read(&bytes).report;
    let case = || {
        let text = String::from_utf8_lossy(&bytes);
        format!("CUDA {}, {}, {at_once} at once, {damage:?}:\n{text}", log.era.release, wrap.name)
    };
    let truth: BTreeSet<String> = log.made.iter().map(|made| made.facts(log.era)).collect();
    let timeless_truth: BTreeSet<String> = truth.iter().map(|facts| timeless(facts)).collect();
    let mut unknown = 0;
    for kernel in report.kernels.iter().filter(|kernel| !kernel.ambiguous) {
        assert_eq!(kernel.kind, Kind::Entry, "{}", case());
        let facts = facts_of(&report, kernel);
        let is_true = if at_once == 1 { truth.contains(&facts) } else { timeless_truth.contains(&timeless(&facts)) };
        if is_true {
            continue;
        }
        unknown += 1;
        let is_part = truth.iter().any(|truth| is_part_of(&facts, truth));
        assert!(damage == Damage::Cut && is_part, "{facts}\nis not true of {}", case());
    }
    // What is cut off is of the kernels that were open.
    assert!(unknown <= at_once, "{}", case());
    let records: u32 = report.kernels.iter().map(|kernel| kernel.records).sum();
    assert!(damage == Damage::Cut || records as usize == log.made.len(), "{records} kernels of {}", case());
    let doubtful: BTreeSet<String> =
        report.kernels.iter().filter(|kernel| kernel.ambiguous).map(|kernel| name_of(&report, kernel)).collect();
    let mixed = log.mixed();
    let undue: Vec<&String> =
        doubtful.iter().filter(|name| !mixed.contains(name.as_str()) && damage != Damage::Cut).collect();
    assert!(undue.is_empty(), "{undue:?} need not be ambiguous in {}", case());
    assert!(at_once > 1 || doubtful.is_empty(), "{doubtful:?} in {}", case());
}

fn check_all(at_once: usize) {
    for (seed, era) in (1..).zip(ERAS) {
        let log = log(era, at_once, seed);
        for wrap in &WRAPS {
            for damage in [Damage::None, Damage::CarriageReturns, Damage::Colours, Damage::Cut] {
                check(&log, wrap, at_once, damage);
            }
        }
    }
}

#[test]
fn one_compiler_at_a_time_leaves_nothing_open() {
    check_all(1);
}

#[test]
fn two_compilers_at_a_time_leave_open_only_what_is_mixed_up() {
    check_all(2);
}

#[test]
fn four_compilers_at_a_time_leave_open_only_what_is_mixed_up() {
    check_all(4);
}
