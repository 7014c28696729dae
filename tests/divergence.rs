//! Every branch that is marked in the kernels of `fixtures/divergence*` is judged as its mark says, and is reported as loudly.

// A failed expectation is how a test reports.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use rayon::prelude::*;
use serde_json::Value;
use warplint::run::{Streams, run};

const SETS: [&str; 2] = ["divergence", "divergence-own"];
const ARCHS: [&str; 2] = ["sm_80", "sm_90"];

/// The rules about branches.
const RULES: [&str; 5] = [
    "index-divergent-branch",
    "index-divergent-loop",
    "divergent-switch",
    "data-divergent-branch",
    "barrier-in-divergent-branch",
];

/// A line of a CSV file, by the names of its columns.
type Row = BTreeMap<String, String>;

/// One marked branch, as one architecture's PTX has it.
struct Marked {
    set: &'static str,
    arch: &'static str,
    row: Row,
    /// The verdicts on the branches of its line, each with its confidence.
    verdicts: Vec<(String, String)>,
    /// The levels of the findings at its line.
    levels: BTreeSet<String>,
}

/// Warnings at lines that no mark stands on.
type Strays = Vec<String>;

static LOOKED: LazyLock<(Vec<Marked>, Strays)> = LazyLock::new(|| {
    let mut tasks = Vec::new();
    for set in SETS {
        let mut files: BTreeMap<(String, String), Vec<Row>> = BTreeMap::new();
        for row in rows(&folder(set).join("expected.csv")) {
            files.entry((row["file"].clone(), row["block_shape"].clone())).or_default().push(row);
        }
        for arch in ARCHS {
            tasks.extend(files.iter().map(|(file, rows)| (set, arch, file.clone(), rows.clone())));
        }
    }
    let looked: Vec<_> = tasks.into_par_iter().map(|(set, arch, file, rows)| look(set, arch, &file, rows)).collect();
    let (marked, strays): (Vec<_>, Vec<_>) = looked.into_iter().unzip();
    (marked.into_iter().flatten().collect(), strays.into_iter().flatten().collect())
});

fn folder(set: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(set)
}

/// Looks at one PTX file with blocks of one shape.
fn look(
    set: &'static str,
    arch: &'static str,
    (file, shape): &(String, String),
    rows: Vec<Row>,
) -> (Vec<Marked>, Strays) {
    let folder = folder(set);
    let stem = file.strip_suffix(".cu").unwrap();
    let ptx = folder.join("ptx").join(format!("{stem}.{arch}.ptx"));
    let block = shape.replace('x', ",");
    let sources = folder.join("kernels");
    let told = |command: &[&str]| -> Value {
        let options = ["--isolated", "--block", &block, "--format", "json", "--source"].map(OsString::from);
        let paths = [sources.clone().into_os_string(), ptx.clone().into_os_string()];
        let args = command.iter().map(OsString::from).chain(options).chain(paths).collect();
        serde_json::from_slice(&output(args)).unwrap_or_else(|error| panic!("{}: {error}", ptx.display()))
    };
    let branches = told(&["warplint", "branches"]);
    let report = told(&["warplint"]);
    let findings: Vec<&Value> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["status"] == "shown" && RULES.iter().any(|rule| one["rule"] == *rule))
        .collect();
    let loud = |level: &Value| level == "warn" || level == "deny";
    let all: Vec<Marked> = rows
        .into_iter()
        .map(|row| {
            let line: u64 = row["line"].parse().unwrap();
            let verdicts = branches["branches"].as_array().unwrap().iter();
            let verdicts = verdicts.filter(|one| is_of(&one["kernel"], &row["kernel"]) && one["line"] == line);
            let word = |value: &Value| value.as_str().unwrap_or("none").to_owned();
            let verdicts = verdicts.map(|one| (word(&one["verdict"]), word(&one["confidence"]))).collect();
            let levels =
                findings.iter().filter(|one| is_of(&one["kernel"], &row["kernel"]) && one["location"]["line"] == line);
            let levels = levels.map(|one| word(&one["level"])).collect();
            Marked { set, arch, row, verdicts, levels }
        })
        .collect();
    let marks: BTreeSet<u64> = marked_lines(set, file);
    let strays = findings
        .iter()
        .filter(|one| loud(&one["level"]) && all.iter().any(|mark| is_of(&one["kernel"], &mark.row["kernel"])))
        .filter(|one| one["location"]["line"].as_u64().is_none_or(|line| !marks.contains(&line)))
        .map(|one| format!("{stem}.{arch}.ptx: {} at {}", one["rule"], one["location"]))
        .collect();
    (all, strays)
}

