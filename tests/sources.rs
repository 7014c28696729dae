//! CUDA sources, alone and beside the log and the PTX that a compiler made of them.
#![allow(clippy::unwrap_used, reason = "a test stops where it is broken")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

const STENCIL: &str = "fixtures/cuda/stencil";

fn run_in(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warplint"));
    command.args(args).current_dir(folder).stdin(Stdio::null()).output().unwrap()
}

/// The JSON report of a run in `folder`.
fn report_in(folder: &Path, args: &[&str]) -> Value {
    let output = run_in(folder, &[&["--isolated", "-f", "json"], args].concat());
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn report(args: &[&str]) -> Value {
    report_in(Path::new(env!("CARGO_MANIFEST_DIR")), args)
}

/// A folder of its own with these files.
fn folder(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sources").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    for (name, text) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

/// Each finding as `rule place`, those that are allowed in brackets.
fn places(report: &Value) -> Vec<String> {
    let of = |finding: &Value| {
        let path = finding["location"]["path"].as_str().unwrap_or("?");
        let name = path.rsplit(['/', '\\']).next().unwrap();
        let told = format!("{} {name}:{}", finding["rule"].as_str().unwrap(), finding["location"]["line"]);
        if finding["status"] == "allowed" { format!("({told})") } else { told }
    };
    report["findings"].as_array().unwrap().iter().map(of).collect()
}

fn names(report: &Value) -> Vec<&str> {
    report["kernels"].as_array().unwrap().iter().map(|kernel| kernel["name"].as_str().unwrap()).collect()
}

const PLAIN: &str = "__global__ void k(float* p) { p[threadIdx.x] = 0; }\n";

/// The record of a kernel for sm_90 that spills.
fn spilling(symbol: &str) -> String {
    format!(
        "ptxas info    : Compiling entry function '{symbol}' for 'sm_90'\n\
         ptxas info    : Function properties for {symbol}\n    \
         16 bytes stack frame, 16 bytes spill stores, 16 bytes spill loads\n\
         ptxas info    : Used 32 registers, used 0 barriers\n"
    )
}

/// What only tells findings apart is not their reason.
#[test]
fn a_block_is_no_reason_of_a_finding() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_warplint"))
        .args(["--isolated", "-f", "json", "fixtures/hooks/block33.cu"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let facts = &report["findings"][0]["facts"];
    assert_eq!((&facts["block"], &facts["reason"]), (&"33".into(), &serde_json::Value::Null));
}

#[test]
fn log_ptx_and_source_tell_of_one_kernel_and_point_at_its_source() {
    let all = report(&[STENCIL, &format!("{STENCIL}/build.log")]);
    assert_eq!(
        places(&all),
        [
            "register-spill stencil.cu:20",
            "register-limited-occupancy stencil.cu:20",
            "under-filled-warp stencil.cu:62",
            "index-divergent-branch stencil.cu:41",
            "loose-launch-bounds stencil.cu:20",
            "unused-warp-slots stencil.cu:7",
            "unused-warp-slots stencil.cu:50",
            "unused-warp-slots stencil.cu:36",
            "(local-memory stencil.cu:50)",
        ]
    );
    let kernels = all["kernels"].as_array().unwrap();
    assert_eq!(kernels.len(), 5, "{:?}", names(&all));
    assert!(kernels.iter().all(|kernel| kernel["arch"] == "sm_90" && !kernel["declared_at"].is_null()));
    let spill = &all["findings"][0];
    let beside = &spill["labels"][1];
    assert_eq!((&beside["path"], &beside["line"]), (&json!(format!("{STENCIL}/build.log")), &json!(24)));
    assert_eq!(all["findings"][8]["reason"], "the table is short, and read once");
    assert!(all["findings"][8]["message"].as_str().unwrap().contains("`table` of line 52"), "{}", all["findings"][8]);
}

#[test]
fn the_order_of_inputs_changes_nothing_in_what_is_found() {
    let parts = ["stencil.cu", "stencil.cuh", "stencil.ptx", "build.log"].map(|name| format!("{STENCIL}/{name}"));
    let sorted = |order: [usize; 4]| {
        let mut found = places(&report(&order.map(|at| parts[at].as_str())));
        found.sort();
        found
    };
    let first = sorted([0, 1, 2, 3]);
    for order in [[3, 2, 1, 0], [2, 0, 3, 1], [1, 3, 0, 2]] {
        assert_eq!(sorted(order), first);
    }
}

#[test]
fn a_kernel_is_judged_at_the_launch_of_its_own_instantiation() {
    let all = report(&[STENCIL, &format!("{STENCIL}/build.log")]);
    let launch = |name: &str| {
        let kernel = all["kernels"].as_array().unwrap().iter().find(|kernel| kernel["name"] == name).unwrap();
        (
            kernel["launch"]["block"].clone(),
            kernel["launch"]["block_source"].clone(),
            kernel["launches"][0]["line"].clone(),
        )
    };
    let told = |block: u32, line: u32| (json!([block, 1, 1]), json!("launch-site"), json!(line));
    assert_eq!(launch("_ZN7stencil6smoothIfLi2EEEvPT_PKS1_i"), told(192, 61));
    assert_eq!(launch("_ZN7stencil6smoothIdLi4EEEvPT_PKS1_i"), told(100, 62));
    assert_eq!(launch("_ZN7stencil5solveEPfPKfi"), told(256, 63));
}

#[test]
fn a_source_alone_tells_kernels_by_their_declared_names() {
    let alone = report(&[STENCIL, "--kernel", "*"]);
    assert!(names(&alone).len() == 5, "the PTX is in the folder too: {:?}", names(&alone));
    let source = report(&[&format!("{STENCIL}/stencil.cu")]);
    assert_eq!(names(&source), ["stencil::smooth", "stencil::solve", "stencil::update", "stencil::lookup"]);
    let solve = &source["kernels"][1];
    assert_eq!((&solve["demangled"], &solve["arch"]), (&json!("stencil::solve"), &Value::Null));
    assert_eq!((&solve["launch"]["max_threads"], &solve["registers"]), (&json!(1024), &Value::Null));
    assert_eq!(solve["reported_at"], Value::Null);
    assert_eq!(source["summary"]["kernels"], 4);
}

#[test]
fn several_launch_sizes_of_one_kernel_are_each_judged() {
    let text = format!(
        "{PLAIN}void host(float* p, int n) {{\n  k<<<n, 64>>>(p);\n  k<<<n, 1024>>>(p);\n  k<<<n, 64>>>(p);\n}}\n"
    );
    let log = spilling("_Z1kPf").replace("Used 32", "Used 64");
    let folder = folder("several", &[("k.cu", &text), ("build.log", &log)]);
    let report = report_in(&folder, &["k.cu", "build.log"]);
    let blocks: Vec<&Value> =
        report["kernels"][0]["occupancy"].as_array().unwrap().iter().map(|one| &one["block"][0]).collect();
    assert_eq!(blocks, [64, 1024]);
    assert_eq!(report["kernels"][0]["launches"].as_array().unwrap().len(), 3);
}

#[test]
fn what_tells_a_block_comes_in_its_order() {
    let source = |above: &str, attribute: &str| {
        format!(
            "{above}\n__global__ void {attribute} k(float* p) {{}}\nvoid host(float* p, int n) {{ k<<<n, 128>>>(p); }}\n"
        )
    };
    let told = |above: &str, attribute: &str, args: &[&str]| {
        let folder = folder("order", &[("k.cu", &source(above, attribute))]);
        let launch = &report_in(&folder, &[&["k.cu"], args].concat())["kernels"][0]["launch"];
        format!("{} {}", launch["block"][0], launch["block_source"].as_str().unwrap())
    };
    assert_eq!(told("", "", &["--block", "64"]), "128 launch-site");
    assert_eq!(told("", "__launch_bounds__(256)", &[]), "128 launch-site");
    assert_eq!(told("// warplint: block=32", "", &["--block", "64"]), "32 comment");
    let folder = folder("order-unknown", &[("k.cu", "__global__ void __launch_bounds__(256) k(float* p) {}\n")]);
    let launch = |args: &[&str]| report_in(&folder, &[&["k.cu"], args].concat())["kernels"][0]["launch"].clone();
    assert_eq!(launch(&["--block", "64"])["block_source"], "option");
    assert_eq!(launch(&[])["block_source"], "launch-bounds");
}

#[test]
fn a_folder_is_walked_for_sources_and_for_headers_with_device_code() {
    let kernel = |name: &str| PLAIN.replace(" k(", &format!(" {name}("));
    let files = [
        ("a.cu", kernel("in_cu")),
        ("b.cuh", kernel("in_cuh")),
        ("c.hip", kernel("in_hip")),
        ("d.h", kernel("in_h")),
        ("e.hpp", "int host();\n".to_owned()),
        ("f.cpp", "void host() { in_cu<<<1, 1>>>(nullptr); }\n".to_owned()),
        ("g.txt", kernel("in_txt")),
        (".hidden/h.cu", kernel("hidden")),
        ("node_modules/i.cu", kernel("package")),
        ("target/j.cu", kernel("built")),
        ("deep/er/k.inl", kernel("in_inl")),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let folder = folder("walk", &files);
    let report = report_in(&folder, &["."]);
    assert_eq!(names(&report), ["in_cu", "in_cuh", "in_hip", "in_h", "in_inl"]);
    assert_eq!(report["summary"]["files"], 6);
    // What is named is read, wherever it lies.
    assert_eq!(names(&report_in(&folder, &[".hidden/h.cu"])), ["hidden"]);
    assert_eq!(names(&report_in(&folder, &["d.h", "a.cu", "./a.cu"])), ["in_h", "in_cu"]);
}

#[test]
fn many_files_are_told_in_the_same_order_every_time() {
    let files: Vec<(String, String)> = (0..200)
        .map(|number| {
            let launch = format!("void host{number}(float* p, int n) {{ k{number}<<<n, 33>>>(p); }}\n");
            (format!("f{number:03}.cu"), PLAIN.replace(" k(", &format!(" k{number}(")) + &launch)
        })
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let folder = folder("many", &files);
    let first = run_in(&folder, &["--isolated", "-f", "json", "."]).stdout;
    assert_eq!(first, run_in(&folder, &["--isolated", "-f", "json", "."]).stdout);
    let report: Value = serde_json::from_slice(&first).unwrap();
    assert_eq!(report["summary"]["warnings"], 200);
}

#[test]
fn what_cannot_be_read_as_a_source_is_an_error_and_the_rest_is_linted() {
    let folder = folder("broken", &[("k.cu", PLAIN), ("host.h", "int f();\n"), ("none/host.h", "int f();\n")]);
    fs::write(folder.join("binary.cu"), b"__global__\0void").unwrap();
    fs::write(folder.join("latin.cu"), b"// f\xfcr alle\n__global__ void latin(int* p) {}\n").unwrap();
    let large = fs::File::create(folder.join("large.cu")).unwrap();
    large.set_len(17 << 20).unwrap();
    let output = run_in(&folder, &["--isolated", "-f", "json", "."]);
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("binary.cu` is a binary file"), "{told}");
    assert!(told.contains("large.cu` has 17825792 bytes"), "{told}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(names(&report), ["k", "latin"]);
    // Headers without device code are nothing to lint.
    let output = run_in(&folder, &["--isolated", "none"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("is a folder without CUDA sources and PTX in it"));
}

#[test]
fn a_macro_of_one_file_makes_kernels_in_another() {
    let files = [("z.h", "#define OUR_KERNEL __global__ void\n"), ("a.cu", "OUR_KERNEL odd(float* p) {}\n")];
    assert_eq!(names(&report_in(&folder("alias", &files), &["."])), ["odd"]);
}

#[test]
fn a_source_that_is_searched_for_gives_a_log_its_place_and_its_launches() {
    let text = format!("\n{PLAIN}void host(float* p, int n) {{ k<<<n, 192>>>(p); other<<<n, 33>>>(p); }}\n");
    let files = [("src/k.cu", text.as_str()), ("build.log", &spilling("_Z1kPf"))];
    let folder = folder("searched", &files);
    let named = report_in(&folder, &["build.log", "--source", "src"]);
    assert_eq!(places(&named), ["register-spill k.cu:2", "unused-warp-slots k.cu:2"]);
    assert_eq!(named["kernels"][0]["launch"]["block_source"], "launch-site");
    // What lies around is searched for the place of a finding, and tells nothing of launches.
    let around = report_in(&folder, &["build.log"]);
    assert_eq!(places(&around), ["register-spill k.cu:2"]);
    assert_eq!(around["kernels"][0]["launch"]["block_source"], "sweep");
    assert_eq!(around["kernels"][0]["launches"], json!([]));
}

#[test]
fn comments_in_a_source_silence_what_a_log_says_of_its_kernel() {
    let allow = "// warplint: allow(register-spill) as measured";
    let log = spilling("_Z1kPf");
    for (text, symbol, line) in [
        (format!("{allow}\n{PLAIN}"), "_Z1kPf", 2),
        (PLAIN.replace('\n', &format!(" {allow}\n")), "_Z1kPf", 1),
        (format!("{allow}\ntemplate <typename T>\n{PLAIN}"), "_Z1kIfEvPf", 3),
        (format!("template <typename T>\n{allow}\n{PLAIN}"), "_Z1kIfEvPf", 3),
    ] {
        let folder = folder("comment", &[("k.cu", &text), ("build.log", &spilling(symbol))]);
        for args in [&["build.log", "k.cu"][..], &["build.log"], &["build.log", "--source", "."]] {
            assert_eq!(places(&report_in(&folder, args)), [format!("(register-spill k.cu:{line})")], "{text} {args:?}");
        }
    }
    let file = format!("{PLAIN}// warplint: allow-file(spills)\n");
    let folder = folder("comment-file", &[("k.cu", &file), ("build.log", &log)]);
    assert_eq!(places(&report_in(&folder, &["build.log", "k.cu"])), ["(register-spill k.cu:1)"]);
}

#[test]
fn a_comment_in_a_source_that_silences_nothing_is_told_where_the_run_could_know() {
    let with = |comment: &str, log: &str| {
        let files = [("k.cu", format!("// warplint: {comment}\n{PLAIN}")), ("build.log", log.to_owned())];
        let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
        let folder = folder("unused", &files);
        places(&report_in(&folder, if log.is_empty() { &["k.cu"] } else { &["k.cu", "build.log"] }))
    };
    let clean = spilling("_Z1kPf").replace("16 bytes", "0 bytes");
    assert_eq!(with("allow(register-spill)", &clean), ["unused-allow k.cu:1"]);
    assert_eq!(with("allow(no-such-rule)", ""), ["unused-allow k.cu:1"]);
    // Without a log nothing is known of spills, and without PTX not all of branches.
    assert!(with("allow(register-spill)", "").is_empty());
    assert!(with("allow(divergence)", "").is_empty());
}

#[test]
fn a_launch_line_has_its_own_comments() {
    let text = format!(
        "{PLAIN}void host(float* p, int n) {{\n  k<<<n, 33>>>(p); // warplint: allow(under-filled-warp) small\n  \
         k<<<n, 40>>>(p);\n}}\n"
    );
    let found = report_in(&folder("launch-comment", &[("k.cu", &text)]), &["k.cu"]);
    assert_eq!(places(&found), ["under-filled-warp k.cu:4", "(under-filled-warp k.cu:3)"]);
}

/// A kernel whose lanes part, with enough work on both sides for a source to tell of it.
const PARTING: &str = "__global__ void part(float* p, float a) {
    float v = p[threadIdx.x];
    if (threadIdx.x % 2) {
        for (int i = 0; i < 50; i++) v = v * a + 1.0f;
    } else {
        for (int i = 0; i < 50; i++) v = v / a + 2.0f;
    }
    p[threadIdx.x] = v;
}
";

/// PTX of the same kernel in which nothing branches.
const FLAT: &str = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry _Z4partPff(.param .u64 a, .param .f32 b)\n{\n\t.loc 1 2 5\n\tret;\n}\n\t.file 1 \"k.cu\"\n";

#[test]
fn ptx_tells_of_the_branches_that_a_source_has_too_and_its_silence_counts() {
    let folder = folder("wins", &[("k.cu", PARTING), ("k.ptx", FLAT)]);
    assert_eq!(places(&report_in(&folder, &["k.cu"])), ["index-divergent-branch k.cu:3"]);
    assert!(places(&report_in(&folder, &["k.cu", "k.ptx"])).is_empty());
    let other = FLAT.replace("_Z4partPff", "_Z5otherPff");
    fs::write(folder.join("other.ptx"), other).unwrap();
    assert_eq!(places(&report_in(&folder, &["k.cu", "other.ptx"])), ["index-divergent-branch k.cu:3"]);
}

/// The block of each kernel, and where it is declared.
fn declared(report: &Value) -> Vec<String> {
    let of = |kernel: &Value| {
        let (at, block) = (&kernel["declared_at"], &kernel["launch"]["block"]);
        format!(
            "{} {}:{} {block}",
            kernel["arch"].as_str().unwrap_or("?"),
            at["path"].as_str().unwrap_or("?"),
            at["line"]
        )
    };
    report["kernels"].as_array().unwrap().iter().map(of).collect()
}

/// `.loc` says which of two sources a kernel is from, where its name does not.
#[test]
fn of_sources_with_kernels_of_one_name_ptx_tells_of_the_one_that_its_lines_are_from() {
    let other = "__global__ void part(float* p, float a) { p[threadIdx.x] = a; }\n";
    let twice = FLAT.replace("\n\tret", "\n\t.loc 1 3 5\n\tret");
    let files = [("k.cu", PARTING), ("other.cu", other), ("k.ptx", FLAT), ("k90.ptx", &FLAT.replace("sm_80", "sm_90"))];
    let folder = folder("one-name", &files);
    assert_eq!(places(&report_in(&folder, &["k.cu", "other.cu"])), ["index-divergent-branch k.cu:3"]);
    for args in
        [&["k.cu", "other.cu", "k.ptx"][..], &["k.ptx", "other.cu", "k.cu"], &["k90.ptx", "k.cu", "other.cu", "k.ptx"]]
    {
        let report = report_in(&folder, args);
        assert!(places(&report).is_empty(), "{args:?}: {:?}", places(&report));
        assert!(declared(&report).contains(&"sm_80 k.cu:1 null".to_owned()), "{:?}", declared(&report));
        assert!(declared(&report).contains(&"? other.cu:1 null".to_owned()), "{:?}", declared(&report));
    }
    // Which of the two it was compiled from is open: no lines, or those of a file that is neither.
    for ptx in [twice.replace(".loc", "//"), twice.replace("\"k.cu\"", "\"a/third.cu\"")] {
        fs::write(folder.join("open.ptx"), ptx).unwrap();
        let report = report_in(&folder, &["k.cu", "other.cu", "open.ptx"]);
        assert_eq!(places(&report), ["index-divergent-branch k.cu:3"]);
        assert_eq!(declared(&report), ["sm_80 ?:null null"]);
    }
}

/// As colmap has them, generated for two types: the files too have one name.
#[test]
fn kernels_of_one_name_in_two_folders_have_their_own_launches() {
    let source = |block: u32| format!("{PARTING}void run(float* p) {{ part<<<4, {block}>>>(p, 1.0f); }}\n");
    let ptx = FLAT.replace("\"k.cu\"", "\"/build/src/f64/k.cu\"");
    let folder = folder("two-folders", &[("f32/k.cu", &source(32)), ("f64/k.cu", &source(64)), ("k.ptx", &ptx)]);
    let report = report_in(&folder, &["f32", "f64", "k.ptx"]);
    assert_eq!(declared(&report), ["sm_80 f64/k.cu:1 [64,1,1]", "? f32/k.cu:1 [32,1,1]"]);
    assert_eq!(places(&report), ["index-divergent-branch k.cu:3"]);
    assert_eq!(report["findings"][0]["location"]["path"], "f32/k.cu");
    // Nothing tells the two apart.
    fs::write(folder.join("k.ptx"), FLAT).unwrap();
    let report = report_in(&folder, &["f32", "f64", "k.ptx"]);
    assert_eq!(declared(&report), ["sm_80 ?:null null"]);
    // Nor what a log says: its figures may be those of the other kernel.
    fs::write(folder.join("k.ptx"), &ptx).unwrap();
    fs::write(folder.join("build.log"), spilling("_Z4partPff").replace("sm_90", "sm_80")).unwrap();
    let report = report_in(&folder, &["f32", "f64", "k.ptx", "build.log"]);
    assert_eq!(declared(&report), ["sm_80 ?:null null"]);
}

#[test]
fn ptx_does_not_silence_a_barrier_that_a_source_shows() {
    let text = "__global__ void part(float* p, float a) {\n    if (threadIdx.x < 20) {\n        p[threadIdx.x] = a;\n        \
                __syncthreads();\n    }\n    p[threadIdx.x + 32] = p[threadIdx.x];\n}\n";
    let folder = folder("barrier", &[("k.cu", text), ("k.ptx", FLAT)]);
    assert_eq!(places(&report_in(&folder, &["k.cu"])), ["barrier-in-divergent-branch k.cu:2"]);
    assert_eq!(places(&report_in(&folder, &["k.cu", "k.ptx"])), ["barrier-in-divergent-branch k.cu:2"]);
}

#[test]
fn branches_of_a_source_are_listed_without_a_line_of_ptx() {
    let folder = folder("branches", &[("k.cu", PARTING)]);
    let output = run_in(&folder, &["branches", "--isolated", "--format", "json", "k.cu"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let first = &report["branches"][0];
    assert_eq!(
        (&first["line"], &first["verdict"], &first["ptx_line"]),
        (&json!(3), &json!("divergent-index"), &Value::Null)
    );
    assert_eq!((&first["kernel"], &first["report"]), (&json!("part"), &json!("warn")));
}

#[test]
fn a_filter_holds_for_sources_too() {
    let text = "__global__ void one(float* p) {}\n__global__ void two(float* p) {}\n\
                void host(float* p, int n) {\n  one<<<n, 33>>>(p);\n  two<<<n, 33>>>(p);\n}\n";
    let folder = folder("filter", &[("k.cu", text)]);
    let report = report_in(&folder, &["k.cu", "--kernel", "two"]);
    assert_eq!(names(&report), ["two"]);
    assert_eq!(places(&report), ["under-filled-warp k.cu:5"]);
}

#[test]
fn what_is_read_and_searched_is_read_once() {
    let place = folder("read-and-searched", &[("k.cu", PLAIN)]);
    let report = report_in(&place, &[".", "--source", "."]);
    assert_eq!(names(&report), ["k"]);
    assert_eq!(report["summary"]["files"], 1);
}

#[test]
fn a_source_that_is_searched_and_cannot_be_read_is_told() {
    let place = folder("searched-binary", &[("k.cu", PLAIN), ("other/bad.cu", "__global__ \0 void k() {}")]);
    let output = run_in(&place, &["--isolated", "k.cu", "--source", "other/bad.cu"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("bad.cu"), "{output:?}");
}

#[test]
fn what_to_do_of_a_barrier_follows_where_it_stands() {
    let help = |name: &str, body: &str| {
        let kernel = format!("__global__ void k(float* p) {{ {body} }}\n");
        let report = report_in(&folder(name, &[("k.cu", &kernel)]), &["k.cu"]);
        report["findings"][0]["help"].as_str().unwrap().to_owned()
    };
    let within = help("barrier-within", "if (threadIdx.x < 7) { p[0] = 1; __syncthreads(); }");
    assert!(within.starts_with("move the barrier out of the branch"), "{within}");
    let behind = help("barrier-behind", "if (threadIdx.x >= 7) return; p[0] = 1; __syncthreads(); p[1] = 2;");
    assert!(behind.starts_with("guard the work instead of returning early"), "{behind}");
}

/// Launches that a block of the configuration stands for are one, and so is a GPU that is named twice.
#[test]
fn what_is_the_same_is_judged_once() {
    let text = "__global__ void k(float* p) { p[threadIdx.x] = 0; }\n\
                void host(float* p, int n) { k<<<n, 96>>>(p); k<<<n, 128>>>(p); }\n";
    let config = "[[kernel]]\nname = \"*\"\nblock = 192\n";
    let log = spilling("_Z1kPf");
    let folder = folder("once", &[("k.cu", text), ("warplint.toml", config), ("build.log", &log)]);
    let judged = |args: &[&str]| {
        let output = run_in(&folder, &[&["-f", "json", "k.cu", "build.log"], args].concat());
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        report["kernels"][0]["occupancy"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["block"][0].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(judged(&[]), [192]);
    assert_eq!(judged(&["--gpu", "h100-sxm5", "--gpu", "H100 SXM5"]), [192]);
    assert_eq!(judged(&["--isolated"]), [96, 128]);
    assert_eq!(judged(&["--isolated", "--gpu", "h100-sxm5", "--gpu", "h100-sxm5"]), [96, 128]);
}

/// The folder around a log is walked for where its kernels are declared, and for nothing else.
#[test]
fn sources_around_a_log_are_judged_for_its_kernels_alone() {
    let doubles = "for (int i = 0; i < 9; i++) x[i] = x[i] * 0.5 + 1.5;";
    let both =
        format!("__global__ void k(float* x) {{ x[0] = 0; }}\n__global__ void other(float* x) {{ {doubles} }}\n");
    let log = spilling("_Z1kPf");
    let gpu = ["--gpu", "rtx-4090", "build.log"];
    let of = |name: &str, files: &[(&str, &str)]| {
        let log = log.replace("sm_90", "sm_89");
        let folder = folder(name, &[files, &[("build.log", &log)]].concat());
        (
            places(&report_in(&folder, &gpu)),
            places(&report_in(&folder, &["--source", ".", "--gpu", "rtx-4090", "build.log"])),
        )
    };
    let (around, named) = of("doubles", &[("k.cu", &both)]);
    assert_eq!(around, ["register-spill k.cu:1"]);
    assert_eq!(named, around);
    let (around, _) = of("own_doubles", &[("k.cu", &format!("__global__ void k(float* x) {{ {doubles} }}\n"))]);
    assert_eq!(around, ["register-spill k.cu:1", "slow-fp64 k.cu:1"]);

    // Nobody knows which of two is meant, and so neither is judged.
    let fault = format!("// warplint: allow(nothing)\n{PLAIN}");
    let (around, _) = of("two", &[("a.cu", &fault), ("b.cu", &format!("// warplint: block=many\n{PLAIN}"))]);
    assert_eq!(around, ["register-spill build.log:3"]);
    let (around, _) = of("one", &[("a.cu", &fault)]);
    assert_eq!(around, ["register-spill a.cu:2", "unused-allow a.cu:1"]);
}

/// As cuCollections has it: `contains`, once for a thread an element, and once for a tile of threads.
#[test]
fn the_block_of_an_overload_is_no_fact_of_another() {
    let source = |launch: &str| {
        format!(
            "namespace d {{
template <int B, typename T> __global__ void contains(T *p, int n) {{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {{
        p[i] = 1;
        __syncthreads();
        p[i] += 2;
    }}
}}
template <int B, int TILE, typename T> __global__ void contains(T *p, int n, int m) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] = m;
}}
}}
template <typename T> void f(T *p, int n) {{
    constexpr int block = 96;
    {launch}
}}
"
        )
    };
    let folder = folder("overload", &[]);
    let told = |launch: &str| {
        fs::write(folder.join("k.cu"), source(launch)).unwrap();
        let report = report_in(&folder, &["k.cu"]);
        let blocks: Vec<Value> =
            report["kernels"].as_array().unwrap().iter().map(|one| one["launch"]["block"].clone()).collect();
        let finding = &report["findings"][0];
        assert_eq!(finding["rule"], "barrier-in-divergent-branch");
        let label = finding["labels"].to_string();
        let words =
            label.split(&[';', '"'][..]).map(str::trim).find(|part| part.contains("threads")).unwrap().to_owned();
        (blocks, finding["facts"]["block_assumed"].clone(), words)
    };
    let (none, block) = (Value::Null, json!([96, 1, 1]));
    let second = told("d::contains<block, 4><<<n / 4, block>>>(p, n, 3);");
    assert_eq!(
        second,
        (vec![none.clone(), block.clone()], json!(1), "assuming 256 threads per block (no bound found)".into())
    );
    let first = told("d::contains<block><<<n / 4, block>>>(p, n);");
    assert_eq!(first, (vec![block, none.clone()], json!(0), "blocks of 96 threads".into()));
    // What a macro stands for is not known.
    let open = told("d::contains<block><<<n / 4, block>>>(p, ARGUMENTS);");
    let words = "assuming 96 threads per block (from launches of it or of an overload)";
    assert_eq!(open, (vec![none.clone(), none], json!(1), words.into()));
}

#[test]
fn an_exchange_that_a_file_of_the_run_defines_anew_is_what_that_says() {
    let kernel =
        "#include \"compat.h\"\n__global__ void k(float* p) { p[threadIdx.x] += __shfl_down(p[threadIdx.x], 1); }\n";
    let shim = "#define __shfl_down(x, n) __shfl_down_sync(~0u, x, n)\n__device__ inline int lane() { return threadIdx.x & 31; }\n";
    let both = folder("shim", &[("k.cu", kernel), ("compat.h", shim)]);
    assert_eq!(places(&report_in(&both, &["."])), Vec::<String>::new());
    assert_eq!(places(&report_in(&both, &["k.cu"])), ["unsynchronised-warp-intrinsic k.cu:2"]);
    let alternatives = |condition: &str| {
        let text = format!(
            "#if {condition}\n__device__ float f(float v) {{ return __shfl_sync(~0u, v, 0); }}\n#else\n\
             __device__ float f(float v) {{ return __shfl(v, 0); }}\n#endif\n__global__ void k(float* p) {{ p[0] = f(p[1]); }}\n"
        );
        places(&report_in(&folder("alternatives", &[("k.cu", &text)]), &["."]))
    };
    assert_eq!(alternatives("IS_DEFINED(HAVE_SHFL_SYNC)"), Vec::<String>::new());
    assert_eq!(alternatives("0"), ["unsynchronised-warp-intrinsic k.cu:4"]);
    let rocm = folder("rocm", &[("rocm/k.cu", &kernel.replace("compat", "shims"))]);
    assert_eq!(places(&report_in(&rocm, &["."])), Vec::<String>::new());
}

#[test]
fn what_every_launch_gives_a_kernel_is_known() {
    let found = |launches: &str| {
        let text = format!(
            "#define N 256\n__global__ void k(float* p, int n) {{\n  int t = threadIdx.x;\n  if (t < n) {{\n    p[t] = 1;\n    \
             __syncthreads();\n    p[t] = p[0];\n  }}\n  p[0] = 2;\n}}\nvoid run(float* p, int m) {{ {launches} }}\n"
        );
        places(&report_in(&folder("arguments", &[("k.cu", &text)]), &["."]))
    };
    let barrier = ["barrier-in-divergent-branch k.cu:4"];
    for held in ["k<<<1, N>>>(p, N);", "k<<<1, 128>>>(p, N / 2); k<<<9, 128>>>(p, 128);", "k<<<1, N>>>(p, 3 * N + 1);"]
    {
        assert_eq!(found(held), Vec::<String>::new(), "{held}");
    }
    for parted in ["k<<<1, N>>>(p, N - 1);", "k<<<1, N>>>(p, m);", "k<<<1, N>>>(p, N); k<<<1, N>>>(p, m);"] {
        assert_eq!(found(parted), barrier, "{parted}");
    }
}
