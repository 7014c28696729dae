//! The marked kernels of `fixtures/divergence*`, read as sources alone: what is said of them is right, and how much of what there
//! is to say.

// A failed expectation is how a test reports.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use warplint::analyse::{Assumptions, Depth, analyse};
use warplint::lanes::task::Which;
use warplint::lanes::verdict::Advice;
use warplint::model::{BlockSize, Bounds, InputFacts, Kernel, Report};
use warplint::parse::cuda::lower::{Unit, functions, lower};

/// A line of a CSV file, by the names of its columns.
type Row = BTreeMap<String, String>;

/// A branch that something is said of: its line, the kernel, and the verdict.
type Told = (u32, String, &'static str);

fn folder(set: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(set)
}

/// What is said of a source in blocks of one size.
fn told(text: &[u8], name: &str, block: BlockSize) -> Vec<Told> {
    let all = functions(text, &[b"K", b"GK"]);
    let unit = Unit { text, name, functions: &all, constants: &|_| None };
    let Some(lowered) = lower(&unit) else { return Vec::new() };
    let mut report = Report::default();
    report.inputs.push(InputFacts { name: name.to_owned(), ..InputFacts::default() });
    let names = &mut report.names;
    let mut named = |at: usize| names.intern(&text[all[at].name.clone()]);
    let mut module = lowered.into_module(0, &all, &mut named, &|_| Bounds::default());
    for (at, function) in (0..).zip(&mut module.functions) {
        function.kernel = Some(at);
        report.kernels.push(Kernel::new(Some(function.name), function.kind, None));
    }
    report.modules.push(module);
    let depth = Depth::Branches(Which::ByIndex);
    let numbers = analyse(&report, &Assumptions { block: Some(block), depth, ..Assumptions::default() });
    let found = (0..numbers.branches.all.len()).filter_map(|at| numbers.branches.get(&report, at));
    let told = found.filter_map(|found| {
        let judgement = found.branch.judgement.filter(|judgement| judgement.advice > Advice::Silent)?;
        let kernel = String::from_utf8_lossy(report.names.get(found.function.name)).into_owned();
        Some((found.locations?.outer.line, kernel, judgement.verdict.name()))
    });
    told.collect()
}

/// A file with the macros of the header that it begins with, in as many lines.
fn source(folder: &Path, file: &str) -> Vec<u8> {
    let own = fs::read_to_string(folder.join(file)).unwrap();
    let header =
        ["common.cuh", "own.cuh"].map(|name| fs::read_to_string(folder.join(name)).unwrap_or_default()).concat();
    let macros: Vec<&str> = header.lines().filter(|line| line.starts_with("#define") && line.contains(")")).collect();
    // Directives do not count for a function that ends before them.
    format!("{own}\n{}\n", macros.join("\n")).into_bytes()
}

/// The rows of a CSV file, by the names in its first.
fn rows(path: &Path) -> Vec<Row> {
    let text = fs::read_to_string(path).unwrap();
    let mut lines = text.lines().map(cells);
    let names = lines.next().unwrap();
    lines.map(|cells| names.iter().cloned().zip(cells).collect()).collect()
}

/// The cells of a line, of which quoted ones may hold commas.
fn cells(line: &str) -> Vec<String> {
    let (mut cells, mut quoted) = (vec![String::new()], false);
    for character in line.chars() {
        match character {
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            other => cells.last_mut().unwrap().push(other),
        }
    }
    cells
}

#[test]
fn what_is_said_of_a_source_is_right() {
    let (mut right, mut wanted) = (0, 0);
    for set in ["divergence", "divergence-own"] {
        let rows = rows(&folder(set).join("expected.csv"));
        let mut files: Vec<(&str, &str)> = rows.iter().map(|row| (&*row["file"], &*row["block_shape"])).collect();
        files.sort_unstable();
        files.dedup();
        for (file, shape) in files {
            let [x, y, z]: [u32; 3] =
                shape.split('x').map(|size| size.parse().unwrap()).collect::<Vec<_>>().try_into().unwrap();
            let text = source(&folder(set).join("kernels"), file);
            let of_shape = |row: &&Row| row["file"] == file && row["block_shape"] == shape;
            let kernels: Vec<&str> = rows.iter().filter(of_shape).map(|row| &*row["kernel"]).collect();
            let told = told(&text, file, BlockSize { x, y, z });
            for (line, kernel, verdict) in told.iter().filter(|(_, kernel, _)| kernels.contains(&kernel.as_str())) {
                let row = rows.iter().filter(of_shape).find(|row| row["line"] == line.to_string());
                let place = format!("{file}:{line} of {kernel} in {shape}: {verdict}");
                let row = row.unwrap_or_else(|| panic!("{place}: no mark stands there"));
                // The compiler moved it into the branch that decides about it, where the same lanes idle for it.
                if row.values().any(|cell| cell.contains("jump threaded")) {
                    continue;
                }
                assert_eq!(row["verdict"], *verdict, "{place}");
                assert_ne!(row["report"], "silent", "{place}");
            }
            let is_told = |row: &&Row| told.iter().any(|(line, ..)| row["line"] == line.to_string());
            let of_index = |row: &&Row| matches!(&*row["verdict"], "divergent-index" | "barrier-in-divergent");
            let loud = || rows.iter().filter(of_shape).filter(of_index).filter(|row| row["report"] != "silent");
            wanted += loud().count();
            right += loud().filter(is_told).count();
        }
    }
    println!("{right} of {wanted} are told");
    assert!(right >= MOST_TOLD, "{right} of {wanted} are told");
}

/// As many as were told when this was written: a light side alone is silent, and so is what helpers of another file decide.
const MOST_TOLD: usize = 35;
