//! Lints a log as a user would, for the tests of rules.

use std::ffi::OsString;

use crate::run::{Streams, run};

/// The lines of `-f short`, without their places.
pub(super) fn lint(log: &str, args: &[&str]) -> Vec<String> {
    report("short", log, args).lines().map(|line| without_place(line).to_owned()).collect()
}

/// What a person reads.
pub(super) fn human(log: &str, args: &[&str]) -> String {
    report("human", log, args)
}

/// Those of one rule.
pub(super) fn told(rule: &str, log: &str) -> Vec<String> {
    let tag = format!("[{rule}] ");
    lint(log, &[]).into_iter().filter(|line| line.contains(&tag)).map(|line| line.replacen(&tag, ": ", 1)).collect()
}

/// The advice of one rule.
pub(super) fn helps(rule: &str, log: &str) -> Vec<String> {
    let json: serde_json::Value = serde_json::from_str(&report("json", log, &[])).expect("a JSON report");
    let findings = json["findings"].as_array().expect("a list of findings");
    let ours = findings.iter().filter(|finding| finding["rule"] == rule);
    ours.map(|finding| finding["help"].as_str().unwrap_or_default().to_owned()).collect()
}

fn report(format: &str, log: &str, args: &[&str]) -> String {
    let fixed = ["warplint", "--isolated", "--passthrough", "none", "-f", format];
    let args: Vec<OsString> = fixed.iter().chain(args).chain(&["-"]).map(OsString::from).collect();
    let mut stdout = Vec::new();
    let mut stderr = Vec::new();
    run(
        args,
        &mut Streams {
            stdin: &mut log.as_bytes(),
            stdin_is_terminal: false,
            stderr_is_terminal: false,
            stdout: &mut stdout,
            stderr: &mut stderr,
            terminal: None,
        },
    );
    assert_eq!(String::from_utf8_lossy(&stderr), "");
    String::from_utf8(stdout).expect("a report is text")
}

/// `<stdin>:4:5: warning[rule] …` from the level on.
fn without_place(line: &str) -> &str {
    match line.strip_prefix("<stdin>:") {
        Some(rest) => rest.split_once(": ").map_or(line, |(_, told)| told),
        None => line,
    }
}
