//! The baseline as people use it: written, held against, merged, pruned; and what two builds differ in.
#![allow(clippy::unwrap_used, reason = "a test stops where it is broken")]

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/ptxas/13.5/");

/// The name of the file, where nobody names another.
const FILE: &str = "warplint-baseline.json";

/// An empty folder that is a repository.
fn repository(test: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("baseline-{test}"));
    let _ = fs::remove_dir_all(&root);
    fs::create_dir_all(root.join(".git")).unwrap();
    root
}

fn warplint(root: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_warplint")).args(args).current_dir(root).output().unwrap()
}

/// Both streams and the status.
fn said(root: &Path, args: &[&str]) -> (String, i32) {
    let output = warplint(root, args);
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (text, output.status.code().unwrap())
}

/// What a lint says in short, without places, and its status.
fn lint(root: &Path, args: &[&str]) -> (Vec<String>, i32) {
    let (text, status) = said(root, &[&["-f", "short"], args].concat());
    let is_place = |place: &str| place.split(':').nth(1).is_some_and(|line| line.parse::<u32>().is_ok());
    let found = |line: &str| match line.split_once(": ") {
        Some((place, told)) if is_place(place) => told.to_owned(),
        _ => line.to_owned(),
    };
    (text.lines().map(found).collect(), status)
}

fn write(root: &Path, args: &[&str]) -> String {
    let (text, status) = said(root, &[&["baseline", "write"], args].concat());
    assert_eq!(status, 0, "{text}");
    text
}

fn file(root: &Path) -> Value {
    serde_json::from_slice(&fs::read(root.join(FILE)).unwrap()).unwrap()
}

/// The kernels that a baseline holds, each with its registers.
fn kernels(root: &Path) -> Vec<(String, u64)> {
    let kernels = file(root)["kernels"].as_array().unwrap().clone();
    let one = |kernel: &Value| {
        let name = format!("{} {}", kernel["kernel"].as_str().unwrap(), kernel["arch"].as_str().unwrap_or("?"));
        (name, kernel["registers"].as_u64().unwrap_or_default())
    };
    kernels.iter().map(one).collect()
}

/// What it accepts: `rule kernel count`.
fn findings(root: &Path) -> Vec<String> {
    let findings = file(root)["findings"].as_array().unwrap().clone();
    let word = |one: &Value, key: &str| one[key].as_str().unwrap_or("-").to_owned();
    findings.iter().map(|one| format!("{} {} {}", word(one, "rule"), word(one, "kernel"), one["count"])).collect()
}

fn record(name: &str, arch: &str, registers: u32, spill: u32) -> String {
    format!(
        "ptxas info    : Compiling entry function '{name}' for '{arch}'\n\
         ptxas info    : Function properties for {name}\n    \
         {spill} bytes stack frame, {spill} bytes spill stores, {spill} bytes spill loads\n\
         ptxas info    : Used {registers} registers, used 0 barriers, 380 bytes cmem[0]\n"
    )
}

fn log(root: &Path, file: &str, kernels: &[(&str, u32, u32)]) {
    let text: String =
        kernels.iter().map(|(name, registers, spill)| record(name, "sm_80", *registers, *spill)).collect();
    fs::write(root.join(file), text).unwrap();
}

fn fixture(case: &str) -> String {
    format!("{FIXTURES}{case}/input.log")
}

#[test]
fn two_builds_of_one_source_in_different_folders_compare_as_equal() {
    let root = repository("folders");
    let (one, other) = (fixture("tile-in-one-folder"), fixture("tile-in-another-folder"));
    write(&root, &["--block", "256", &one]);
    let (text, status) = said(&root, &["--baseline", FILE, "--block", "256", &other]);
    assert_eq!((text.as_str(), status), ("3 kernels on sm_80: nothing to report; 1 in the baseline\n", 0));
    assert_eq!(said(&root, &["diff", &one, &other]), ("3 kernels compared: nothing changed\n".to_owned(), 0));
    let before = fs::read(root.join(FILE)).unwrap();
    write(&root, &["--block", "256", &other]);
    assert_eq!(String::from_utf8_lossy(&fs::read(root.join(FILE)).unwrap()), String::from_utf8_lossy(&before));
}

#[test]
fn a_one_register_change_at_equal_occupancy_is_quiet_unless_strict() {
    let root = repository("one-register");
    write(&root, &["--block", "256", &fixture("tile-in-one-folder")]);
    let more = fixture("tile-one-register-more");
    assert_eq!(lint(&root, &["--baseline", FILE, "--block", "256", &more]), (vec![], 0));
    assert_eq!(lint(&root, &["--baseline", FILE, &more]), (vec![], 0));
    fs::write(root.join("warplint.toml"), "[rules]\nregression = { strict = true }\n").unwrap();
    let (found, status) = lint(&root, &["--baseline", FILE, "--block", "256", &more]);
    assert_eq!(
        found,
        ["error[regression] `blend` is worse than in the baseline on sm_80: 47 registers per thread instead of 46"]
    );
    assert_eq!(status, 1);
}

