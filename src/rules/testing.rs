//! Lints a log as a user would, for the tests of rules.

use std::ffi::OsString;
use std::sync::atomic::{AtomicUsize, Ordering};

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

/// The findings of one rule in the JSON report with this configuration, those that are shown: level and message.
pub(super) fn told_with(config: &str, rule: &str, log: &str, args: &[&str]) -> Vec<String> {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("warplint-rule-{}-{number}.toml", std::process::id()));
    std::fs::write(&path, config).expect("a file");
    let shown = path.display().to_string();
    let fixed = ["warplint", "--config", &shown, "--passthrough", "none", "--source", "Cargo.toml", "-f", "json"];
    let report = run_with(fixed.iter().chain(args).chain(&["-"]).map(OsString::from).collect(), log);
    let _ = std::fs::remove_file(&path);
    let report: serde_json::Value = serde_json::from_str(&report).expect("a JSON report");
    let findings = report["findings"].as_array().expect("findings");
    let ours = findings.iter().filter(|one| one["rule"] == rule && one["status"] == "shown");
    let text = |one: &serde_json::Value, key: &str| one[key].as_str().unwrap_or_default().to_owned();
    ours.map(|one| format!("{}: {}", text(one, "level"), text(one, "message"))).collect()
}

/// The advice of one rule.
pub(super) fn helps(rule: &str, log: &str) -> Vec<String> {
    let json = json(log, &[]);
    let findings = json["findings"].as_array().expect("a list of findings");
    let ours = findings.iter().filter(|finding| finding["rule"] == rule);
    ours.map(|finding| finding["help"].as_str().unwrap_or_default().to_owned()).collect()
}

/// PTX of the kernel `k`, for 9.0: `%t` is the index of the thread, `%n` a parameter, and `%x` what the thread loaded.
pub(super) fn kernel(body: &str) -> String {
    format!(
        ".version 9.5\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 k_0, .param .u32 k_1)\n{{\n\
         .reg .pred %p<9>;\n.reg .b32 %r<9>;\n.reg .f32 %x;\n.reg .b32 %t;\n.reg .b32 %n;\n.reg .b64 %rd<9>;\n\
         ld.param.u64 %rd1, [k_0];\nld.param.u32 %n, [k_1];\ncvta.to.global.u64 %rd2, %rd1;\nmov.u32 %t, %tid.x;\n\
         mul.wide.u32 %rd3, %t, 4;\nadd.s64 %rd4, %rd2, %rd3;\nld.global.f32 %x, [%rd4];\n{body}\n\
         st.global.f32 [%rd4], %x;\nEND:\nret;\n}}\n"
    )
}

/// `count` instructions.
pub(super) fn work(count: usize) -> String {
    "fma.rn.f32 %x, %x, %x, %x;\n".repeat(count)
}

/// `decide` sets `%p1`, and one side or the other runs.
pub(super) fn parted(decide: &str, jumps: &str, stays: &str) -> String {
    kernel(&format!("{decide}\n@%p1 bra JUMPS;\n{stays}bra.uni MEET;\nJUMPS:\n{jumps}MEET:"))
}

/// `decide` sets `%p1`, and one side runs where it does not hold.
pub(super) fn one_sided(decide: &str, side: &str) -> String {
    kernel(&format!("{decide}\n@%p1 bra MEET;\n{side}MEET:"))
}

/// Half of a warp's lanes have `%p1`.
pub(super) const ODD: &str = "and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 1;";

/// Half of the warps have `%p1`.
pub(super) const ODD_WARP: &str = "shr.u32 %r1, %t, 5; and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 1;";

/// The lines of `-f short` on sources, without their places.
pub(super) fn sources(files: &[(&str, &str)], args: &[&str]) -> Vec<String> {
    with_log(files, "", args)
}

/// The same on sources and a log, where there is one.
pub(super) fn with_log(files: &[(&str, &str)], log: &str, args: &[&str]) -> Vec<String> {
    let args: Vec<&str> = ["-f", "short"].iter().chain(args).copied().collect();
    let (found, folder) = run_on(files, log, &args);
    let is_ours = |line: &str| line.starts_with(&folder);
    found
        .lines()
        .map(|line| if is_ours(line) { line.split_once(": ").map_or(line, |(_, told)| told) } else { line })
        .map(str::to_owned)
        .collect()
}

/// What the report in full says of files, in one line.
pub(super) fn human_with_args(files: &[(&str, &str)], args: &[&str]) -> String {
    run_on(files, "", args).0.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What the report in full says of sources and a log that are linted together, in one line.
pub(super) fn human_with_log(files: &[(&str, &str)], log: &str) -> String {
    run_on(files, log, &[]).0.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What is printed for files and a log in a folder of their own, and how that is called.
fn run_on(files: &[(&str, &str)], log: &str, args: &[&str]) -> (String, String) {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("warplint-rules-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    for (name, text) in files.iter().chain((!log.is_empty()).then_some(&("build.log", log))) {
        std::fs::write(folder.join(name), text).expect("a file");
    }
    let mut paths = vec![folder.clone()];
    paths.extend((!log.is_empty()).then(|| folder.join("build.log")));
    let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    let args = ["warplint", "--isolated"].iter().chain(args).map(OsString::from);
    let found = run_with(args.chain(paths.iter().map(OsString::from)).collect(), "");
    let _ = std::fs::remove_dir_all(&folder);
    (found, paths[0].clone())
}

fn report(format: &str, log: &str, args: &[&str]) -> String {
    // No kernel of these logs is declared in a source that lies around.
    let fixed = ["warplint", "--isolated", "--passthrough", "none", "--source", "Cargo.toml", "-f", format];
    run_with(fixed.iter().chain(args).chain(&["-"]).map(OsString::from).collect(), log)
}

fn run_with(args: Vec<OsString>, input: &str) -> String {
    let mut stdout = Vec::new();
    let mut stderr = Vec::new();
    run(
        args,
        &mut Streams {
            stdin: &mut input.as_bytes(),
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
