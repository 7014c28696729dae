//! Reports on whole logs: what is grouped, what is left out, and what stays the same between runs.
#![allow(clippy::unwrap_used, reason = "a test stops where it is broken")]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// Runs warplint with `log` piped in.
fn piped(args: &[&str], log: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_warplint"))
        .args(args)
        .arg("--isolated")
        .env("NO_COLOR", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A run that reads a file does not wait for its input.
    let _ = child.stdin.take().unwrap().write_all(log.as_bytes());
    child.wait_with_output().unwrap()
}

fn stdout(args: &[&str], log: &str) -> String {
    String::from_utf8(piped(args, log).stdout).unwrap()
}

fn table(args: &[&str], log: &str) -> String {
    let all: Vec<&str> = ["kernels"].iter().chain(args).copied().collect();
    stdout(&all, log)
}

/// The record of a kernel that spills `bytes`.
fn spilling(name: &str, arch: &str, bytes: u32) -> String {
    format!(
        "ptxas info    : Compiling entry function '{name}' for '{arch}'
ptxas info    : Function properties for {name}
    {bytes} bytes stack frame, {bytes} bytes spill stores, {bytes} bytes spill loads
ptxas info    : Used 64 registers, used 1 barriers, 400 bytes cmem[0]
ptxas info    : Compile time = {bytes}.25 ms
"
    )
}

fn findings(args: &[&str], log: &str) -> Vec<Value> {
    let all: Vec<&str> = ["-f", "json"].iter().chain(args).copied().collect();
    let report: Value = serde_json::from_str(&stdout(&all, log)).unwrap();
    report["findings"].as_array().unwrap().clone()
}

const RUNTIME: &str =
    "__nv_static_51__0afad4c0_22_cuda_device_runtime_cu_f78b5b52_735892__Z16memset_3d_deviceImLi1EEvT_";

#[test]
fn others_of_a_group_are_told_with_their_own_figures() {
    let log: String = (1..=5).map(|n| spilling(&format!("_Z4gemmILi{n}EEvPf"), "sm_80", 16 * n)).collect();
    let report = stdout(&[], &log);
    assert!(report.contains("`gemm<5>` spills"), "{report}");
    assert!(report.contains("also: 4 more instances, 16 to 64 B"), "{report}");
    let report = stdout(&[], &log[..2 * log.len() / 5]);
    assert!(report.contains("also: `gemm<1>` (16 B)"), "{report}");
}

#[test]
fn instances_whose_short_names_are_alike_are_counted() {
    let name = |last: &str| {
        let inner = "N9a_library6detail30a_policy_with_a_very_long_nameE";
        format!("_Z20kernel_of_a_templateI{inner}{inner}{inner}{last}EvPf")
    };
    let log: String = ["Li1E", "Li2E", "Li3E"].iter().map(|last| spilling(&name(last), "sm_80", 16)).collect();
    let report = stdout(&[], &log);
    assert!(report.contains("also: 2 more instances\n"), "{report}");
}

#[test]
fn a_flood_of_instances_is_counted_without_their_figures() {
    let log: String = (1..=5_002).map(|n| spilling(&format!("_Z4gemmILi{n}EEvPf"), "sm_80", 16)).collect();
    let report = stdout(&["--passthrough", "none"], &log);
    assert!(report.contains("also: 5001 more, with figures of their own\n"), "{report}");
}

#[test]
fn methods_of_a_class_template_are_reported_each() {
    let log = spilling("_ZN1AIiE1fEPf", "sm_80", 16) + &spilling("_ZN1AIiE1gEPf", "sm_80", 16);
    let report = stdout(&[], &log);
    assert!(report.contains("`f` spills") && report.contains("`g` spills"), "{report}");
    assert!(!report.contains("also:"), "{report}");
}

#[test]
fn kernels_of_the_device_runtime_are_counted_apart_and_left_out_of_the_table() {
    let log = spilling("mine", "sm_80", 8) + &spilling(RUNTIME, "sm_80", 0);
    assert!(stdout(&[], &log).contains("1 kernel and 1 of the device runtime on sm_80: "));
    for format in ["human", "markdown"] {
        let text = table(&["-f", format], &log);
        assert!(text.contains("mine") && !text.contains("memset_3d_device"), "{text}");
        assert!(text.ends_with("1 kernel of the CUDA device runtime is left out\n"), "{text}");
    }
    for format in ["csv", "json"] {
        assert!(table(&["-f", format], &log).contains("memset_3d_device"));
    }
}

#[test]
fn a_table_can_be_sorted_by_compile_time() {
    let log = spilling("quick", "sm_80", 8) + &spilling("slow", "sm_80", 40);
    let text = table(&["--sort", "time"], &log);
    assert!(text.find("slow").unwrap() < text.find("quick").unwrap(), "{text}");
    assert!(text.contains("compile") && text.contains("40 ms"), "{text}");
    let csv = table(&["-f", "csv"], &log);
    let mut lines = csv.lines();
    assert!(lines.next().unwrap().ends_with(",compile_time_ms"), "{csv}");
    assert!(lines.next().unwrap().ends_with(",8.25"), "{csv}");
    assert!(table(&["-f", "markdown"], &log).contains("| compile |"));
    let old: String =
        log.lines().filter(|line| !line.contains("Compile time")).map(|line| format!("{line}\n")).collect();
    assert!(!table(&[], &old).contains("compile"));
}

#[test]
fn a_table_without_kernels_says_why() {
    let says = |log: &str| {
        let output = piped(&["kernels", "--passthrough", "none"], log);
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(says("ptxas fatal   : Unresolved extern function 'f'\n").contains("the build failed, first with"));
    let spill = "ptxas warning : Registers are spilled to local memory in function 'k', 16 bytes spill stores, 16 bytes spill loads\n";
    assert!(says(spill).contains("shows 1 message about"), "{}", says(spill));
    assert!(says("all is well\n").contains("no kernel was found in the input"));
}

#[test]
fn a_fingerprint_is_the_same_for_a_pipe_and_a_file() {
    let log = "nvcc -c a.cu -o a.o\n";
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("reports-nothing.log");
    fs::write(&path, log).unwrap();
    let of = |found: Vec<Value>| found.iter().map(|one| one["fingerprint"].clone()).collect::<Vec<_>>();
    let from_pipe = of(findings(&[], log));
    assert_eq!(from_pipe.len(), 1);
    assert_eq!(from_pipe, of(findings(&[path.to_str().unwrap()], "")));
}

#[test]
fn warnings_of_one_kernel_with_other_words_have_other_fingerprints() {
    let log = "\
ptxas warning : Something odd about 12 things in function 'k'
ptxas warning : Another thing is odd in function 'k'
";
    let found = findings(&["--warn", "compiler-warning"], log);
    let mut fingerprints: Vec<&str> = found.iter().map(|one| one["fingerprint"].as_str().unwrap()).collect();
    let count = fingerprints.len();
    fingerprints.sort_unstable();
    fingerprints.dedup();
    assert_eq!(fingerprints.len(), count);
    assert!(count >= 2, "{found:?}");
    let again = findings(&["--warn", "compiler-warning"], &log.replace("12 things", "13 things"));
    let again: Vec<_> = again.iter().map(|one| one["fingerprint"].clone()).collect();
    assert_eq!(again, found.iter().map(|one| one["fingerprint"].clone()).collect::<Vec<_>>());
}

#[test]
fn an_occupancy_without_the_barriers_that_ptxas_could_not_count_is_the_most_it_can_be() {
    let log = |arch: &str, barriers: u32| {
        let records = spilling("k", arch, 0);
        let used = records.find("Used ").unwrap();
        format!("{}Used 32 registers, used {barriers} barriers\n", &records[..used])
    };
    let counted = table(&["--block", "128"], &log("sm_120", 4));
    assert!(!counted.contains("could not count") && !counted.contains('≤') && !counted.contains("<="), "{counted}");
    let uncounted = table(&["--block", "128"], &log("sm_120", 16));
    assert!(uncounted.contains("≤100 %") || uncounted.contains("<=100 %"), "{uncounted}");
    assert!(uncounted.contains("could not count the barriers"), "{uncounted}");
    assert!(!table(&["--block", "128"], &log("sm_80", 16)).contains("could not count"));
    let markdown = table(&["--block", "128", "--format", "markdown"], &log("sm_120", 16));
    assert!(markdown.contains("≤100 %") && markdown.contains("could not count the barriers"), "{markdown}");
}