#[test]
fn a_spill_of_16_bytes_is_caught_also_where_occupancy_rises() {
    let root = repository("spill");
    write(&root, &["--block", "256", &fixture("tile-in-one-folder")]);
    let (found, status) = lint(&root, &["--baseline", FILE, "--block", "256", &fixture("tile-spills-16-bytes")]);
    let regression = "error[regression] `blend` is worse than in the baseline on sm_80: it spills 16 B of stores and 16 B of \
                      loads per thread instead of none";
    assert_eq!((found[0].as_str(), status), (regression, 1));
    assert_eq!(found.iter().filter(|line| line.contains("[regression]")).count(), 1, "{found:?}");
}

#[test]
fn accepted_findings_are_counted_and_not_shown_and_new_ones_are() {
    let root = repository("accepted");
    log(&root, "a.log", &[("k", 40, 8), ("m", 40, 0)]);
    write(&root, &["a.log"]);
    let (text, status) = said(&root, &["--baseline", FILE, "a.log"]);
    assert_eq!((text.as_str(), status), ("2 kernels on sm_80: nothing to report; 1 in the baseline\n", 0));
    assert_eq!(said(&root, &["-q", "--baseline", FILE, "a.log"]), (String::new(), 0));
    assert_eq!(said(&root, &["--fail-on", "note", "--limit", "0", "--baseline", FILE, "a.log"]).1, 0);
    let json: Value = serde_json::from_str(&said(&root, &["-f", "json", "--baseline", FILE, "a.log"]).0).unwrap();
    assert_eq!((&json["summary"]["baselined"], &json["summary"]["warnings"]), (&1.into(), &0.into()));
    assert_eq!(json["findings"][0]["status"], "baselined");
    let csv = said(&root, &["-f", "csv", "--baseline", FILE, "a.log"]).0;
    assert!(csv.lines().nth(1).unwrap().contains(",baselined,"), "{csv}");
    log(&root, "b.log", &[("k", 40, 8), ("m", 40, 0), ("n", 40, 8)]);
    let (found, status) = lint(&root, &["--baseline", FILE, "b.log"]);
    assert_eq!(found, ["warning[register-spill] `n` spills 8 B of stores and 8 B of loads per thread on sm_80"]);
    assert_eq!(status, 1);
    let sarif: Value = serde_json::from_str(&said(&root, &["-f", "sarif", "--baseline", FILE, "b.log"]).0).unwrap();
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    let state = |at: usize| (results[at]["baselineState"].as_str().unwrap(), results[at]["suppressions"].is_array());
    assert_eq!([state(0), state(1)], [("new", false), ("unchanged", true)]);
    assert_eq!(results[1]["suppressions"][0]["kind"], "external");
    let none: Value = serde_json::from_str(&said(&root, &["-f", "sarif", "b.log"]).0).unwrap();
    assert!(none["runs"][0]["results"][0]["baselineState"].is_null());
}

