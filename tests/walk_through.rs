//! Chapters of the book that change files, walked: their files are written, their edits made and their commands run in an
//! empty folder, and what they print is what the chapter shows. The walk-through does so with a real compiler.
//!
//! `SNAPSHOTS=overwrite cargo test --test walk_through` writes what they print into the chapters. With another compiler than
//! the walk-through names, other figures are no fault: exit statuses and the rules that report are compared all the same.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a broken chapter should stop the test where it is broken")]

#[path = "common/toolchain.rs"]
#[allow(dead_code, reason = "other tests use other parts")]
mod toolchain;
#[path = "common/transcripts.rs"]
#[allow(dead_code, reason = "other tests use other parts")]
mod transcripts;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use snapbox::IntoData as _;
use toolchain::{Toolchain, WorkDir, text};

const NAME: &str = "the_walk_through_is_walked_with_a_real_compiler";

#[test]
fn the_walk_through_is_walked_with_a_real_compiler() {
    let Some(toolchain) = Toolchain::or_skip(NAME) else { return };
    let (walked, chapter) = walk("walk-through.md", Some(toolchain));
    if walked.lines().any(|line| line == format!("<!-- nvcc {} -->", release(toolchain))) {
        snapbox::assert_data_eq!(walked.as_str(), chapter.clone().raw());
    }
    let seen = outcomes(&walked);
    assert_eq!(seen, outcomes(&chapter));
    let statuses: Vec<&str> = seen.iter().filter_map(|(_, status, _)| *status).collect();
    assert_eq!(statuses, ["1", "0", "1", "1", "0", "0", "1", "0"], "adopted, caught, fixed, better, written down");
    assert!(seen.iter().any(|(_, status, rules)| *status == Some("1") && rules.contains("regression")));
}

#[test]
fn the_chapter_on_baselines_is_walked_with_logs_that_a_compiler_printed() {
    let (walked, chapter) = walk("baseline.md", None);
    snapbox::assert_data_eq!(walked, chapter.raw());
}

/// Walks a chapter in a folder of its own: the chapter as it is printed now, and as it was.
fn walk(name: &str, toolchain: Option<&Toolchain>) -> (String, String) {
    static ONE_FOLDER_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _alone = ONE_FOLDER_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/src").join(name);
    let chapter = fs::read_to_string(&path).unwrap();
    let folder = WorkDir::new();
    // The repository of a reader: what lies above it is not asked for a configuration.
    fs::create_dir(folder.path().join(".git")).unwrap();
    std::env::set_current_dir(folder.path()).unwrap();
    let walked = walked(&chapter, toolchain);
    if std::env::var_os("SNAPSHOTS").is_some_and(|value| value == "overwrite") {
        fs::write(&path, &walked).unwrap();
    }
    (walked, chapter)
}

/// The chapter, with what its commands print now.
fn walked(chapter: &str, toolchain: Option<&Toolchain>) -> String {
    let mut out = String::new();
    let mut lines = chapter.lines();
    let mut transcripts = 0;
    while let Some(line) = lines.next() {
        writeln!(out, "{line}").unwrap();
        let Some(mark) = line.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->")) else { continue };
        if mark.starts_with("nvcc ") {
            continue;
        }
        if let Some((name, from)) = mark.strip_prefix("file: ").and_then(|rest| rest.split_once(" = ")) {
            fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join(from), name).unwrap();
            continue;
        }
        let fence = lines.next().unwrap();
        assert!(fence.starts_with("```"), "{line} is followed by {fence}");
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let shown = match mark.split_once(": ") {
            Some(("file", name)) => {
                fs::write(name, content(&block)).unwrap();
                lines_of(&block)
            }
            Some(("edit", name)) => {
                fs::write(name, edited(&fs::read_to_string(name).unwrap(), &block)).unwrap();
                lines_of(&block)
            }
            None if mark == "walk" => {
                transcripts += 1;
                transcript(&block, toolchain)
            }
            _ => panic!("{line} is no mark of a walk"),
        };
        write!(out, "{fence}\n{shown}```\n").unwrap();
    }
    assert!(transcripts >= 4, "{transcripts} transcripts");
    out
}

