//! Laws of reading PTX and of judging its branches that hold for every module.

// A failed expectation is how a test reports.
#![allow(clippy::unwrap_used)]

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use regex::bytes::{Captures, Regex};
use serde_json::Value;
use warplint::analyse::{Assumptions, Depth, analyse};
use warplint::join::{attach, join};
use warplint::lanes::task::Which;
use warplint::model::{BlockSize, Report};
use warplint::parse::ptx::{PtxFault, read_ptx};
use warplint::report::branches_json;
use warplint::rules::Context;
use warplint::run::{Streams, run};

fn fixture(path: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(path)).unwrap()
}

/// Real modules.
static MODULES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    [
        "divergence/ptx/05_loops.sm_80.ptx",
        "divergence/ptx/06_reduce.sm_90.ptx",
        "divergence/ptx/09_struct.sm_80.ptx",
        "divergence-own/ptx/o6_calls_barriers.sm_90.ptx",
        "kernels/smemspill.ptx",
    ]
    .map(fixture)
    .into()
});

/// Functions of real modules, one a text: for what takes longer.
static FUNCTIONS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let mut all = Vec::new();
    for module in MODULES.iter() {
        let (report, _) = read(module);
        let bodies = report.modules[0].functions.iter().filter(|one| one.branches > 0 && one.calls == 0);
        all.extend(bodies.filter(|one| one.body.len() < 6000).map(|one| {
            let head = b".version 8.5\n.target sm_80\n.address_size 64\n";
            [head, &module[one.head.0..one.body.end], b"\n"].concat()
        }));
    }
    assert!(all.len() > 30, "{} functions", all.len());
    all
});

fn read(text: &[u8]) -> (Report, Result<(), PtxFault>) {
    let mut report = Report::default();
    let result = read_ptx(text.to_vec(), "module.ptx", &mut report);
    (report, result)
}

fn names(report: &Report) -> Vec<Vec<u8>> {
    report.modules[0].functions.iter().map(|one| report.names.get(one.name).to_vec()).collect()
}

/// What is said of every branch, without where it stands.
fn told(text: &[u8]) -> Vec<String> {
    let (mut report, result) = read(text);
    assert!(result.is_ok(), "{result:?}");
    join(&mut report, &[]);
    attach(&mut report);
    let assumptions = Assumptions {
        block: BlockSize::new(128, 1, 1).ok(),
        depth: Depth::Branches(Which::All),
        ..Assumptions::default()
    };
    let numbers = analyse(&report, &assumptions);
    let mut out = Vec::new();
    branches_json(&Context::new(&report, &numbers), &mut out).unwrap();
    let list: Value = serde_json::from_slice(&out).unwrap();
    let branches = list["branches"].as_array().unwrap().iter().cloned();
    branches
        .map(|mut branch| {
            let fields = branch.as_object_mut().unwrap();
            fields.remove("ptx_line");
            // Without `.loc`, this is a line of the PTX.
            if fields["path"] == "module.ptx" {
                fields.remove("line");
            }
            branch.to_string()
        })
        .collect()
}

