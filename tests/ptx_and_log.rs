//! PTX beside a log, and beside its source: one kernel, whoever tells of it, and comments that hold for its findings.
#![allow(clippy::unwrap_used, reason = "a test stops where it is broken")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// The JSON report of a run in `folder`.
fn report_in(folder: &Path, args: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_warplint"))
        .args(["--isolated", "-f", "json"])
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn report(args: &[&str]) -> Value {
    report_in(Path::new(env!("CARGO_MANIFEST_DIR")), args)
}

/// A folder of its own with these files.
fn folder(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    for (name, text) in files {
        fs::write(folder.join(name), text).unwrap();
    }
    folder
}

fn findings(report: &Value) -> Vec<String> {
    let of = |finding: &Value| {
        let text = |key: &str| finding[key].as_str().unwrap().to_owned();
        format!("{}[{}] {}", text("status"), text("rule"), text("message"))
    };
    report["findings"].as_array().unwrap().iter().map(of).collect()
}

#[test]
fn the_block_that_ptx_requires_is_the_one_of_the_occupancy() {
    let log = "fixtures/ptxas/13.5/required-block/input.log";
    let ptx = "fixtures/kernels/block_size.ptx";
    for files in [[log, ptx], [ptx, log]] {
        let report = report(&files);
        let kernels = report["kernels"].as_array().unwrap();
        assert_eq!(kernels.len(), 1, "{kernels:?}");
        let (launch, occupancy) = (&kernels[0]["launch"], &kernels[0]["occupancy"][0]);
        assert_eq!((&launch["block"], &launch["block_source"]), (&[16, 16, 1][..].into(), &"reqntid".into()));
        assert_eq!((&occupancy["block"], &occupancy["gpu"]), (&[16, 16, 1][..].into(), &"sm_90".into()));
        assert_eq!(kernels[0]["reported_at"]["path"], log);
    }
    let alone = report(&[log]);
    assert_eq!(alone["kernels"][0]["launch"]["block_source"], "sweep");
}

#[test]
fn a_stack_frame_is_told_with_the_variable_that_the_ptx_has_for_it() {
    let report = report(&["fixtures/ptxas/13.5/local-depot/input.log", "fixtures/kernels/local_entry.ptx"]);
    assert_eq!(
        findings(&report),
        [
            "shown[local-memory] `k_lmem` keeps 40 KiB per thread in local memory on sm_80, none of it spills: `buf` of its PTX \
          holds 40 KiB"
        ]
    );
    assert_eq!(report["findings"][0]["facts"]["depot_bytes"], 40960);
}

/// The log of a kernel `k` for sm_80.
fn log(registers: u32) -> String {
    format!(
        "ptxas info    : Compiling entry function 'k' for 'sm_80'\nptxas info    : Function properties for k\n    \
         0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\nptxas info    : Used {registers} registers\n"
    )
}

fn kernel(directives: &str, body: &str) -> String {
    format!(
        ".version 8.5\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{directives}\n{{\n\
         \t.reg .b32 %r<20>;\n\t.reg .f32 %f<20>;\n{body}\n\tret;\n}}\n"
    )
}

#[test]
fn tensor_core_work_in_the_ptx_makes_low_occupancy_a_note() {
    let mma = "\tmma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, {%r4,%r5}, \
               {%f0,%f1,%f2,%f3};";
    for (body, level) in [("", "warn"), (mma, "note")] {
        let folder = folder("tensor", &[("k.log", &log(168)), ("k.ptx", &kernel("", body))]);
        let report = report_in(&folder, &["k.log", "k.ptx", "--block", "256"]);
        let finding = &report["findings"][0];
        assert_eq!(
            (&finding["rule"], &finding["level"]),
            (&"register-limited-occupancy".into(), &level.into()),
            "{body}"
        );
    }
}

#[test]
fn a_block_of_launch_bounds_is_called_that() {
    let folder = folder("bounds", &[("k.log", &log(168)), ("k.ptx", &kernel(".maxntid 256, 1, 1", ""))]);
    let report = report_in(&folder, &["k.log", "k.ptx"]);
    assert_eq!(
        findings(&report),
        [
            "shown[register-limited-occupancy] `k` reaches 12.5 % occupancy on sm_80 with the largest block of its launch bounds: \
          168 registers per thread leave room for 1 block of 256 threads an SM, 8 of 64 warps"
        ]
    );
    assert!(report["findings"][0]["help"].as_str().unwrap().contains("launch bounds are the most threads"));
}

#[test]
fn every_rule_on_occupancy_calls_a_block_of_launch_bounds_that() {
    for (threads, registers, said) in [
        (
            640,
            20,
            "[unused-warp-slots] `k` leaves 4 of 64 warp slots empty on sm_80 with the largest block of its launch bounds",
        ),
        (
            256,
            41,
            "[register-cliff] `k` is 1 register per thread over a step on sm_80 with the largest block of its launch bounds",
        ),
    ] {
        let ptx = kernel(&format!(".maxntid {threads}"), "");
        let folder = folder("cliff", &[("k.log", &log(registers)), ("k.ptx", &ptx)]);
        let found = findings(&report_in(&folder, &["k.log", "k.ptx"]));
        assert!(found.iter().any(|line| line.contains(said)), "{found:?}");
        // What a launch is known to have is not.
        let known = findings(&report_in(&folder, &["k.log", "k.ptx", "--block", &threads.to_string()]));
        assert!(known.iter().all(|line| !line.contains("launch bounds")), "{known:?}");
    }
}

#[test]
fn comments_in_ptx_hold_for_findings_of_the_log_too() {
    let ptx = kernel("// warplint: allow(register-limited-occupancy) two stages", "");
    let folder = folder("comments", &[("k.log", &log(168)), ("k.ptx", &ptx), ("clean.log", &log(20))]);
    let found = report_in(&folder, &["k.log", "k.ptx", "--block", "256"]);
    assert!(findings(&found)[0].starts_with("allowed[register-limited-occupancy]"), "{found}");
    assert_eq!(
        (&found["findings"][0]["reason"], found["findings"].as_array().unwrap().len()),
        (&"two stages".into(), 1)
    );
    // With a log that has nothing of the kind it is idle; without a log nobody knows.
    let idle = report_in(&folder, &["clean.log", "k.ptx", "--block", "256"]);
    assert_eq!(
        findings(&idle),
        ["shown[unused-allow] `register-limited-occupancy` is allowed for `k`, which has no such finding"]
    );
    assert!(findings(&report_in(&folder, &["k.ptx"])).is_empty());
}

/// A shuffle of before sm_70 at line 3 of `k.cu`, which is inlined from line 9.
fn with_source() -> String {
    let shuffle = "\t.loc 1 3 5\n\t.loc 1 9 1, function_name $L__info_string0, inlined_at 1 3 5\n\tshfl.down.b32 %r1, %r2, 1, 31;";
    kernel("", shuffle) + "\t.file 1 \"/build/k.cu\"\n"
}

#[test]
fn a_comment_in_the_source_silences_what_the_ptx_has_at_its_line() {
    let lines = |third: &str| format!("// a kernel\n__global__ void k(int *p) {{\n{third}\n}}\n\n\n\n\n// inlined\n");
    let allow = "// warplint: allow(unsynchronised-warp-intrinsic) one warp";
    for (source, expected) in [
        (lines("    swap(p);"), "shown[unsynchronised-warp-intrinsic]"),
        (lines(&format!("    swap(p); {allow}")), "allowed[unsynchronised-warp-intrinsic]"),
        (lines(&format!("    swap(p); {}", allow.replace("unsynchronised-warp-intrinsic", "sync"))), "allowed["),
        (lines("    swap(p);").replacen("// a kernel", "// warplint: allow-file(sync)", 1), "allowed["),
        // Above the line, alone; and above another line, alone.
        (format!("\n{allow}\n    swap(p);\n"), "allowed["),
        (format!("{allow}\n//\n    swap(p);\n"), "allowed["),
        (format!("{allow}\n__global__ void k()\n    swap(p);\n"), "shown["),
    ] {
        let folder = folder("source", &[("k.ptx", &with_source()), ("k.cu", &source)]);
        let report = report_in(&folder, &["k.ptx"]);
        let found = findings(&report);
        assert_eq!(found.len(), 1, "{source}\n{found:?}");
        assert!(found[0].starts_with(expected), "{source}\n{found:?}");
        assert_eq!(report["findings"][0]["location"]["path"], "k.cu");
    }
    // A comment at a line that was looked at, for what is not there, and a name that nothing has.
    for (rule, said) in
        [("divergent-switch", "which has no such finding"), ("sink", "no rule or group is called `sink`")]
    {
        let source = lines(&format!("    swap(p); // warplint: allow({rule})"));
        let folder = folder("idle", &[("k.ptx", &with_source()), ("k.cu", &source)]);
        let found = findings(&report_in(&folder, &["k.ptx"]));
        assert!(found.iter().any(|line| line.starts_with("shown[unused-allow]") && line.contains(said)), "{found:?}");
    }
}

/// As where a search for sources stops before it comes to the file.
#[test]
fn a_source_that_was_named_has_that_spelling_wherever_sources_are_searched() {
    let source = "// a kernel\n__global__ void k(int *p) {\n    swap(p);\n}\n";
    let folder = folder("spelling", &[("k.ptx", ""), ("other.cuh", "\n")]);
    for place in ["rep", "sub"] {
        fs::create_dir_all(folder.join(place)).unwrap();
        fs::write(folder.join(place).join("k.cu"), source).unwrap();
    }
    let path = |file: &str, args: &[&str]| {
        fs::write(folder.join("k.ptx"), with_source().replace("/build/k.cu", file)).unwrap();
        let report = report_in(&folder, &[&["k.ptx", "--source", "other.cuh"], args].concat());
        assert_eq!(findings(&report).len(), 1, "{file}");
        report["findings"][0]["location"]["path"].as_str().unwrap().to_owned()
    };
    let absolute = fs::canonicalize(folder.join("rep/k.cu")).unwrap();
    for file in [absolute.to_str().unwrap(), "/build/rep/k.cu", "k.cu"] {
        assert_eq!(path(file, &["rep/k.cu"]), "rep/k.cu", "{file}");
    }
    assert_eq!(path(absolute.to_str().unwrap(), &["sub/k.cu", "rep/k.cu"]), "rep/k.cu");
    // Of two that may be it, none is.
    assert_eq!(path("/build/k.cu", &["sub/k.cu", "rep/k.cu"]), "/build/k.cu");
}

#[test]
fn an_odd_block_that_ptx_requires_is_told_at_the_declaration() {
    let folder = folder("odd", &[("k.ptx", &kernel(".reqntid 10, 10, 1", "")), ("one.ptx", &kernel(".reqntid 1", ""))]);
    let found = report_in(&folder, &["k.ptx"]);
    assert_eq!(
        findings(&found),
        ["shown[under-filled-warp] `k` with 100 threads per block (10×10) leaves 28 of 128 lanes idle (22 %)"]
    );
    let (finding, location) = (&found["findings"][0], &found["findings"][0]["location"]);
    assert_eq!((&finding["level"], &location["line"], &location["column"]), (&"warn".into(), &4.into(), &1.into()));
    assert!(findings(&report_in(&folder, &["one.ptx"])).is_empty());
    fs::write(folder.join("bound.ptx"), kernel(".maxntid 200", "")).unwrap();
    let bound = report_in(&folder, &["bound.ptx"]);
    assert_eq!(bound["findings"][0]["level"], "note");
    assert!(
        findings(&bound)[0].contains("with 200 threads per block, the most of its launch bounds, leaves 24 of 224")
    );
}