fn lines_of(block: &[&str]) -> String {
    block.iter().map(|line| format!("{line}\n")).collect()
}

/// What a block says a file holds: itself, or what it takes in from beside the book.
fn content(block: &[&str]) -> String {
    let taken =
        block.first().and_then(|line| line.strip_prefix("{{#include ")).and_then(|rest| rest.strip_suffix("}}"));
    match taken {
        Some(path) => fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/src").join(path)).unwrap(),
        None => lines_of(block),
    }
}

/// `text` after the change that the lines of a diff show, without their numbers: what they take away is there once.
fn edited(text: &str, diff: &[&str]) -> String {
    let side = |other: char| -> String {
        let lines = diff.iter().filter(|line| !line.starts_with(other));
        lines.map(|line| format!("{}\n", line.get(1..).unwrap_or_default())).collect()
    };
    let (before, after) = (side('+'), side('-'));
    assert_eq!(text.matches(&before).count(), 1, "{before} in\n{text}");
    text.replacen(&before, &after, 1)
}

/// The commands of a block, each with what it prints.
fn transcript(block: &[&str], toolchain: Option<&Toolchain>) -> String {
    let mut out = String::new();
    let mut last = None;
    for command in block.iter().filter_map(|line| line.strip_prefix("$ ")) {
        writeln!(out, "$ {command}").unwrap();
        let (printed, status) = match command.split_whitespace().next() {
            Some("warplint") => {
                let (stdout, stderr, outcome) = transcripts::printed(command, "");
                (stdout + &stderr, i32::from(outcome.status()))
            }
            _ if command == "echo $?" => (format!("{}\n", last.expect("a command before")), 0),
            _ => in_shell(command, toolchain),
        };
        let is_told = block.contains(&"$ echo $?");
        assert!(status == 0 || is_told, "{command} ends with {status}, and nothing says so:\n{printed}");
        last = Some(status);
        let printed = printed.trim_end();
        if !printed.is_empty() {
            writeln!(out, "{printed}").unwrap();
        }
    }
    out
}

/// Runs a command that is not warplint's own.
fn in_shell(command: &str, toolchain: Option<&Toolchain>) -> (String, i32) {
    let tools = toolchain.map(|toolchain| toolchain.ptxas().parent().unwrap().to_owned());
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(tools.into_iter().chain(std::env::split_paths(&path))).unwrap();
    let output = Command::new("sh").args(["-c", command]).env("PATH", path).output().unwrap();
    (text(&output.stdout) + &text(&output.stderr), output.status.code().unwrap_or(-1))
}

/// What `nvcc` calls its release, as in `13.5`.
fn release(toolchain: &Toolchain) -> String {
    let (version, status) = in_shell("nvcc --version", Some(toolchain));
    assert_eq!(status, 0, "{version}");
    version.split("release ").nth(1).unwrap().split(',').next().unwrap().to_owned()
}

/// Each command of the chapter, the status that is shown after it, and the rules that it names.
fn outcomes(chapter: &str) -> Vec<(&str, Option<&str>, BTreeSet<&str>)> {
    let mut found: Vec<(&str, Option<&str>, BTreeSet<&str>)> = Vec::new();
    let mut lines = chapter.lines();
    while let Some(line) = lines.next() {
        if line == "$ echo $?" {
            found.last_mut().unwrap().1 = lines.next();
        } else if let Some(command) = line.strip_prefix("$ ") {
            found.push((command, None, BTreeSet::new()));
        } else if let Some((_, _, rules)) = found.last_mut() {
            rules.extend(line.strip_prefix("warplint::"));
        }
    }
    found
}
