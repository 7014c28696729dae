//! The formats for other programs: each is what its readers take, for every rule that a rule page shows.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use serde_json::Value;
use warplint::rules::RULES;
use warplint::run::{Streams, run};

/// A log with notes, warnings and an error; one of its kernels is allowed something.
const LOGS: [&str; 3] = [
    "fixtures/ptxas/13.5/spill-maxreg32-sm80/input.log",
    "fixtures/ptxas/13.5/syntax-error/input.log",
    "fixtures/ptx/13.5/parity-branch/input.ptx",
];

fn report(format: &str, more: &[&str]) -> String {
    let own = ["warplint", "--isolated", "--format", format];
    output(own.iter().chain(more).chain(&LOGS), b"")
}

/// What a run prints with `piped` at its standard input.
fn output<'a>(args: impl Iterator<Item = &'a &'a str>, mut piped: &[u8]) -> String {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    run(
        args.map(OsString::from).collect(),
        &mut Streams {
            stdin: &mut piped,
            stdin_is_terminal: true,
            stdout: &mut stdout,
            stderr: &mut stderr,
            stderr_is_terminal: false,
            terminal: None,
        },
    );
    String::from_utf8(stdout).expect("text")
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn findings() -> Vec<Value> {
    json(&report("json", &[]))["findings"].as_array().expect("findings").clone()
}

#[test]
fn sarif_has_every_rule_and_every_finding_with_places_that_resolve() {
    let log = json(&report("sarif", &[]));
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().expect("rules");
    assert_eq!(rules.len(), RULES.len());
    let results = run["results"].as_array().expect("results");
    assert_eq!(results.len(), findings().len());
    for result in results {
        let index = usize::try_from(result["ruleIndex"].as_u64().expect("an index")).expect("a small one");
        assert_eq!(rules[index]["id"], result["ruleId"]);
        assert!(["note", "warning", "error"].contains(&result["level"].as_str().expect("a level")), "{result}");
        assert!(!result["message"]["text"].as_str().expect("a text").is_empty());
        assert_eq!(result["partialFingerprints"]["warplint/v1"].as_str().map(str::len), Some(16));
        for place in result["locations"].as_array().into_iter().flatten() {
            let Some(physical) = place.get("physicalLocation") else { continue };
            let uri = physical["artifactLocation"]["uri"].as_str().expect("a place");
            assert!(Path::new(uri).is_file(), "{uri} is relative to this folder");
            let region = &physical["region"];
            assert!(region["startLine"].as_u64() >= Some(1) && region["startColumn"].as_u64() >= Some(1), "{region}");
            assert!(region["endColumn"].as_u64() >= region["startColumn"].as_u64(), "{region}");
        }
    }
}

#[test]
fn sarif_tells_what_is_allowed_as_suppressed() {
    let log = json(&report("sarif", &["--allow", "register-spill"]));
    let results = log["runs"][0]["results"].as_array().expect("results").clone();
    let (allowed, shown): (Vec<_>, Vec<_>) = results.into_iter().partition(|one| one["ruleId"] == "register-spill");
    assert!(allowed.iter().all(|one| one["suppressions"][0]["kind"] == "external") && !allowed.is_empty());
    assert!(shown.iter().all(|one| one.get("suppressions").is_none()));
}

#[test]
fn a_code_quality_report_has_fingerprints_of_its_own() {
    let issues = json(&report("gitlab", &[]));
    let issues = issues.as_array().expect("issues");
    assert_eq!(issues.len(), findings().len());
    let fingerprints: HashSet<&str> = issues.iter().filter_map(|issue| issue["fingerprint"].as_str()).collect();
    assert_eq!(fingerprints.len(), issues.len());
    for issue in issues {
        assert!(issue["location"]["lines"]["begin"].as_u64() >= Some(1), "{issue}");
        assert!(["info", "major", "critical"].contains(&issue["severity"].as_str().expect("a severity")), "{issue}");
    }
}

#[test]
fn annotations_are_one_line_each_the_worst_first() {
    let text = report("github", &[]);
    let levels: Vec<&str> = text.lines().map(|line| line.split(' ').next().unwrap_or_default()).collect();
    assert!(levels.is_sorted_by_key(|level| ["::error", "::warning", "::notice"].iter().position(|one| one == level)));
    assert!(levels.contains(&"::error") && levels.contains(&"::warning") && levels.contains(&"::notice"), "{text}");
    assert!(text.lines().all(|line| line.contains("title=warplint%3A ")), "{text}");
}