/// The marked lines of a file, whatever the shape.
fn marked_lines(set: &str, file: &str) -> BTreeSet<u64> {
    let rows = rows(&folder(set).join("expected.csv"));
    rows.iter().filter(|row| row["file"] == file).map(|row| row["line"].parse().unwrap()).collect()
}

/// Whether a function, whose name may be mangled, is that kernel.
fn is_of(name: &Value, kernel: &str) -> bool {
    name.as_str().is_some_and(|name| name.contains(kernel))
}

fn output(args: Vec<OsString>) -> Vec<u8> {
    let (mut stdin, mut stdout, mut stderr) = (&b""[..], Vec::new(), Vec::new());
    let mut streams = Streams {
        stdin: &mut stdin,
        stdin_is_terminal: true,
        stderr_is_terminal: false,
        stdout: &mut stdout,
        stderr: &mut stderr,
        terminal: None,
    };
    run(args, &mut streams);
    assert!(stderr.is_empty(), "{}", String::from_utf8_lossy(&stderr));
    stdout
}

/// The rows of a CSV file, by the names in its first.
fn rows(path: &Path) -> Vec<Row> {
    let text = fs::read_to_string(path).unwrap();
    let mut lines = text.lines().map(cells);
    let names = lines.next().unwrap();
    lines
        .map(|cells| {
            assert_eq!(cells.len(), names.len(), "{}: {cells:?}", path.display());
            names.iter().cloned().zip(cells).collect()
        })
        .collect()
}

/// The cells of a line, of which those in quotes may hold commas, and quotes that are doubled.
fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut quoted = false;
    let mut before = ' ';
    for one in line.chars() {
        match one {
            '"' => {
                quoted = !quoted;
                if quoted && before == '"' {
                    cells.last_mut().unwrap().push('"');
                }
            }
            ',' if !quoted => cells.push(String::new()),
            one => cells.last_mut().unwrap().push(one),
        }
        before = one;
    }
    cells
}

impl Marked {
    /// Where it is, and what it says.
    fn place(&self) -> String {
        let row = &self.row;
        let file = row["file"].strip_suffix(".cu").unwrap();
        format!(
            "{}/ptx/{file}.{}.ptx, {}, {}:{} `{}`",
            self.set, self.arch, row["kernel"], row["file"], row["line"], row["branch"]
        )
    }

    /// What is in doubt: nothing, the verdict, or how loud it is, too.
    fn doubt(&self) -> &str {
        self.row.get("doubt").map_or("", String::as_str)
    }

    /// How many branches the PTX has at its line, where that was counted.
    fn count(&self) -> Option<usize> {
        self.row[&format!("ptx_branches_{}", self.arch.replace('_', ""))].parse().ok()
    }

    fn found(&self) -> String {
        let found: Vec<String> = self.verdicts.iter().map(|(verdict, sure)| format!("{verdict} ({sure})")).collect();
        if found.is_empty() { "no branch".to_owned() } else { found.join(", ") }
    }
}

fn marked() -> &'static [Marked] {
    &LOOKED.0
}

fn none_of(wrong: Vec<String>) {
    assert!(wrong.is_empty(), "{} branches:\n  {}", wrong.len(), wrong.join("\n  "));
}

#[test]
fn every_marked_branch_has_its_verdict_and_its_number_of_ptx_branches() {
    let mut wrong = Vec::new();
    let mut judged = 0;
    for one in marked() {
        let count = one.count().unwrap();
        if one.verdicts.len() != count {
            wrong.push(format!("{}: {count} branches are expected, found: {}", one.place(), one.found()));
        }
        if count == 0 || !one.doubt().is_empty() {
            continue;
        }
        judged += 1;
        let expected = &one.row["verdict"];
        if one.verdicts.iter().all(|(verdict, _)| verdict != expected) {
            wrong.push(format!("{}: {expected} is expected, found: {}", one.place(), one.found()));
        }
    }
    none_of(wrong);
    assert!(judged > 550, "{judged} verdicts");
}

#[test]
fn every_marked_branch_is_reported_as_loudly_as_its_mark_says() {
    let mut wrong = Vec::new();
    for one in marked().iter().filter(|one| one.doubt() != "report") {
        let loud = one.levels.contains("warn") || one.levels.contains("deny");
        let right = match one.row["report"].as_str() {
            "warn" => loud,
            "note" => !loud,
            "silent" => one.levels.is_empty(),
            other => panic!("{}: unknown report {other}", one.place()),
        };
        if !right {
            wrong.push(format!("{}: `{}` is expected, found: {:?}", one.place(), one.row["report"], one.levels));
        }
    }
    none_of(wrong);
}

