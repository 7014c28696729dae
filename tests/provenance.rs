//! Every fixture says where it came from, and says nothing of the machine it was made on.

// A failed expectation is how a test reports.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use toml::{Table, Value};
use walkdir::WalkDir;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

/// The folders below `group` that hold a case, which is a log or PTX.
fn cases(group: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = WalkDir::new(fixtures().join(group))
        .into_iter()
        .map(Result::unwrap)
        .filter(|entry| entry.file_name() == "input.log" || entry.file_name() == "input.ptx")
        .map(|entry| entry.path().parent().unwrap().to_owned())
        .collect();
    found.sort();
    assert!(!found.is_empty(), "no case in {group}");
    found
}

/// The cases that a compiler wrote.
fn captured() -> Vec<PathBuf> {
    [cases("ptxas"), cases("ptx")].concat()
}

fn provenance(case: &Path) -> Table {
    let path = case.join("case.toml");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Fails on a key that no reader of a case knows, which is nearly always a misspelt one.
fn has_keys(case: &Path, provenance: &Table, needed: &[&str], optional: &[&str]) {
    for key in needed {
        assert!(provenance.contains_key(*key), "{}: case.toml lacks {key}", case.display());
    }
    for key in provenance.keys().map(String::as_str) {
        assert!(needed.contains(&key) || optional.contains(&key), "{}: unknown key {key}", case.display());
    }
}

#[test]
fn every_captured_input_names_the_tool_the_command_and_what_it_shows() {
    for case in captured() {
        let told = provenance(&case);
        has_keys(&case, &told, &["tool", "command", "sources", "shows"], &["status", "note"]);
        let shows = told["shows"].as_str().unwrap();
        assert!(shows.ends_with('.') && shows.len() > 20, "{}: `shows` is a sentence", case.display());
        for source in told["sources"].as_array().unwrap() {
            let path = fixtures().join("kernels").join(source.as_str().unwrap());
            assert!(path.is_file(), "{}: no {} in fixtures", case.display(), path.display());
        }
    }
}

#[test]
fn every_composed_log_says_that_it_is_composed_and_what_is_expected() {
    for case in cases("wild") {
        let told = provenance(&case);
        has_keys(&case, &told, &["provenance"], &["block", "encoding", "must", "must_not", "stretch"]);
        assert!(told["provenance"].as_str().unwrap().starts_with("Composed by hand"), "{}", case.display());
        let block = told.get("block").and_then(Value::as_array);
        assert!(block.is_none_or(|block| (1..=3).contains(&block.len())), "{}: block", case.display());
        let expected = fs::read_to_string(case.join("expected.json")).unwrap();
        let expected: serde_json::Value = serde_json::from_str(&expected).unwrap();
        assert!(expected.is_array(), "{}: expected.json is a list of records", case.display());
    }
}

#[test]
fn names_of_cases_are_kebab_case() {
    for case in captured().into_iter().chain(cases("wild")) {
        let name = case.file_name().unwrap().to_str().unwrap();
        let plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        assert!(plain && !name.starts_with('-') && !name.ends_with('-'), "{}", case.display());
    }
}

#[test]
fn every_kernel_source_is_behind_some_case() {
    let used: BTreeSet<String> = captured()
        .iter()
        .flat_map(|case| provenance(case)["sources"].as_array().unwrap().clone())
        .map(|source| source.as_str().unwrap().to_owned())
        .collect();
    let unused: Vec<String> = WalkDir::new(fixtures().join("kernels"))
        .into_iter()
        .map(Result::unwrap)
        .filter(|entry| entry.file_type().is_file() && entry.file_name() != "README.md")
        .map(|entry| {
            entry.path().strip_prefix(fixtures().join("kernels")).unwrap().to_str().unwrap().replace('\\', "/")
        })
        .filter(|source| !used.contains(source))
        .collect();
    assert!(unused.is_empty(), "no case.toml names {unused:?}");
}

#[test]
fn no_fixture_tells_of_the_machine_it_was_made_on() {
    let private =
        ["home", "root", "Users", "work", "workspace"].map(|folder| [format!("/{folder}/"), format!("\\{folder}\\")]);
    for entry in WalkDir::new(fixtures()).into_iter().map(Result::unwrap).filter(|entry| entry.file_type().is_file()) {
        let bytes = fs::read(entry.path()).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        for path in private.as_flattened() {
            assert!(!text.contains(path.as_str()), "{} holds {path}", entry.path().display());
        }
    }
}