#[test]
fn what_github_would_drop_follows_as_plain_lines() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("many-annotations");
    fs::create_dir_all(&folder).expect("a folder");
    let record = |at: usize| {
        format!(
            "ptxas info    : Compiling entry function 'k{at}' for 'sm_80'\nptxas info    : Function properties for k{at}\n    \
             8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads\nptxas info    : Used 24 registers\n"
        )
    };
    let log = folder.join("build.log");
    fs::write(&log, (0..13).map(record).collect::<String>()).expect("a log");
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let args = ["warplint", "--isolated", "--allow", "occupancy", "-f", "github"].map(OsString::from);
    run(
        args.into_iter().chain([log.into_os_string()]).collect(),
        &mut Streams {
            stdin: &mut std::io::empty(),
            stdin_is_terminal: true,
            stdout: &mut stdout,
            stderr: &mut stderr,
            stderr_is_terminal: false,
            terminal: None,
        },
    );
    let text = String::from_utf8(stdout).expect("text");
    assert_eq!(text.lines().filter(|line| line.starts_with("::warning ")).count(), 10, "{text}");
    assert!(text.contains("GitHub shows ten annotations of each level; 3 more:\n"), "{text}");
    assert_eq!(text.lines().filter(|line| line.contains(": warning[register-spill]")).count(), 3, "{text}");
}

#[test]
fn test_results_count_what_fails_a_run() {
    let text = report("junit", &[]);
    let loud = findings().iter().filter(|one| one["level"] != "note" && one["status"] == "shown").count();
    assert!(text.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>"), "{text}");
    assert!(text.contains(&format!("failures=\"{loud}\"")), "{text}");
    assert_eq!(text.matches("<failure").count(), loud);
    for (level, fails) in [("deny", &["deny"][..]), ("note", &["deny", "warn", "note"]), ("never", &[])] {
        let text = report("junit", &["--fail-on", level]);
        let is_failed = |one: &&Value| one["status"] == "shown" && fails.contains(&one["level"].as_str().unwrap_or(""));
        assert_eq!(text.matches("<failure").count(), findings().iter().filter(is_failed).count(), "{level}");
    }
}

#[test]
fn a_table_of_values_has_as_many_cells_in_every_row() {
    let text = report("csv", &[]);
    let cells = |row: &str| {
        let mut quoted = false;
        row.chars()
            .filter(|character| {
                quoted ^= *character == '"';
                *character == ',' && !quoted
            })
            .count()
    };
    let rows: Vec<usize> = text.lines().map(cells).collect();
    assert_eq!(rows.len(), 1 + findings().len());
    assert!(rows.iter().all(|count| *count == rows[0]), "{rows:?}");
}

#[test]
fn characters_that_a_format_cannot_hold_are_replaced() {
    let log = "a.cu(3): error: x \u{fffe} y\nptxas info    : Compiling entry function 'k\u{1b}[2J' for 'sm_90'\n\
               ptxas info    : Function properties for k\u{1b}[2J\n    8 bytes stack frame, 8 bytes spill stores, 8 bytes spill \
               loads\nptxas info    : Used 32 registers, used 0 barriers\n";
    for format in ["junit", "csv", "short", "github", "markdown", "gitlab", "sarif", "json", "html"] {
        let text = output(["warplint", "--isolated", "--format", format, "-"].iter(), log.as_bytes());
        assert!(!text.contains('\u{1b}'), "{format}: {text}");
        if format == "junit" {
            assert!(text.contains("x \u{fffd} y") && !text.contains('\u{fffe}'), "{text}");
        }
    }
}

#[test]
fn a_comment_for_a_pull_request_sums_up_and_folds_notes() {
    let text = report("markdown", &[]);
    assert!(text.starts_with("### warplint\n\n**1 error, "), "{text}");
    assert!(text.contains("\n<details><summary>") && text.trim_end().ends_with("</details>"), "{text}");
    assert!(text.lines().filter(|line| line.starts_with("| ")).all(|line| line.ends_with(" |")), "{text}");
}

#[test]
fn one_run_writes_several_reports() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("several-reports");
    fs::create_dir_all(&folder).expect("a folder");
    let (sarif, csv) = (folder.join("r.sarif"), folder.join("r.csv"));
    let more = [format!("sarif={}", sarif.display()), format!("csv={}", csv.display())];
    let text = report("short", &["--report", &more[0], "--report", &more[1]]);
    assert_eq!(text, report("short", &[]));
    assert_eq!(fs::read_to_string(&sarif).expect("written"), report("sarif", &[]));
    assert_eq!(fs::read_to_string(&csv).expect("written"), report("csv", &[]));
}
