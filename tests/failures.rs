//! Builds that failed: whatever tool says it, and however much else is in the log.
#![allow(clippy::unwrap_used, reason = "a test stops where it is broken")]

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::Value;

const CLEAN: &str = "\
ptxas info    : Compiling entry function '_Z5scalePf' for 'sm_90'
ptxas info    : Function properties for _Z5scalePf
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 0 barriers, 400 bytes cmem[0]
";

/// The exit status and the JSON report.
fn lint(log: &str) -> (Option<i32>, Value) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_warplint"))
        .args(["--isolated", "--passthrough", "none", "-f", "json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(log.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap())
}

fn findings<'a>(report: &'a Value, rule: &str) -> Vec<&'a Value> {
    report["findings"].as_array().unwrap().iter().filter(|finding| finding["rule"] == rule).collect()
}

#[test]
fn a_failure_beside_a_clean_kernel_is_told_whoever_says_it() {
    for line in [
        "x.cu(1): catastrophic error: cannot open source file \"a.h\"",
        "x.cu(1): internal error: assertion failed at: \"a.c\", line 3",
        "1 error detected in the compilation of \"x.cu\".",
        "2 errors detected in the compilation of \"x.cu\".",
        "error   : Undefined reference to 'x' in 'y'",
        "fatal   : elfLink linker library load error",
        "  1>x.cu(1): error : identifier",
        "nvcc.exe : fatal error : x",
        "Segmentation fault (core dumped)",
        "Killed",
        "bash: line 1: nvcc: command not found",
        "/bin/sh: 1: nvcc: not found",
        "make: nvcc: No such file or directory",
        "CMake Error at x.txt:3 (message):",
    ] {
        for (log, at) in
            [(format!("{CLEAN}{line}\n"), 5), (format!("{line}\r\n{CLEAN}"), 1), (format!("{CLEAN}{line}"), 5)]
        {
            let (status, report) = lint(&log);
            let told = findings(&report, "build-failed");
            assert_eq!((status, told.len()), (Some(1), 1), "{line}");
            assert_eq!(
                (&told[0]["labels"][0]["line"], &told[0]["count"]),
                (&Value::from(at), &Value::from(1)),
                "{line}"
            );
        }
    }
}

#[test]
fn text_that_mentions_an_error_is_no_failure() {
    for line in [
        "x.cu(3): warning #1105-D: #warning directive: error: use v2",
        "x.cu(3): warning: error: not really",
        "max abs error: 1e-7",
        "relative error : 3",
        "error   : 1e-7",
        "check: error: 0.5",
        "0 errors detected in the compilation of \"x.cu\".",
    ] {
        let (status, report) = lint(&format!("{CLEAN}{line}\n"));
        assert_eq!((status, findings(&report, "build-failed").len()), (Some(0), 0), "{line}");
    }
}

#[test]
fn the_last_words_of_a_long_log_have_their_line() {
    let filler = "-- a line of another tool\n".repeat(20_000);
    let (status, report) = lint(&format!("{CLEAN}{filler}Killed\nbye\n"));
    assert_eq!(status, Some(1));
    let told = findings(&report, "build-failed");
    assert_eq!(told[0]["labels"][0]["line"], 20_005);
}

#[test]
fn an_error_after_a_flood_of_messages_still_fails_the_build() {
    let mut records = String::new();
    for at in 0..65_540 {
        writeln!(records, "ptxas info    : Used x{at} registers").unwrap();
    }
    let mut warnings = String::new();
    for at in 0..40_000 {
        writeln!(warnings, "nvcc warning : {at} {}", "w".repeat(450)).unwrap();
    }
    for (flood, least) in [(records, 4), (warnings, 1000)] {
        let (status, report) = lint(&format!("{flood}x.cu(3): error: identifier \"q\" is undefined\n"));
        assert_eq!(status, Some(1));
        assert_eq!(report["summary"]["build_failed"], true);
        assert_eq!(findings(&report, "build-failed").len(), 1);
        let unread = findings(&report, "unread-line");
        let lost: Vec<_> = unread.iter().filter(|finding| finding["facts"]["reason"] == "not-kept").collect();
        assert_eq!(lost.len(), 1);
        assert!(lost[0]["count"].as_u64().unwrap() >= least, "{}", lost[0]);
    }
}

#[test]
fn a_flood_of_errors_is_kept_in_part_and_the_rest_counted() {
    let mut errors = String::new();
    for at in 0..70_000 {
        writeln!(errors, "make: *** [x{at}.o] Error 1").unwrap();
    }
    let (status, report) = lint(&errors);
    assert_eq!(status, Some(1));
    let unread = findings(&report, "unread-line");
    assert_eq!((&unread[0]["facts"]["reason"], &unread[0]["count"]), (&Value::from("not-kept"), &Value::from(3440)));
}