/// The branches of a file that are told by rules on the index, with rule and level, and those by data.
fn reported(path: &Path, more: &[&str]) -> [BTreeSet<String>; 2] {
    let args = ["warplint", "--isolated", "--format", "json"].iter().chain(more).map(OsString::from);
    let args = args.chain([path.as_os_str().to_owned()]).collect();
    let report: Value = serde_json::from_slice(&output(args)).unwrap();
    let of = |is_data: bool| {
        let all = report["findings"].as_array().unwrap().iter();
        let ours = all.filter(|one| RULES.iter().any(|rule| one["rule"] == *rule));
        let ours = ours.filter(|one| (one["rule"] == "data-divergent-branch") == is_data);
        ours.map(|one| format!("{}:{} {} {}", one["kernel"], one["ptx_line"], one["rule"], one["level"])).collect()
    };
    [of(false), of(true)]
}

#[test]
fn a_branch_is_told_alike_whatever_else_is_asked_for() {
    let paths = SETS.iter().flat_map(|set| fs::read_dir(folder(set).join("ptx")).unwrap());
    let paths: Vec<PathBuf> = paths.map(|entry| entry.unwrap().path()).collect();
    let wrong: Vec<String> = paths
        .par_iter()
        .filter_map(|path| {
            let [plain, _] = reported(path, &[]);
            let [index, data] = reported(path, &["--warn", "data-divergent-branch"]);
            let args = ["warplint", "branches", "--isolated", "--format", "json"].map(OsString::from);
            let args = args.into_iter().chain([path.clone().into_os_string()]).collect();
            let listed: Value = serde_json::from_slice(&output(args)).unwrap();
            let listed = listed["branches"].as_array().unwrap().iter().filter(|one| one["report"] != "silent");
            let listed: BTreeSet<String> = listed.map(|one| format!("{}:{}", one["kernel"], one["ptx_line"])).collect();
            let told = index.iter().chain(&data).map(|one| one.split(' ').next().unwrap_or_default().to_owned());
            let differ = plain != index || listed != told.collect();
            differ.then(|| path.display().to_string())
        })
        .collect();
    none_of(wrong);
    assert!(paths.len() > 20, "{} files", paths.len());
}

#[test]
fn no_warning_stands_at_a_line_without_a_mark() {
    none_of(LOOKED.1.clone());
}

#[test]
fn what_llvm_proves_uniform_is_divergent_for_nobody() {
    let mut proven = 0;
    let mut wrong = Vec::new();
    for one in marked().iter().filter(|one| one.row.get("llvm19_uniformity").is_some_and(|found| found == "uniform")) {
        proven += 1;
        if one.verdicts.iter().any(|(verdict, _)| verdict.starts_with("divergent")) {
            wrong.push(format!("{}: {}", one.place(), one.found()));
        }
    }
    none_of(wrong);
    assert!(proven >= 10, "{proven} branches");
}

/// Branches on which the run on a host and the verdict differ, and why that is right.
const DIFFERING: [(&str, u32, &str); 1] = [(
    "o4_loops.cu",
    145,
    "lanes leave by the `break` one line below, which the compiler merged into the loop's own branch: 78 % of its warps split",
)];

/// The share of warp visits that split when the kernels were run on a host, thread by thread, by set, file and line.
fn measured() -> BTreeMap<(&'static str, String, String), f64> {
    let of_set = |set: &'static str| {
        rows(&folder(set).join("measured.csv")).into_iter().filter_map(move |row| {
            Some(((set, row["file"].clone(), row["line"].clone()), row["split_share"].parse().ok()?))
        })
    };
    SETS.into_iter().flat_map(of_set).collect()
}

#[test]
fn verdicts_agree_with_what_the_kernels_do_when_they_are_run() {
    let measured = measured();
    let mut compared = 0;
    let mut wrong = Vec::new();
    for one in marked() {
        let row = &one.row;
        let Some(share) = measured.get(&(one.set, row["file"].clone(), row["line"].clone())) else { continue };
        let line: u32 = row["line"].parse().unwrap();
        if one.verdicts.is_empty() || DIFFERING.iter().any(|(file, at, _)| row["file"] == *file && line == *at) {
            continue;
        }
        compared += 1;
        let surely = |verdict: &(String, String)| verdict.0 == "divergent-index" && verdict.1 == "high";
        let is_uniform = |verdict: &(String, String)| verdict.0 == "warp-uniform";
        if *share == 0.0 && one.verdicts.iter().any(surely) {
            wrong.push(format!("{}: no warp split, found: {}", one.place(), one.found()));
        }
        if *share >= 0.5 && one.verdicts.iter().all(is_uniform) {
            wrong.push(format!("{}: {:.0} % of the warps split, found: {}", one.place(), share * 100.0, one.found()));
        }
    }
    none_of(wrong);
    assert!(compared > 500, "{compared} branches");
}