#[test]
fn a_finding_that_became_louder_is_not_accepted() {
    let root = repository("louder");
    // At 62.5 % a note, at 31 % a warning.
    log(&root, "a.log", &[("k", 46, 0)]);
    log(&root, "b.log", &[("k", 96, 0)]);
    write(&root, &["--block", "256", "--allow", "register-cliff", "--note", "regression", "a.log"]);
    let levels = ["--block", "256", "--allow", "register-cliff", "--allow", "regression"];
    let (found, _) = lint(&root, &[&levels[..], &["--baseline", FILE, "b.log"]].concat());
    assert!(found[0].starts_with("warning[register-limited-occupancy]"), "{found:?}");
    write(&root, &[&levels[..4], &["b.log"]].concat());
    let (found, _) = lint(&root, &[&levels[..], &["--baseline", FILE, "b.log"]].concat());
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn a_partial_build_keeps_what_it_did_not_see_and_prune_drops_what_a_full_one_lacks() {
    let root = repository("partial");
    log(&root, "all.log", &[("a", 32, 8), ("b", 32, 8), ("c", 32, 0)]);
    log(&root, "part.log", &[("b", 40, 0), ("d", 16, 0)]);
    // Where no configuration names it, the user is told how it is held.
    let named = format!("`baseline = \"{FILE}\"` in warplint.toml holds every run against it\n");
    assert_eq!(write(&root, &["all.log"]), format!("wrote 3 kernels and 2 findings to {FILE}\n{named}"));
    assert!(!write(&root, &["--baseline", FILE, "all.log"]).contains("holds every run"));
    let text = write(&root, &["part.log"]);
    assert!(text.contains("1 new kernel, 1 kernel with other figures, 2 kernels kept"), "{text}");
    assert!(text.contains("1 finding gone"), "{text}");
    let expected = [("a sm_80", 32), ("b sm_80", 40), ("c sm_80", 32), ("d sm_80", 16)];
    assert_eq!(kernels(&root), expected.map(|(name, count)| (name.to_owned(), count)));
    assert_eq!(findings(&root), ["register-spill a 1"]);
    let (text, status) = said(&root, &["baseline", "prune", "part.log"]);
    assert_eq!(
        (text.as_str(), status),
        ("warplint-baseline.json: 2 kernels and 1 finding dropped, 2 kernels and 0 findings left\n", 0)
    );
    assert_eq!(kernels(&root).len(), 2);
}

#[test]
fn a_filtered_write_touches_what_the_filter_names_alone() {
    let root = repository("filtered");
    log(&root, "a.log", &[("gemm", 32, 8), ("scan", 32, 8)]);
    write(&root, &["a.log"]);
    log(&root, "b.log", &[("gemm", 40, 0), ("scan", 40, 0)]);
    write(&root, &["--kernel", "gemm", "b.log"]);
    assert_eq!(kernels(&root), [("gemm sm_80".to_owned(), 40), ("scan sm_80".to_owned(), 32)]);
    assert_eq!(findings(&root), ["register-spill scan 1"]);
    let (text, status) = said(&root, &["baseline", "prune", "--kernel", "gemm", "b.log"]);
    assert!(status == 2 && text.contains("takes a full build"), "{text}");
}

#[test]
fn kernels_of_one_name_are_not_mixed_up() {
    let root = repository("twins");
    let twins = |one: u32, other: u32| {
        let name = |hash: &str, file: &str| format!("_ZN36_GLOBAL__N__{hash}_4_{file}_cu_884ad2bb4kernEPi");
        let (one_name, other_name) = (name("ecd919c5", "a"), name("3530658e", "b"));
        [(one_name, 32, one), (other_name, 32, other)]
    };
    let save = |file: &str, all: &[(String, u32, u32)]| {
        let all: Vec<_> = all.iter().map(|(name, registers, spill)| (name.as_str(), *registers, *spill)).collect();
        log(&root, file, &all);
    };
    save("a.log", &twins(0, 16));
    write(&root, &["a.log"]);
    let check = |all: &[(String, u32, u32)]| {
        save("b.log", all);
        let (found, _) = lint(&root, &["--allow", "register-spill", "--baseline", FILE, "b.log"]);
        found.into_iter().filter(|line| line.starts_with("error")).count()
    };
    assert_eq!(check(&twins(0, 16)), 0);
    assert_eq!(check(&twins(16, 0)), 0);
    assert_eq!(check(&twins(0, 16)[1..]), 0);
    assert_eq!(check(&twins(8, 16)), 0, "either may be the other");
    assert_eq!(check(&twins(0, 24)), 1);
    // A third of the same name is a new kernel, and which one it is nobody knows.
    let three =
        [&twins(0, 16)[..], &[("_ZN36_GLOBAL__N__11111111_4_c_cu_884ad2bb4kernEPi".to_owned(), 32, 99)]].concat();
    assert_eq!(check(&three), 0);
}

#[test]
fn improvements_are_one_note_and_fail_with_a_ratchet() {
    let root = repository("ratchet");
    log(&root, "a.log", &[("a", 40, 8), ("b", 40, 8), ("c", 32, 0)]);
    log(&root, "b.log", &[("a", 32, 0), ("b", 40, 0), ("c", 32, 0)]);
    write(&root, &["--block", "256", "a.log"]);
    let args = ["--block", "256", "--allow", "occupancy", "b.log"];
    fs::write(root.join("warplint.toml"), format!("baseline = \"{FILE}\"\n")).unwrap();
    let (found, status) = lint(&root, &args);
    let said_of = "2 kernels are better than warplint-baseline.json says, and 2 findings that it accepts are gone";
    assert_eq!((found, status), (vec![format!("note[regression] {said_of}")], 0));
    fs::write(root.join("warplint.toml"), format!("baseline = \"{FILE}\"\nratchet = true\n")).unwrap();
    let (found, status) = lint(&root, &args);
    assert!(found[0].starts_with(&format!("error[regression] {said_of}, and `ratchet`")), "{found:?}");
    assert_eq!(status, 1);
    let (text, _) = said(&root, &args);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("`b` on sm_80: it no longer spills (8 B of stores and"), "{text}");
    write(&root, &args);
    assert_eq!(lint(&root, &args), (vec![], 0));
    // A part of the build says nothing of the rest.
    log(&root, "c.log", &[("c", 32, 0)]);
    assert_eq!(lint(&root, &["--block", "256", "c.log"]), (vec![], 0));
    let (text, _) = said(&root, &["--block", "256", "-v", "c.log"]);
    assert!(text.contains("2 kernels of the baseline: not in this input"), "{text}");
}

#[test]
fn another_launch_is_no_regression_and_the_block_of_the_baseline_counts_where_none_is_told() {
    let root = repository("launch");
    log(&root, "a.log", &[("k", 40, 0)]);
    write(&root, &["--block", "256", "a.log"]);
    let found = |args: &[&str]| {
        let (found, _) = lint(&root, &[&["--baseline", FILE, "--allow", "occupancy"], args].concat());
        found
    };
    // Blocks of 1024 threads reach less, and did then.
    assert_eq!(found(&["--block", "1024", "a.log"]), Vec::<String>::new());
    log(&root, "b.log", &[("k", 48, 0)]);
    let worse = "62.5 % occupancy with blocks of 256 threads instead of 75 %, 48 registers per thread instead of 40";
    assert_eq!(found(&["b.log"]), [format!("error[regression] `k` is worse than in the baseline on sm_80: {worse}")]);
    log(&root, "a.log", &[("k", 32, 0)]);
    log(&root, "b.log", &[("k", 40, 0)]);
    fs::remove_file(root.join(FILE)).unwrap();
    write(&root, &["a.log"]);
    let worse = "75 % occupancy at the best block size instead of 100 %, 40 registers per thread instead of 32";
    assert_eq!(found(&["b.log"]), [format!("warning[regression] `k` is worse than in the baseline on sm_80: {worse}")]);
    let asked = found(&["--deny", "regression", "b.log"]);
    assert!(asked[0].starts_with("error[regression]"), "{asked:?}");
}

