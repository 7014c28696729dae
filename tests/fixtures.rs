//! Every captured log says what it always said: the facts read from it, and what became of each line of a CUDA tool.

// A failed expectation is how a test reports.
#![allow(clippy::unwrap_used)]
// Each test program uses a part of it.
#[allow(dead_code)]
mod facts;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use facts::Reading;
use snapbox::Assert;
use snapbox::Data;
use walkdir::WalkDir;

/// Words of lines that a CUDA tool may have printed.
const OF_TOOLS: [&str; 10] = [
    "ptxas",
    "nvlink",
    "nvcc",
    "cuobjdump",
    "fatbinary",
    "bytes stack frame",
    "bytes gmem",
    "REG:",
    " registers,",
    " Function",
];

fn logs() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = WalkDir::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/ptxas"))
        .into_iter()
        .map(|entry| entry.unwrap().into_path())
        .filter(|path| path.ends_with("input.log"))
        .collect();
    found.sort();
    found
}

/// The lines of `text`, whichever way they end.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n' || *byte == b'\r').filter(|line| !line.is_empty())
}

/// Lines that look like a CUDA tool's and are in no fact and no message.
fn passed_on(reading: &Reading) -> Vec<String> {
    let kept: Vec<_> = reading.report.messages.iter().map(|message| reading.report.said(message)).collect();
    let holds = |line: &[u8], part: &[u8]| memchr::memmem::find(line, part).is_some();
    lines(&reading.echoed)
        .filter(|line| OF_TOOLS.iter().any(|word| holds(line, word.as_bytes())))
        .filter(|line| !kept.iter().any(|text| holds(line, text)))
        .map(facts::shown)
        .collect()
}

fn snapshot(log: &[u8]) -> String {
    let reading = facts::read(log);
    let mut text = facts::kernels(&reading.report);
    let (of_log, of_echo) = (lines(log).count(), lines(&reading.echoed).count());
    let _ = writeln!(text, "\n{}", facts::messages(&reading.report));
    let _ = writeln!(text, "{of_log} lines, {of_echo} of them passed on; of a tool and in nothing above:");
    passed_on(&reading).iter().for_each(|line| text += &format!("  {line}\n"));
    text
}

#[test]
fn every_captured_log_gives_the_facts_beside_it() {
    let logs = logs();
    assert!(logs.len() > 100, "{} logs", logs.len());
    // One log that differs must not hide the next.
    let differing: Vec<_> = logs
        .iter()
        .filter(|log| {
            let text = snapshot(&fs::read(log).unwrap());
            let expected = Data::read_from(&log.with_file_name("facts.txt"), None);
            let assert = Assert::new().normalize_paths(false).action_env(snapbox::assert::DEFAULT_ACTION_ENV);
            assert
                .try_eq(Some(&log.display()), text.into(), expected)
                .inspect_err(|error| eprintln!("{error}"))
                .is_err()
        })
        .collect();
    assert!(differing.is_empty(), "{differing:#?} differ; SNAPSHOTS=overwrite cargo test writes them, after reading");
}
