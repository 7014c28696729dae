//! Lints a log as a user would, for the tests of rules.

use std::ffi::OsString;

use crate::run::{Streams, run};

/// A kernel `k` of PTX whose lanes part by the thread's index, with code on both sides; `{above}`, `{head}` and `{line}` of
/// the text are replaced.
pub(super) fn divergent(above: &str, head: &str, line: &str) -> String {
    let work = "\tfma.rn.f32 %f1, %f1, %f1, %f1;\n".repeat(20);
    let other = "\tmul.f32 %f1, %f1, %f1;\n".repeat(20);
    format!(
        ".version 8.5\n.target sm_80\n.address_size 64\n{above}.visible .entry k(.param .u64 p){head}\n{{\n\
         \t.reg .pred %p<2>;\n\t.reg .f32 %f<2>;\n\t.reg .b32 %r<3>;\n\t.reg .b64 %rd<2>;\n\
         \tld.param.u64 %rd1, [p];\n\tmov.u32 %r1, %tid.x;\n\tand.b32 %r2, %r1, 1;\n\
         \tcvt.rn.f32.u32 %f1, %r1;\n\tsetp.eq.s32 %p1, %r2, 0;\n{line}\n\
         {work}\tbra.uni $out;\n$even:\n{other}$out:\n\tst.global.f32 [%rd1], %f1;\n\tret;\n}}\n"
    )
}

/// The statement of [`divergent`] that its lanes part at.
pub(super) const PARTING: &str = "\t@%p1 bra $even;";

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

/// The JSON report.
pub(super) fn json(log: &str, args: &[&str]) -> serde_json::Value {
    serde_json::from_str(&report("json", log, args)).expect("a JSON report")
}

/// The advice of one rule.
pub(super) fn helps(rule: &str, log: &str) -> Vec<String> {
    let json = json(log, &[]);
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