#[test]
fn another_toolkit_is_named() {
    let root = repository("toolkit");
    let build = |release: &str, registers: u32| {
        format!("Cuda compilation tools, release {release}, V{release}.1\n{}", record("k", "sm_80", registers, 0))
    };
    fs::write(root.join("a.log"), build("12.4", 32)).unwrap();
    fs::write(root.join("b.log"), build("13.0", 40)).unwrap();
    write(&root, &["--block", "256", "a.log"]);
    assert_eq!(file(&root)["toolkit"], "12.4");
    let (found, _) = lint(&root, &["--block", "256", "--baseline", FILE, "b.log"]);
    let tail = "; the baseline was written with CUDA 12.4, this build is 13.0";
    assert!(found[0].starts_with("error[regression]") && found[0].ends_with(tail), "{found:?}");
    let (text, _) = said(&root, &["diff", "a.log", "b.log"]);
    assert!(text.contains("compiled with CUDA 12.4 before and CUDA 13.0 now"), "{text}");
}

#[test]
fn doubtful_figures_are_neither_written_nor_held_against() {
    let root = repository("doubtful");
    log(&root, "a.log", &[("a", 32, 0), ("b", 32, 0)]);
    write(&root, &["a.log"]);
    // Figures of two jobs, each without a name.
    let mixed = "ptxas info    : Compiling entry function 'a' for 'sm_80'\n\
                 ptxas info    : Compiling entry function 'b' for 'sm_80'\n\
                 ptxas info    : Function properties for a\n    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n\
                 ptxas info    : Function properties for b\n    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n\
                 ptxas info    : Used 254 registers\nptxas info    : Used 40 registers\n";
    fs::write(root.join("b.log"), mixed).unwrap();
    let (found, _) = lint(&root, &["--baseline", FILE, "--allow", "compiler", "b.log"]);
    assert!(found.iter().all(|line| !line.contains("[regression]")), "{found:?}");
    let (text, status) = said(&root, &["baseline", "write", "b.log"]);
    assert!(status == 2 && text.contains("left as it was"), "{text}");
    // So are those of a build for debugging.
    fs::write(root.join("c.log"), format!("nvcc -G -c k.cu\n{}", record("a", "sm_80", 255, 64))).unwrap();
    let (found, _) = lint(&root, &["--baseline", FILE, "c.log"]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(said(&root, &["baseline", "write", "c.log"]).1, 2);
}

#[test]
fn a_baseline_of_other_kernels_is_never_green() {
    let root = repository("others");
    log(&root, "a.log", &[("a", 32, 0)]);
    write(&root, &["a.log"]);
    fs::write(root.join("b.log"), record("a", "sm_90", 255, 0)).unwrap();
    let (found, status) = lint(&root, &["--baseline", FILE, "--allow", "occupancy", "b.log"]);
    let note =
        "the only kernel of this input is not in warplint-baseline.json, which has 1 kernel: no figure was compared";
    assert_eq!((found, status), (vec![format!("error[regression] {note}")], 1));
}

#[test]
fn a_comment_or_the_configuration_allows_a_regression() {
    let root = repository("allow");
    log(&root, "a.log", &[("k", 32, 0)]);
    log(&root, "b.log", &[("k", 40, 0)]);
    write(&root, &["--block", "256", "a.log"]);
    let args = ["--block", "256", "--allow", "occupancy", "b.log"];
    let config = format!("baseline = \"{FILE}\"\n[[kernel]]\nname = \"k\"\nallow = [\"regression\"]\n");
    fs::write(root.join("warplint.toml"), config).unwrap();
    assert_eq!(lint(&root, &args), (vec![], 0));
    fs::write(root.join("warplint.toml"), format!("baseline = \"{FILE}\"\n")).unwrap();
    let source = "// warplint: allow(regression) being written\nextern \"C\" __global__ void k(float *x) { x[threadIdx.x] = 1; }\n";
    fs::write(root.join("k.cu"), source).unwrap();
    let with_source = [&args[..], &["k.cu"]].concat();
    assert_eq!(lint(&root, &with_source), (vec![], 0));
    // Without a baseline nothing tells that the comment is in vain.
    assert_eq!(lint(&root, &[&["--isolated"], &with_source[..]].concat()), (vec![], 0));
}

#[test]
fn a_gate_that_measured_nothing_has_not_passed() {
    let root = repository("nothing");
    log(&root, "a.log", &[("k", 32, 0)]);
    fs::write(root.join("empty.log"), "make: nothing to be done\n").unwrap();
    let (text, status) = said(&root, &["--baseline", FILE, "a.log"]);
    assert!(status == 2 && text.contains("there is no baseline") && text.contains("baseline write"), "{text}");
    assert_eq!(said(&root, &["baseline", "prune", "a.log"]).1, 2);
    assert_eq!(said(&root, &["baseline", "write", "empty.log"]).1, 2);
    assert!(!root.join(FILE).exists());
    write(&root, &["a.log"]);
    let before = fs::read(root.join(FILE)).unwrap();
    let (text, status) = said(&root, &["--baseline", FILE, "empty.log"]);
    assert!(status == 2 && text.contains("nothing was held against"), "{text}");
    fs::write(root.join("failed.log"), format!("{}x.cu(1): error: no\n", record("k", "sm_80", 32, 0))).unwrap();
    let (text, status) = said(&root, &["baseline", "write", "failed.log"]);
    assert!(status == 2 && text.contains("the build failed"), "{text}");
    assert_eq!(said(&root, &["baseline", "prune", "failed.log"]).1, 2);
    assert_eq!(said(&root, &["baseline", "write", "a.log", "gone.log"]).1, 2);
    assert_eq!(fs::read(root.join(FILE)).unwrap(), before);
    // A configured baseline that is not there yet is none; and a hook on sources measures no figures.
    fs::write(root.join("warplint.toml"), "baseline = \"later.json\"\n").unwrap();
    assert_eq!(said(&root, &["a.log"]).1, 0);
    fs::write(root.join("warplint.toml"), format!("baseline = \"{FILE}\"\n")).unwrap();
    fs::write(root.join("util.cu"), "__device__ int one() { return 1; }\n").unwrap();
    assert_eq!(said(&root, &["util.cu"]).1, 0);
    assert_eq!(said(&root, &["--baseline", FILE, "util.cu"]).1, 2);
}

#[test]
fn a_broken_baseline_is_told_at_its_place_and_left_alone() {
    let root = repository("broken");
    log(&root, "a.log", &[("k", 32, 0)]);
    for (content, expected) in [
        (
            "{\n  \"version\": 1,\n  \"format\": \"warplint-baseline\",\n  \"kernels\": [{\"kernel\": \"k\", \"registers\": \"x\"}]\n}\n",
            "b.json:4:",
        ),
        ("<<<<<<< HEAD\n", "is no JSON"),
        ("{\"version\": 7}\n", "version 7"),
        ("{\"version\": 1, \"kernels\": []}\n", "is not a baseline"),
        ("", "is no JSON"),
        (" \n \n", "the file ends within a value"),
        ("[3]", "expected an object"),
        ("[1, \"warplint-baseline\", null, [], []]", "expected an object"),
        (
            "{\"version\": 1, \"format\": \"warplint-baseline\", \"kernels\": [\n[\"k\", \"sm_80\", null, null, null]]}",
            "expected an object",
        ),
        (
            "{\"version\": 1, \"format\": \"warplint-baseline\", \"kernels\": [],\n\"findings\": [{\"rule\": \"r\", \"count\": 18446744073709551615}]}",
            "expected a whole number from 0 to 4294967295",
        ),
    ] {
        fs::write(root.join("b.json"), content).unwrap();
        for args in [&["--baseline", "b.json", "a.log"][..], &["baseline", "write", "--baseline", "b.json", "a.log"]] {
            let (text, status) = said(&root, args);
            assert!(status == 2 && text.contains(expected), "{content}: {text}");
        }
        assert_eq!(fs::read_to_string(root.join("b.json")).unwrap(), content);
    }
    let (text, status) = said(&root, &["baseline", "write", "--baseline", "a.log", "a.log"]);
    assert!(status == 2, "{text}");
    write(&root, &["a.log"]);
    let (text, status) = said(&root, &["--baseline", FILE, "-o", FILE, "a.log"]);
    assert!(status == 2 && text.contains("written over"), "{text}");
}

/// A command that reads a build from a pipe, once it is waiting for it.
fn waiting(root: &Path, args: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warplint"));
    command.args(args).current_dir(root).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // What it prints of the first line says that it is past everything that it reads before.
    child.stdin.as_mut().unwrap().write_all(b"make: begins\n").unwrap();
    let mut first = [0; 1];
    child.stderr.as_mut().unwrap().read_exact(&mut first).unwrap();
    child
}

/// The same when the build has printed all that it does.
fn ended(mut child: Child, build: &str) -> (String, i32) {
    child.stdin.take().unwrap().write_all(build.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (text, output.status.code().unwrap())
}

#[test]
fn builds_that_are_written_down_at_the_same_time_are_all_kept() {
    let root = repository("parallel");
    let build = |name: &str| record(name, "sm_90", 40, 8);
    let waiting_for = waiting(&root, &["baseline", "write"]);
    log(&root, "b.log", &[("b", 32, 0)]);
    write(&root, &["b.log"]);
    assert_eq!(ended(waiting_for, &build("a")).1, 0);
    assert_eq!(kernels(&root).len(), 2, "{:?}", kernels(&root));
    let builds: Vec<Child> = (0..8).map(|_| waiting(&root, &["baseline", "write"])).collect();
    std::thread::scope(|scope| {
        for (at, child) in builds.into_iter().enumerate() {
            let text = build(&format!("k{at}"));
            scope.spawn(move || assert_eq!(ended(child, &text).1, 0));
        }
    });
    assert_eq!(kernels(&root).len(), 10, "{:?}", kernels(&root));
    assert_eq!(findings(&root).len(), 9, "{:?}", findings(&root));
}

#[test]
fn a_baseline_that_others_wrote_in_the_meantime_is_not_pruned() {
    let root = repository("overtaken");
    log(&root, "a.log", &[("a", 32, 0), ("b", 32, 0)]);
    log(&root, "c.log", &[("c", 32, 0)]);
    write(&root, &["a.log"]);
    let waiting_for = waiting(&root, &["baseline", "prune"]);
    write(&root, &["c.log"]);
    let (text, status) = ended(waiting_for, &record("a", "sm_90", 32, 0));
    assert!(status == 2 && text.contains("written anew while the build was read"), "{text}");
    assert_eq!(kernels(&root).len(), 3);
}

#[test]
fn the_baseline_of_a_configuration_lies_with_it() {
    let root = repository("configured");
    log(&root, "a.log", &[("k", 40, 8)]);
    fs::write(root.join("warplint.toml"), "baseline = \"ci/accepted.json\"\nratchet = false\n").unwrap();
    fs::create_dir_all(root.join("ci")).unwrap();
    fs::create_dir_all(root.join("build")).unwrap();
    let text = write(&root.join("build"), &["../a.log"]);
    assert!(text.ends_with("to ../ci/accepted.json\n"), "{text}");
    assert_eq!(said(&root, &["a.log"]).0, "1 kernel on sm_80: nothing to report; 1 in the baseline\n");
    assert_eq!(said(&root, &["--isolated", "a.log"]).1, 1);
    let shown = said(&root, &["--show-config"]).0;
    assert!(shown.contains("baseline = \"ci/accepted.json\"\nratchet = false\n"), "{shown}");
    for (wrong, words) in [
        ("baseline = \"../b.json\"", "out of reach"),
        ("baseline = \"/b.json\"", "out of reach"),
        ("baseline = \"ci\"", "no regular file"),
        ("baseline = \"\"", "names no file"),
        ("baseline = 3", "must be the path of a file"),
        ("ratchet = \"yes\"", "must be true or false"),
    ] {
        fs::write(root.join("warplint.toml"), format!("{wrong}\n")).unwrap();
        let (text, status) = said(&root, &["a.log"]);
        assert!(status == 2 && text.contains(words), "{wrong}: {text}");
    }
}

#[test]
fn findings_on_sources_are_accepted_by_kernel_or_by_file() {
    let root = repository("sources");
    fs::create_dir_all(root.join("src")).unwrap();
    let source = "__global__ void k(float *x) { x[threadIdx.x] = 1; }\nvoid go(float *x) { k<<<10, 33>>>(x); }\n";
    fs::write(root.join("src/k.cu"), source).unwrap();
    assert_eq!(lint(&root, &["src"]).0.len(), 1);
    write(&root, &["src"]);
    assert_eq!(findings(&root).len(), 1);
    assert_eq!(lint(&root, &["--baseline", FILE, "src"]), (vec![], 0));
    // Lines move, and the folder is named otherwise.
    fs::write(root.join("src/k.cu"), format!("// one\n// two\n{source}")).unwrap();
    assert_eq!(lint(&root, &["--baseline", FILE, "./src/k.cu"]), (vec![], 0));
    // A second launch of the same kind is new.
    fs::write(root.join("src/k.cu"), format!("{source}void more(float *x) {{ k<<<10, 33>>>(x); }}\n")).unwrap();
    let (found, status) = lint(&root, &["--baseline", FILE, "src"]);
    assert!(status == 0 && found.len() == 1, "{found:?}");
    // What a log tells of the kernel stays beside.
    log(&root, "a.log", &[("_Z1kPf", 40, 8)]);
    write(&root, &["a.log"]);
    assert_eq!(findings(&root).len(), 2);
    assert_eq!(kernels(&root), [("_Z1kPf sm_80".to_owned(), 40)]);
}

#[test]
fn diff_reads_logs_reports_and_baselines_alike() {
    let root = repository("diff");
    log(&root, "a.log", &[("a", 32, 0), ("b", 32, 8), ("c", 33, 0), ("gone", 8, 0)]);
    log(&root, "b.log", &[("a", 40, 0), ("b", 32, 0), ("c", 34, 0), ("new", 8, 0)]);
    for name in ["a", "b"] {
        let report = said(&root, &["-f", "json", &format!("{name}.log")]).0;
        fs::write(root.join(format!("{name}.json")), report).unwrap();
        let table = said(&root, &["kernels", "-f", "json", &format!("{name}.log")]).0;
        fs::write(root.join(format!("{name}.kernels.json")), table).unwrap();
        write(&root, &["--baseline", &format!("{name}.baseline.json"), &format!("{name}.log")]);
    }
    let expected = said(&root, &["diff", "--block", "256", "a.log", "b.log"]);
    assert_eq!(expected.1, 1);
    assert!(
        expected.0.ends_with("3 kernels compared: 1 worse, 1 better, 1 changed, 1 added, 1 removed\n"),
        "{}",
        expected.0
    );
    for old in ["a.log", "a.json", "a.kernels.json", "a.baseline.json"] {
        for new in ["b.log", "b.json", "b.kernels.json", "b.baseline.json"] {
            assert_eq!(said(&root, &["diff", "--block", "256", old, new]), expected, "{old} {new}");
        }
    }
    let (json, _) = said(&root, &["diff", "-f", "json", "a.json", "b.log"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["version"], 1);
    let changes = json["changes"].as_array().unwrap();
    let shown: Vec<_> = changes.iter().map(|one| format!("{} {}", one["kernel"], one["status"])).collect();
    assert_eq!(
        shown,
        ["\"a\" \"worse\"", "\"b\" \"better\"", "\"c\" \"changed\"", "\"new\" \"added\"", "\"gone\" \"removed\""]
    );
    assert_eq!((&changes[0]["before"]["registers"], &changes[0]["after"]["registers"]), (&32.into(), &40.into()));
    assert!(changes[3]["before"].is_null() && changes[4]["after"].is_null());
    let (text, status) = said(&root, &["diff", "--kernel", "c", "a.log", "b.log"]);
    assert!(status == 0 && text.ends_with("1 kernel compared: 1 changed\n"), "{text}");
    assert_eq!(said(&root, &["diff", "--kernel", "new", "a.log", "b.log"]).1, 0);
    assert_eq!(said(&root, &["diff", "--kernel", "nobody", "a.log", "b.log"]).1, 2);
    assert_eq!(said(&root, &["diff", "-o", "out.md", "-f", "markdown", "a.log", "b.log"]), (String::new(), 1));
    let markdown = fs::read_to_string(root.join("out.md")).unwrap();
    assert!(markdown.contains("| `a` | sm_80 | **worse** | 32 → 40 |"), "{markdown}");
    assert!(markdown.contains("<details><summary>1 added, 1 removed</summary>"), "{markdown}");
    assert_eq!(said(&root, &["diff", "-q", "a.log", "a.json"]), (String::new(), 0));
    let same = said(&root, &["diff", "-f", "markdown", "a.log", "a.json"]);
    assert_eq!(same, ("**warplint**: 4 kernels compared: nothing changed\n".to_owned(), 0));
}

#[test]
fn diff_refuses_what_it_cannot_compare() {
    let root = repository("diff-refuses");
    log(&root, "a.log", &[("a", 32, 0)]);
    fs::write(root.join("empty.log"), "make: nothing to be done\n").unwrap();
    fs::write(root.join("broken.json"), "{\"version\": 1, \"kernels\": [\n{\"name\": 3}]}").unwrap();
    fs::write(root.join("newer.json"), "{\"version\": 9, \"kernels\": []}").unwrap();
    fs::write(root.join("other.json"), "{\"name\": \"package\"}").unwrap();
    for (args, words) in [
        (["a.log", "empty.log"], "no kernel was found"),
        (["a.log", "broken.json"], "broken.json:2:"),
        (["newer.json", "a.log"], "version 9"),
        (["other.json", "a.log"], "is not a report of warplint"),
        (["a.log", "gone.log"], "gone.log"),
        (["-", "-"], "cannot be both"),
        #[cfg(unix)]
        (["/dev/null", "a.log"], "`/dev/null` has nothing to compare"),
    ] {
        let (text, status) = said(&root, &["diff", args[0], args[1]]);
        assert!(status == 2 && text.contains(words), "{args:?}: {text}");
    }
    assert_eq!(said(&root, &["diff", "a.log"]).1, 2);
}

#[test]
fn whatever_was_written_down_is_accepted_by_the_same_input() {
    let root = repository("all");
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let mut written = 0;
    for group in ["ptxas/11.7", "ptxas/12.6", "ptxas/13.5", "ptx/13.5", "wild"] {
        for case in fs::read_dir(fixtures.join(group)).unwrap() {
            let folder = case.unwrap().path();
            let inputs = ["input.log", "input.ptx"].map(|name| folder.join(name));
            let Some(input) = inputs.iter().find(|input| input.is_file()).and_then(|input| input.to_str()) else {
                continue;
            };
            let _ = fs::remove_file(root.join(FILE));
            let (text, status) = said(&root, &["baseline", "write", "--warn", "divergence", input]);
            if status != 0 {
                let refused = ["build failed", "no kernel", "left as it was", "figures of no kernel", "cannot be read"];
                assert!(status == 2 && refused.iter().any(|words| text.contains(words)), "{input}: {text}");
                continue;
            }
            written += 1;
            let first = fs::read(root.join(FILE)).unwrap();
            let (found, status) = lint(&root, &["--warn", "divergence", "--baseline", FILE, input]);
            // What no baseline accepts.
            let found: Vec<_> = found.iter().filter(|line| !line.contains("[no-resource-report]")).collect();
            assert!(found.is_empty() && status != 2, "{input}: {found:?}");
            write(&root, &["--warn", "divergence", input]);
            assert_eq!(fs::read(root.join(FILE)).unwrap(), first, "{input}");
            let (text, _) = said(&root, &["baseline", "prune", "--warn", "divergence", input]);
            assert!(text.contains("nothing to drop"), "{input}: {text}");
            assert_eq!(fs::read(root.join(FILE)).unwrap(), first, "{input}");
        }
    }
    assert!(written > 60, "{written}");
}

/// What only sources tell has no figures of a kernel: the finding itself says how bad it was.
#[test]
fn a_finding_that_becomes_worse_is_not_the_one_that_was_accepted() {
    let root = repository("worse");
    let launched = |block: u32| {
        let text = format!(
            "__global__ void k(float* p) {{ p[threadIdx.x] = 0; }}\nvoid host(float* p, int n) {{ k<<<n, {block}>>>(p); }}\n"
        );
        fs::write(root.join("k.cu"), text).unwrap();
    };
    let held = |block: u32| {
        launched(block);
        let (found, status) = lint(&root, &["--baseline", FILE, "k.cu"]);
        (found.iter().filter(|line| line.contains("[under-filled-warp]")).count(), status)
    };
    launched(200);
    write(&root, &["k.cu"]);
    assert_eq!(file(&root)["findings"][0]["severity"], 107);
    assert_eq!((held(200), held(33)), ((0, 0), (1, 1)));
    // 24 of 32 lanes, which are as many as of 224.
    assert_eq!(held(8), (1, 1));
    assert_eq!(held(784), (0, 0));

    // A file of before tells nothing of that.
    let text = fs::read_to_string(root.join(FILE)).unwrap();
    fs::write(root.join(FILE), text.replace(",\"severity\":107", "")).unwrap();
    assert_eq!((held(200), held(33)), ((0, 0), (0, 0)));
}

/// Of a kernel without a record a message tells the spills.
#[test]
fn a_warning_of_more_bytes_is_not_the_one_that_was_accepted() {
    let root = repository("warned");
    let warned = |bytes: u32| {
        let text = format!(
            "ptxas warning : Registers are spilled to local memory in function 'k', {bytes} bytes spill stores, {bytes} bytes spill loads\n"
        );
        fs::write(root.join("a.log"), text + &record("other", "sm_80", 20, 0)).unwrap();
    };
    let held = |bytes: u32| {
        warned(bytes);
        lint(&root, &["--baseline", FILE, "a.log"]).0.iter().filter(|line| line.contains("[register-spill]")).count()
    };
    warned(16);
    write(&root, &["a.log"]);
    assert_eq!((held(16), held(8), held(760)), (0, 0, 1));
}

/// An occupancy with another block is none that `regression` compares.
#[test]
fn a_lower_occupancy_with_another_block_is_not_the_one_that_was_accepted() {
    let root = repository("blocks");
    log(&root, "a.log", &[("k", 128, 0)]);
    write(&root, &["--block", "256", "a.log"]);
    let held = |block: &str| {
        let (found, _) = lint(&root, &["--baseline", FILE, "--block", block, "a.log"]);
        found.iter().filter(|line| line.contains("[register-limited-occupancy]")).count()
    };
    assert_eq!((held("256"), held("512"), held("384")), (0, 0, 1));
    // What is compared is told once, as what it is.
    log(&root, "a.log", &[("k", 168, 0)]);
    assert_eq!(held("256"), 0);
}

#[test]
fn what_is_accepted_of_sources_and_a_log_holds_for_the_sources_alone_and_the_other_way_around() {
    let root = repository("across");
    let source = |threads: u32| {
        let text = format!(
            "namespace n {{ __global__ void k(float *p) {{ p[threadIdx.x] = 0; }} }}\n\
             void run(float *p) {{ n::k<<<4096, {threads}>>>(p); }}\n"
        );
        fs::write(root.join("k.cu"), text).unwrap();
    };
    source(100);
    let both = record("_ZN1n1kEPf", "sm_80", 24, 0) + &record("_ZN1n1kEPf", "sm_90", 24, 0);
    fs::write(root.join("build.log"), both).unwrap();
    let (alone, with_log) = (&["--baseline", FILE, "k.cu"][..], &["--baseline", FILE, "k.cu", "build.log"][..]);
    for inputs in [&["k.cu"][..], &["k.cu", "build.log"]] {
        source(100);
        let _ = fs::remove_file(root.join(FILE));
        write(&root, inputs);
        for run in [alone, with_log] {
            let (told, status) = lint(&root, run);
            assert_eq!(status, 0, "{inputs:?} {run:?}: {told:#?}");
        }
        // A block that leaves more lanes idle is worse than what was accepted.
        source(33);
        for run in [alone, with_log] {
            assert_eq!(lint(&root, run).1, 1, "{inputs:?} {run:?}");
        }
    }
}

#[test]
fn barriers_that_only_one_toolkit_tells_are_no_change() {
    let root = repository("barriers");
    log(&root, "new.log", &[("k", 32, 0)]);
    let text = fs::read_to_string(root.join("new.log")).unwrap();
    fs::write(root.join("old.log"), text.replace("used 0 barriers, ", "")).unwrap();
    assert_eq!(said(&root, &["diff", "old.log", "new.log"]), ("1 kernel compared: nothing changed\n".to_owned(), 0));
    fs::write(root.join("more.log"), text.replace("used 0 barriers", "used 6 barriers")).unwrap();
    assert!(said(&root, &["diff", "new.log", "more.log"]).0.contains("1 changed"));
}