/// The same with every match of `pattern` that stands outside of comments replaced.
fn replaced(text: &[u8], pattern: &str, by: impl Fn(&Captures<'_>) -> Vec<u8>) -> Vec<u8> {
    Regex::new(pattern).unwrap().replace_all(text, |found: &Captures<'_>| by(found)).into_owned()
}

/// Blanks and comments that may stand between any two words.
const FILLERS: [&str; 5] = [" ", "\t", "\r\n", " /* ; { */ ", " // @%p9 bra nowhere;\n"];

fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

/// Few enough for every run of the tests; the environment may ask for more.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(48)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_or_refused(text in prop::collection::vec(any::<u8>(), 0..2000), starts_well in any::<bool>()) {
        let start: &[u8] = if starts_well { b".version 8.5\n.entry k() {" } else { b"" };
        let (report, _) = read(&[start, &text].concat());
        prop_assert_eq!(report.modules.len(), 1);
    }

    #[test]
    fn a_damaged_module_is_read_or_refused_and_what_is_read_is_judged(
        which in any::<Index>(),
        damages in prop::collection::vec((any::<Index>(), any::<Index>(), 0_u8..3, any::<u8>()), 1..6),
    ) {
        let mut text = FUNCTIONS[which.index(FUNCTIONS.len())].clone();
        for (one, other, what, byte) in damages {
            let (at, to) = (one.index(text.len()), other.index(text.len()));
            match what {
                0 => text[at] = byte,
                1 => drop(text.drain(at..(at + to % 40).min(text.len() - 1))),
                _ => {
                    let piece = text[to..(to + 40).min(text.len())].to_vec();
                    text.splice(at..at, piece);
                }
            }
        }
        let (mut report, _) = read(&text);
        join(&mut report, &[]);
        attach(&mut report);
        let _ = analyse(&report, &Assumptions { depth: Depth::Branches(Which::All), ..Assumptions::default() });
    }

    #[test]
    fn a_torn_module_has_the_first_functions_of_the_whole(which in any::<Index>(), at in any::<Index>()) {
        let module = &MODULES[which.index(MODULES.len())];
        let at = at.index(module.len());
        let (whole, _) = read(module);
        let (torn, result) = read(&module[..at]);
        let functions = &torn.modules[0].functions;
        prop_assert_eq!(&names(&whole)[..functions.len()], names(&torn));
        for (one, other) in functions.iter().zip(&whole.modules[0].functions) {
            // Files, and shared variables of the module, may stand behind.
            prop_assert_eq!((&one.body, one.branches, one.bounds), (&other.body, other.branches, other.bounds));
        }
        if let Err(fault) = result {
            prop_assert_eq!(fault.functions, functions.len());
        }
    }

    #[test]
    fn line_ends_blank_lines_and_comments_change_no_verdict(
        which in any::<Index>(),
        windows in any::<bool>(),
        places in prop::collection::vec((any::<Index>(), select(&FILLERS[..])), 0..20),
    ) {
        let text = &FUNCTIONS[which.index(FUNCTIONS.len())];
        let mut all = lines(text);
        for (at, filler) in places {
            all.insert(at.index(all.len() + 1), filler.as_bytes());
        }
        let mut other = all.concat();
        if windows {
            other = replaced(&other, "\r?\n", |_| b"\r\n".to_vec());
        }
        prop_assert_eq!(told(&other), told(text));
    }

    #[test]
    fn names_of_registers_and_labels_change_no_verdict(which in any::<Index>(), number in 2_u32..9) {
        let text = &FUNCTIONS[which.index(FUNCTIONS.len())];
        let other = replaced(text, r"%(p|f|fd|rs|rd|r)(\d|<)", |found| {
            [b"%", &found[1].repeat(number as usize)[..], b"_", &found[2]].concat()
        });
        let other = replaced(&other, r"\$L__BB(\d+)_(\d+)", |found| [b"$Away", &found[2][..], b"From", &found[1]].concat());
        prop_assert_ne!(&other, text);
        prop_assert_eq!(told(&other), told(text));
    }

    #[test]
    fn the_order_of_functions_changes_no_verdict(which in prop::collection::vec(any::<Index>(), 2..5)) {
        let mut chosen: Vec<usize> = which.iter().map(|one| one.index(FUNCTIONS.len())).collect();
        chosen.sort_unstable();
        chosen.dedup();
        let head = lines(&FUNCTIONS[0])[..3].concat();
        let bodies: Vec<Vec<u8>> = chosen.iter().map(|at| lines(&FUNCTIONS[*at])[3..].concat()).collect();
        let forwards = [&head[..], &bodies.concat()].concat();
        let backwards = [&head[..], &bodies.iter().rev().flatten().copied().collect::<Vec<u8>>()].concat();
        let (mut one, mut other) = (told(&forwards), told(&backwards));
        one.sort_unstable();
        other.sort_unstable();
        prop_assert_eq!(&one, &other);
        let mut alone: Vec<String> = chosen.iter().flat_map(|at| told(&FUNCTIONS[*at])).collect();
        alone.sort_unstable();
        prop_assert_eq!(alone, one);
    }
}

/// The list of all branches of some real modules, in JSON.
fn listed() -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/divergence/ptx");
    let paths = ["04_switch.sm_80.ptx", "05_loops.sm_90.ptx", "09_struct.sm_80.ptx"].map(|name| folder.join(name));
    let args = ["warplint", "branches", "--isolated", "--format", "json"].map(OsString::from);
    let (mut stdin, mut stdout, mut stderr) = (&b""[..], Vec::new(), Vec::new());
    let mut streams = Streams {
        stdin: &mut stdin,
        stdin_is_terminal: true,
        stderr_is_terminal: false,
        stdout: &mut stdout,
        stderr: &mut stderr,
        terminal: None,
    };
    run(args.into_iter().chain(paths.map(OsString::from)).collect(), &mut streams);
    assert!(stderr.is_empty() && stdout.len() > 10_000);
    stdout
}

#[test]
fn the_same_module_gives_the_same_bytes_with_any_number_of_threads() {
    let with = |threads: usize| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(listed);
    let one = with(1);
    for threads in [1, 4, 4] {
        assert!(with(threads) == one, "another list with {threads} threads");
    }
}
