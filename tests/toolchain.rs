//! Compares warplint with a real CUDA toolchain.
//!
//! Each kernel is looked at three ways: the log of `nvcc -Xptxas -v` read by a reader of the test's own, the listing
//! of `cuobjdump -res-usage` read by another, and warplint over both texts. Without an `nvcc` each test says that it was
//! skipped, and how to get one.

// A failed expectation is how a test reports.
#![allow(clippy::unwrap_used)]

#[path = "common/toolchain.rs"]
mod toolchain;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io::Read as _;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;
use toolchain::{
    Record, Toolchain, Usage, WorkDir, fixture, on_path, read_nvlink, read_ptxas, read_res_usage, skip, text,
    two_at_a_time, warplint, warplint_assembling, warplint_piped,
};

/// One source compiled once: what the compiler printed, and what the object holds.
struct Build {
    source: &'static str,
    log: String,
    listing: String,
}

impl Build {
    fn entries(&self) -> Vec<Record> {
        read_ptxas(&self.log).into_iter().filter(|record| record.arch.is_some()).collect()
    }

    fn usages(&self) -> Vec<Usage> {
        read_res_usage(&self.listing)
    }
}

/// The sources that most tests look at, for every architecture, compiled once for a run of the tests.
fn builds(toolchain: &Toolchain) -> &'static [Build] {
    static BUILDS: OnceLock<Vec<Build>> = OnceLock::new();
    BUILDS.get_or_init(|| {
        const SOURCES: [&str; 5] = ["basic", "spill", "stack", "texsurf", "longname"];
        let folder = WorkDir::new();
        let commands = SOURCES.map(|source| {
            // what is special about long names does not depend on the architecture
            let archs = if source == "longname" { &toolchain.archs[..1] } else { &toolchain.archs[..] };
            let mut nvcc = toolchain.nvcc(folder.path(), archs);
            nvcc.args(["--extended-lambda", "-Xptxas", "-v", "-o", &format!("{source}.o"), "-c"]);
            nvcc.arg(kernel_source(source));
            nvcc
        });
        let outputs = two_at_a_time(commands.into());
        SOURCES
            .into_iter()
            .zip(outputs)
            .map(|(source, output)| {
                let log = text(&output.stderr);
                assert!(output.status.success(), "{source} does not compile:\n{log}");
                let listing = toolchain.res_usage(&folder.path().join(format!("{source}.o")));
                Build { source, log, listing }
            })
            .collect()
    })
}

fn kernel_source(name: &str) -> std::path::PathBuf {
    fixture("kernels").join(format!("{name}.cu"))
}

/// Banks and sizes as the report has them.
fn banks(kernel: &Value) -> BTreeMap<u32, u32> {
    let listed = kernel["constant_bytes"].as_object().expect("constant_bytes is an object");
    listed.iter().map(|(bank, size)| (bank.parse().unwrap(), number(size).unwrap())).collect()
}

/// A figure of the report, `None` for `null`.
fn number(value: &Value) -> Option<u32> {
    (!value.is_null()).then(|| u32::try_from(value.as_u64().expect("a count is a whole number")).unwrap())
}

#[test]
fn the_readers_of_this_test_understand_captured_output() {
    let log = fs::read_to_string(fixture("ptxas/13.5/basic-sm75/input.log")).unwrap();
    let entries: Vec<Record> = read_ptxas(&log).into_iter().filter(|record| record.arch.is_some()).collect();
    assert_eq!(entries.len(), 8);
    let tile = entries.iter().find(|record| record.name == "_Z11tile_staticPfPKf").unwrap();
    assert_eq!((tile.arch(), tile.shared, tile.barriers), ("sm_75", 4224, Some(1)));
    assert_eq!(tile.constant, BTreeMap::from([(0, 368)]));

    let log = fs::read_to_string(fixture("ptxas/13.5/nvlink-two-archs/input.log")).unwrap();
    let linked = read_nvlink(&log);
    let figures: Vec<_> = linked.iter().map(|one| (one.arch.as_str(), one.registers, one.stack, one.shared)).collect();
    assert_eq!(figures, [("sm_80", 46, 88, 256), ("sm_90", 46, 88, 1280)]);

    let listing = fs::read_to_string(fixture("ptxas/13.5/res-usage-executable/input.log")).unwrap();
    let (entries, functions): (Vec<Usage>, Vec<Usage>) =
        read_res_usage(&listing).into_iter().partition(Usage::is_entry);
    assert_eq!(functions.len(), 4);
    let figures: Vec<_> = entries.iter().map(|one| (one.arch.as_str(), one.registers, one.static_shared())).collect();
    assert_eq!(figures, [("sm_80", 46, 256), ("sm_90", 46, 256)]);
}

#[test]
fn the_compiler_log_and_the_object_tell_the_same() {
    let Some(toolchain) = Toolchain::or_skip("the_compiler_log_and_the_object_tell_the_same") else { return };
    for build in builds(toolchain) {
        let entries = build.entries();
        let usages: Vec<Usage> = build.usages().into_iter().filter(Usage::is_entry).collect();
        assert_eq!(entries.len(), usages.len(), "{}: entries of the log and the object", build.source);
        assert!(!entries.is_empty(), "{} has no entry:\n{}", build.source, build.log);
        for usage in usages {
            let case = format!("{} of {} for {}", usage.name, build.source, usage.arch);
            let entry = entries
                .iter()
                .find(|entry| entry.name == usage.name && entry.arch() == usage.arch)
                .unwrap_or_else(|| panic!("{case} is not in the log"));
            assert_eq!(entry.registers, Some(usage.registers), "registers of {case}");
            assert_eq!(entry.shared, usage.static_shared(), "static shared memory of {case}");
            assert_eq!(usage.local, 0, "local memory of {case}");
            assert_eq!(entry.unbounded, usage.stack.is_none(), "whether the stack of {case} is known");
            if let Some(stack) = usage.stack {
                assert_eq!(entry.cumulative.unwrap_or(entry.stack), stack, "stack of {case}");
            }
            if !entry.constant.is_empty() {
                assert_eq!(entry.constant, usage.constant, "constant banks of {case}");
            }
            let bound = (usage.textures, usage.surfaces, usage.samplers);
            assert_eq!((entry.textures, entry.surfaces, entry.samplers), bound, "bindings of {case}");
        }
    }
}

#[test]
fn the_kernels_that_the_tests_rest_on_are_there() {
    let Some(toolchain) = Toolchain::or_skip("the_kernels_that_the_tests_rest_on_are_there") else { return };
    let entries: Vec<Record> = builds(toolchain).iter().flat_map(Build::entries).collect();
    let compiled: BTreeSet<&str> = entries.iter().map(Record::arch).collect();
    assert_eq!(compiled.len(), toolchain.archs.len(), "architectures in the logs: {compiled:?}");
    assert!(entries.iter().any(|entry| entry.spill_stores > 0), "a kernel that spills");
    assert!(entries.iter().any(|entry| entry.stack > 0 && entry.spill_stores == 0), "a stack without spills");
    assert!(entries.iter().any(|entry| entry.unbounded), "a kernel whose stack has no bound");
    assert!(entries.iter().any(|entry| entry.shared > 0), "a kernel with shared memory");
    assert!(entries.iter().any(|entry| entry.name.len() > 80), "a name longer than a line of a terminal");
    assert!(entries.iter().any(|entry| entry.constant.len() > 1), "a kernel with two constant banks");
}

#[test]
fn warplint_reads_the_log_as_it_stands() {
    let Some(toolchain) = Toolchain::or_skip("warplint_reads_the_log_as_it_stands") else { return };
    for build in builds(toolchain) {
        let run = warplint(&build.log, &["--fail-on", "never"]);
        let entries = build.entries();
        assert_eq!(run.kernels("entry").len(), entries.len(), "entries of {}", build.source);
        for entry in &entries {
            let kernel = run.entry(&entry.name, entry.arch());
            let case = format!("{} of {} for {}", entry.name, build.source, entry.arch());
            assert_eq!(number(&kernel["registers"]), entry.registers, "registers of {case}");
            assert_eq!(number(&kernel["barriers"]), entry.barriers, "barriers of {case}");
            assert_eq!(number(&kernel["stack_bytes"]), Some(entry.stack), "stack of {case}");
            assert_eq!(number(&kernel["cumulative_stack_bytes"]), entry.cumulative, "cumulative stack of {case}");
            assert_eq!(number(&kernel["spill_store_bytes"]), Some(entry.spill_stores), "spill stores of {case}");
            assert_eq!(number(&kernel["spill_load_bytes"]), Some(entry.spill_loads), "spill loads of {case}");
            assert_eq!(number(&kernel["static_shared_bytes"]), Some(entry.shared), "static shared memory of {case}");
            assert_eq!(banks(kernel), entry.constant, "constant banks of {case}");
            assert_eq!(kernel["ambiguous"], false, "{case} in a log of one compiler");
        }
        assert_eq!(function_frames(&run.kernels("function")), device_functions(&build.log), "in {}", build.source);
    }
}

/// Name, stack and spills of each device function of a report, sorted.
fn function_frames(functions: &[&Value]) -> Vec<(String, u32, u32, u32)> {
    let mut frames: Vec<_> = functions
        .iter()
        .map(|function| {
            let figure = |key: &str| number(&function[key]).expect("the log tells the frame of a function");
            let name = function["name"].as_str().unwrap().to_owned();
            (name, figure("stack_bytes"), figure("spill_store_bytes"), figure("spill_load_bytes"))
        })
        .collect();
    frames.sort();
    frames
}

/// The same of a log.
fn device_functions(log: &str) -> Vec<(String, u32, u32, u32)> {
    let mut frames: Vec<_> = read_ptxas(log)
        .into_iter()
        .filter(|record| record.arch.is_none())
        .map(|record| (record.name, record.stack, record.spill_stores, record.spill_loads))
        .collect();
    frames.sort();
    frames
}

#[test]
fn warplint_reads_the_listing_of_an_object_as_it_stands() {
    let Some(toolchain) = Toolchain::or_skip("warplint_reads_the_listing_of_an_object_as_it_stands") else { return };
    for build in builds(toolchain) {
        let run = warplint(&build.listing, &["--fail-on", "never"]);
        let usages: Vec<Usage> = build.usages().into_iter().filter(Usage::is_entry).collect();
        for usage in &usages {
            let kernel = run.entry(&usage.name, &usage.arch);
            let case = format!("{} of {} for {}", usage.name, build.source, usage.arch);
            assert_eq!(number(&kernel["registers"]), Some(usage.registers), "registers of {case}");
            assert_eq!(number(&kernel["stack_bytes"]), usage.stack, "stack of {case}");
            assert_eq!(banks(kernel), usage.constant, "constant banks of {case}");
            // the listing counts what each block reserves, the log does not: warplint tells what the kernel declares
            let shared = number(&kernel["static_shared_bytes"]);
            assert_eq!(shared, Some(usage.static_shared()), "static shared memory of {case}");
            for untold in ["barriers", "spill_store_bytes", "spill_load_bytes", "compile_time_ms"] {
                assert!(kernel[untold].is_null(), "the listing does not tell {untold} of {case}");
            }
        }
        assert_eq!(run.kernels("entry").len(), usages.len(), "entries of {}", build.source);
    }
}

#[test]
fn spills_are_found_where_the_compiler_saw_them_and_nowhere_else() {
    let Some(toolchain) = Toolchain::or_skip("spills_are_found_where_the_compiler_saw_them_and_nowhere_else") else {
        return;
    };
    let folder = WorkDir::new();
    let mut nvcc = toolchain.nvcc(folder.path(), &["sm_80"]);
    nvcc.args(["-maxrregcount=32", "-Xptxas", "-v,-warn-spills,-warn-lmem-usage", "-o", "spill.o", "-c"]);
    nvcc.arg(kernel_source("spill"));
    let output = nvcc.output().unwrap();
    let log = text(&output.stderr);
    assert!(output.status.success(), "{log}");
    assert!(log.contains("Registers are spilled to local memory in function"), "a warning of the compiler:\n{log}");

    let run = warplint(&log, &["--fail-on", "warn"]);
    assert_eq!(run.status, 1, "a spill is a warning: {}", run.stderr);
    let spills = run.findings("register-spill");
    let mut spilling = 0;
    for entry in read_ptxas(&log).iter().filter(|record| record.arch.is_some()) {
        let found: Vec<_> = spills.iter().filter(|finding| finding["kernel"] == entry.name.as_str()).collect();
        if entry.spill_stores + entry.spill_loads == 0 {
            assert!(found.is_empty(), "{} does not spill: {found:#?}", entry.name);
            continue;
        }
        spilling += 1;
        assert_eq!(found.len(), 1, "{} spills, and both the warning and the record say so: {found:#?}", entry.name);
        assert_eq!(number(&found[0]["facts"]["store_bytes"]), Some(entry.spill_stores), "{}", entry.name);
        assert_eq!(number(&found[0]["facts"]["load_bytes"]), Some(entry.spill_loads), "{}", entry.name);
        assert_eq!(found[0]["basis"], "measured");
    }
    assert!(spilling >= 2, "the cap makes two kernels spill:\n{log}");
}

#[test]
fn what_warplint_assembles_has_the_figures_of_ptxas() {
    let Some(toolchain) = Toolchain::or_skip("what_warplint_assembles_has_the_figures_of_ptxas") else { return };
    let folder = WorkDir::new();
    let mut files = Vec::new();
    let mut records = Vec::new();
    for (source, arch) in
        [("spill", "sm_80"), ("stack", &toolchain.archs[toolchain.archs.len() - 1]), ("parity", "sm_80")]
    {
        let file = format!("{source}.ptx");
        let mut nvcc = toolchain.nvcc(folder.path(), &[] as &[&str]);
        nvcc.args(["-ptx", "-lineinfo", "-maxrregcount=32", "-arch", arch, "-o", &file]).arg(kernel_source(source));
        let made = nvcc.output().unwrap();
        assert!(made.status.success(), "{}", text(&made.stderr));
        let mut ptxas = Command::new(toolchain.ptxas());
        ptxas.current_dir(folder.path()).args(["-v", "-arch", arch, "-o", "x.cubin", &file]);
        records.extend(read_ptxas(&text(&ptxas.output().unwrap().stderr)));
        files.push(file);
    }
    let run = warplint_assembling(&toolchain.ptxas(), folder.path(), &files);
    assert_eq!(run.stderr, "");
    let (entries, functions): (Vec<Record>, Vec<Record>) = records.into_iter().partition(|one| one.arch.is_some());
    assert!(entries.iter().any(|entry| entry.spill_stores > 0) && !functions.is_empty(), "{entries:#?}");
    assert_eq!(run.kernels("entry").len(), entries.len(), "each function of the PTX is one kernel with its figures");
    for entry in &entries {
        let kernel = run.entry(&entry.name, entry.arch());
        let case = format!("{} for {}", entry.name, entry.arch());
        assert_eq!(number(&kernel["registers"]), entry.registers, "registers of {case}");
        assert_eq!(number(&kernel["stack_bytes"]), Some(entry.stack), "stack of {case}");
        assert_eq!(number(&kernel["spill_store_bytes"]), Some(entry.spill_stores), "spill stores of {case}");
        assert_eq!(number(&kernel["static_shared_bytes"]), Some(entry.shared), "static shared memory of {case}");
        assert_eq!(kernel["occupancy"].as_array().unwrap().len(), 1, "occupancy of {case}");
        let bounds = &kernel["launch"]["max_threads"];
        assert!(bounds.is_null() || kernel["launch"]["block_source"] == "launch-bounds", "{kernel:#}");
    }
    assert!(!run.findings("register-spill").is_empty() && !run.findings("index-divergent-branch").is_empty());
    for function in functions {
        let found = run.kernels("function").into_iter().find(|one| one["name"] == function.name.as_str());
        assert_eq!(number(&found.expect(&function.name)["stack_bytes"]), Some(function.stack), "{}", function.name);
    }
}

#[test]
fn parts_of_programs_and_device_functions_are_assembled() {
    let Some(toolchain) = Toolchain::or_skip("parts_of_programs_and_device_functions_are_assembled") else { return };
    let folder = WorkDir::new();
    for source in ["rdc_a", "helper"] {
        let mut nvcc = toolchain.nvcc(folder.path(), &[] as &[&str]);
        nvcc.args(["-ptx", "-rdc=true", "-arch=sm_80", "-o", &format!("{source}.ptx")]).arg(kernel_source(source));
        let made = nvcc.output().unwrap();
        assert!(made.status.success(), "{}", text(&made.stderr));
    }
    let run = warplint_assembling(&toolchain.ptxas(), folder.path(), &["rdc_a.ptx", "helper.ptx"]);
    assert_eq!((run.stderr.as_str(), &run.report["summary"]["build_failed"]), ("", &false.into()));
    assert!(run.kernels("entry").iter().all(|kernel| kernel["registers"].is_u64()), "{:#}", run.report["kernels"]);
    let helpers: Vec<_> = run.kernels("function").into_iter().filter(|one| one["name"] == "_Z6helperiPKi").collect();
    assert_eq!(helpers.len(), 1);
    assert!(helpers[0]["stack_bytes"].as_u64().unwrap() > 0);
}

#[test]
fn oversized_shared_memory_is_a_failed_build() {
    let Some(toolchain) = Toolchain::or_skip("oversized_shared_memory_is_a_failed_build") else { return };
    let folder = WorkDir::new();
    let mut nvcc = toolchain.nvcc(folder.path(), &["sm_80"]);
    let output = nvcc.args(["-Xptxas", "-v", "-o", "big.o", "-c"]).arg(kernel_source("bigsmem")).output().unwrap();
    let log = text(&output.stderr);
    assert!(!output.status.success(), "ptxas takes no more than 48 KiB of static shared memory:\n{log}");

    let run = warplint(&log, &["--fail-on", "deny"]);
    assert_eq!(run.status, 1, "a failed build turns the run red: {}", run.stderr);
    let failed = run.findings("build-failed");
    assert!(!failed.is_empty(), "no build-failed in {:#}", run.report["findings"]);
    assert!(failed.iter().all(|finding| finding["level"] == "deny"));
    assert!(failed.iter().any(|finding| finding["kernel"] == "_Z7too_bigPf"), "the kernel is named: {failed:#?}");
    assert_eq!(run.report["summary"]["build_failed"], true);
    let shared = number(&run.entry("_Z7too_bigPf", "sm_80")["static_shared_bytes"]);
    assert_eq!(shared, read_ptxas(&log)[0].shared.into(), "the records after the error are read all the same");
}

#[test]
fn builds_of_one_source_in_two_folders_compare_as_equal_and_a_spill_is_worse() {
    let Some(toolchain) =
        Toolchain::or_skip("builds_of_one_source_in_two_folders_compare_as_equal_and_a_spill_is_worse")
    else {
        return;
    };
    let arch = &toolchain.archs[..1];
    let build = |name: &str, args: &[&str]| {
        let folder = WorkDir::new();
        let source = folder.write(name, &fs::read_to_string(kernel_source("tile")).unwrap());
        let mut nvcc = toolchain.nvcc(folder.path(), arch);
        let output = nvcc.args(args).args(["-Xptxas", "-v", "-o", "t.o", "-c"]).arg(source).output().unwrap();
        text(&output.stderr)
    };
    let folder = WorkDir::new();
    for (way, args) in [("whole", &[][..]), ("parts", &["-rdc=true"])] {
        folder.write(&format!("{way}-one.log"), &build("tile.cu", args));
        folder.write(&format!("{way}-other.log"), &build("renamed.cu", args));
        folder.write(&format!("{way}-spills.log"), &build("tile.cu", &[args, &["-maxrregcount=24"]].concat()));
    }
    let diff = |old: &str, new: &str| {
        let mut warplint = Command::new(env!("CARGO_BIN_EXE_warplint"));
        let output = warplint.current_dir(folder.path()).args(["diff", "--isolated", old, new]).output().unwrap();
        (text(&output.stdout), output.status.code())
    };
    for way in ["whole", "parts"] {
        let same = diff(&format!("{way}-one.log"), &format!("{way}-other.log"));
        assert_eq!(same, ("3 kernels compared: nothing changed\n".to_owned(), Some(0)));
        let (told, status) = diff(&format!("{way}-one.log"), &format!("{way}-spills.log"));
        assert!(status == Some(1) && told.contains("blend") && told.contains("1 worse"), "{told}");
    }
    // How device code is linked changes no name.
    assert_eq!(diff("whole-one.log", "parts-other.log").1, Some(0));
}

/// Two files of separate compilation and their device link, for two architectures.
fn device_link(toolchain: &Toolchain) -> Option<&'static (String, String)> {
    static LINK: OnceLock<(String, String)> = OnceLock::new();
    let archs: Vec<&String> =
        toolchain.archs.iter().filter(|arch| ["sm_80", "sm_90a"].contains(&arch.as_str())).collect();
    // the device linker names the architecture only when there are several
    (archs.len() == 2).then(|| {
        LINK.get_or_init(|| {
            let folder = WorkDir::new();
            let mut nvcc = toolchain.nvcc(folder.path(), &archs);
            nvcc.args(["-rdc=true", "-Xptxas", "-v", "-Xnvlink", "-v", "-dlink", "-o", "linked.o"]);
            let output = nvcc.arg(kernel_source("rdc_a")).arg(kernel_source("rdc_b")).output().unwrap();
            let log = text(&output.stderr);
            assert!(output.status.success(), "the device link failed:\n{log}");
            (log, toolchain.res_usage(&folder.path().join("linked.o")))
        })
    })
}

#[test]
fn the_device_linker_and_the_linked_file_tell_the_same() {
    let Some(toolchain) = Toolchain::or_skip("the_device_linker_and_the_linked_file_tell_the_same") else { return };
    let Some((log, listing)) = device_link(toolchain) else {
        return skip(
            "the_device_linker_and_the_linked_file_tell_the_same",
            "nvcc compiles for one of two architectures",
        );
    };
    let linked = read_nvlink(log);
    let usages: Vec<Usage> = read_res_usage(listing).into_iter().filter(Usage::is_entry).collect();
    assert_eq!(linked.len(), usages.len(), "{log}\n{listing}");
    for usage in usages {
        let case = format!("{} for {}", usage.name, usage.arch);
        let one = linked.iter().find(|one| one.name == usage.name && one.arch == usage.arch).expect(&case);
        assert_eq!(one.registers, usage.registers, "registers of {case}");
        assert_eq!(Some(one.stack), usage.stack, "stack of {case}");
        assert_eq!(one.shared, usage.shared, "shared memory of {case}, what a block reserves included");
        assert_eq!(one.constant, usage.constant, "constant banks of {case}");
    }
    let before: BTreeMap<_, _> = read_ptxas(log)
        .into_iter()
        .filter_map(|record| Some(((record.name, record.arch?), record.registers?)))
        .collect();
    let raised = linked.iter().filter(|one| before[&(one.name.clone(), one.arch.clone())] < one.registers).count();
    assert!(raised > 0, "the link raises a register count, else the next test shows nothing:\n{log}");
}

#[test]
fn registers_after_a_device_link_are_those_of_the_linked_file() {
    let Some(toolchain) = Toolchain::or_skip("registers_after_a_device_link_are_those_of_the_linked_file") else {
        return;
    };
    let Some((log, listing)) = device_link(toolchain) else {
        return skip(
            "registers_after_a_device_link_are_those_of_the_linked_file",
            "nvcc compiles for one of two architectures",
        );
    };
    let run = warplint(log, &["--fail-on", "never"]);
    for usage in read_res_usage(listing).iter().filter(|usage| usage.is_entry()) {
        let kernel = run.entry(&usage.name, &usage.arch);
        let case = format!("{} for {}", usage.name, usage.arch);
        assert_eq!(number(&kernel["registers"]), Some(usage.registers), "registers of {case}");
        assert_eq!(number(&kernel["static_shared_bytes"]), Some(usage.static_shared()), "shared memory of {case}");
    }
    let raised: Vec<_> = run.findings("not-final-registers");
    assert!(raised.iter().any(|finding| finding["kernel"] == "_Z5k_rdcPfi"), "the raise is told: {raised:#?}");
}

#[test]
fn compilers_on_one_pipe_lose_no_kernel() {
    let Some(toolchain) = Toolchain::or_skip("compilers_on_one_pipe_lose_no_kernel") else { return };
    const SOURCES: [&str; 4] = ["basic", "spill", "stack", "texsurf"];
    let folder = WorkDir::new();
    let archs: Vec<&String> =
        toolchain.archs.iter().filter(|arch| ["sm_80", "sm_90a"].contains(&arch.as_str())).collect();
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut children: Vec<_> = SOURCES
        .iter()
        .map(|source| {
            let mut nvcc = toolchain.nvcc(folder.path(), &archs);
            nvcc.args(["-Xptxas", "-v", "-o", &format!("{source}.o"), "-c"]).arg(kernel_source(source));
            nvcc.stderr(writer.try_clone().unwrap()).spawn().unwrap()
        })
        .collect();
    drop(writer);
    let mut log = String::new();
    reader.read_to_string(&mut log).unwrap();
    for (source, child) in SOURCES.iter().zip(&mut children) {
        assert!(child.wait().unwrap().success(), "{source} does not compile:\n{log}");
    }

    let run = warplint_piped(&log);
    let mut expected = 0;
    for source in SOURCES {
        let listing = toolchain.res_usage(&folder.path().join(format!("{source}.o")));
        for usage in read_res_usage(&listing).iter().filter(|usage| usage.is_entry()) {
            expected += 1;
            let kernel = run.entry(&usage.name, &usage.arch);
            // which burst a usage line belongs to may be open here; then the report must say so
            if kernel["ambiguous"] == false {
                let case = format!("{} of {source} for {}", usage.name, usage.arch);
                assert_eq!(number(&kernel["registers"]), Some(usage.registers), "registers of {case}");
                let shared = number(&kernel["static_shared_bytes"]);
                assert_eq!(shared, Some(usage.static_shared()), "static shared memory of {case}");
            }
        }
    }
    assert_eq!(run.kernels("entry").len(), expected);
}

/// Figures of an architecture as the programming guide publishes them: threads and shared memory of a multiprocessor,
/// shared memory that a block may opt in to, and what each block reserves.
const DEVICES: [(&str, [u32; 6]); 7] = [
    ("sm_75", [7, 5, 1024, 65_536, 65_536, 0]),
    ("sm_80", [8, 0, 2048, 167_936, 166_912, 1024]),
    ("sm_86", [8, 6, 1536, 102_400, 101_376, 1024]),
    ("sm_89", [8, 9, 1536, 102_400, 101_376, 1024]),
    ("sm_90a", [9, 0, 2048, 233_472, 232_448, 1024]),
    ("sm_100a", [10, 0, 2048, 233_472, 232_448, 1024]),
    ("sm_120a", [12, 0, 1536, 102_400, 101_376, 1024]),
];

/// Answers each line of standard input with what the vendor's header computes.
const DRIVER: &str = r#"
#include <cuda_occupancy.h>
#include <cstdio>

int main() {
    int major, minor, threads, shared_sm, shared_optin, reserved, registers, shared, barriers, block, dynamic;
    while (std::scanf("%d %d %d %d %d %d %d %d %d %d %d", &major, &minor, &threads, &shared_sm, &shared_optin, &reserved,
                      &registers, &shared, &barriers, &block, &dynamic) == 11) {
        cudaOccDeviceProp device;
        device.computeMajor = major;
        device.computeMinor = minor;
        device.maxThreadsPerBlock = 1024;
        device.maxThreadsPerMultiprocessor = threads;
        device.regsPerBlock = 65536;
        device.regsPerMultiprocessor = 65536;
        device.warpSize = 32;
        device.sharedMemPerBlock = 49152;
        device.sharedMemPerMultiprocessor = shared_sm;
        device.numSms = 1;
        device.sharedMemPerBlockOptin = shared_optin;
        device.reservedSharedMemPerBlock = reserved;
        cudaOccFuncAttributes kernel;
        kernel.maxThreadsPerBlock = 1024;
        kernel.numRegs = registers;
        kernel.sharedSizeBytes = shared;
        kernel.partitionedGCConfig = PARTITIONED_GC_OFF;
        kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_DEFAULT;
        kernel.maxDynamicSharedSizeBytes = 0;
        kernel.numBlockBarriers = barriers;
        cudaOccDeviceState state;
        cudaOccResult result;
        if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state, block, dynamic) != CUDA_OCC_SUCCESS) return 1;
        std::printf("%d %u\n", result.activeBlocksPerMultiprocessor, result.limitingFactors);
    }
}
"#;

/// What the header calls a limit, in the words of the report, by bit.
const LIMITS: [&str; 5] = ["warps", "registers", "shared_memory", "blocks", "barriers"];

#[test]
fn log_ptx_and_source_of_one_compile_are_one_kernel_each() {
    let Some(toolchain) = Toolchain::or_skip("log_ptx_and_source_of_one_compile_are_one_kernel_each") else { return };
    let arch = "sm_90a";
    if !toolchain.can(arch) {
        return skip("log_ptx_and_source_of_one_compile_are_one_kernel_each", "this nvcc makes no code for sm_90a");
    }
    let folder = WorkDir::new();
    for name in ["stencil.cu", "stencil.cuh"] {
        fs::copy(fixture(&format!("cuda/stencil/{name}")), folder.path().join(name)).unwrap();
    }
    let compile = |args: &[&str]| {
        let output = toolchain.nvcc(folder.path(), &[arch]).args(args).arg("stencil.cu").output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stderr)
    };
    let log = compile(&["-lineinfo", "-Xptxas", "-v", "-c", "-o", "stencil.o"]);
    let ptx = Command::new(toolchain.ptxas().with_file_name("nvcc"))
        .current_dir(folder.path())
        .args(["-arch=sm_90a", "-lineinfo", "-ptx", "stencil.cu"])
        .output()
        .unwrap();
    assert!(ptx.status.success(), "{}", text(&ptx.stderr));
    folder.write("build.log", &log);
    let output = Command::new(env!("CARGO_BIN_EXE_warplint"))
        .args(["--isolated", "-f", "json", ".", "build.log"])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(text(&output.stderr), "");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let kernels = report["kernels"].as_array().unwrap();
    let known: BTreeSet<String> = read_ptxas(&log).into_iter().map(|record| record.name).collect();
    let told: BTreeSet<String> = kernels.iter().map(|kernel| kernel["name"].as_str().unwrap().to_owned()).collect();
    assert_eq!((kernels.len(), told), (known.len(), known), "one kernel for each name of the log");
    for kernel in kernels {
        assert_eq!(kernel["arch"], arch, "{kernel}");
        let line = usize::try_from(kernel["declared_at"]["line"].as_u64().unwrap()).unwrap();
        let source = fs::read_to_string(folder.path().join("stencil.cu")).unwrap();
        let declared = source.lines().nth(line - 1).unwrap();
        let name = kernel["demangled"].as_str().unwrap();
        let own = ["smooth", "solve", "update", "lookup"].into_iter().find(|own| name.contains(own)).unwrap();
        assert!(declared.contains("__global__") && declared.contains(own), "{name} at {declared}");
        assert!(!kernel["registers"].is_null() && !kernel["launches"].as_array().unwrap().is_empty(), "{kernel}");
    }
    let findings = report["findings"].as_array().unwrap();
    assert!(findings.iter().any(|finding| finding["rule"] == "index-divergent-branch"));
    assert!(findings.iter().all(|finding| finding["rule"] != "stale-ptx"));
    // Every finding stands in the source, and no two of a rule say the same there.
    let place = |finding: &Value| format!("{} {} {}", finding["rule"], finding["location"]["line"], finding["kernel"]);
    let places: BTreeSet<String> = findings.iter().map(place).collect();
    assert_eq!(places.len(), findings.len(), "{places:?}");
    assert!(findings.iter().all(|finding| finding["location"]["path"] == "stencil.cu"), "{findings:?}");
}

#[test]
fn occupancy_is_what_the_vendor_header_says() {
    let Some(toolchain) = Toolchain::or_skip("occupancy_is_what_the_vendor_header_says") else { return };
    let Some(header) = toolchain.occupancy_header() else {
        return skip("occupancy_is_what_the_vendor_header_says", "this toolkit has no cuda_occupancy.h");
    };
    let Some(compiler) = on_path("g++") else {
        return skip("occupancy_is_what_the_vendor_header_says", "no g++ to compile the vendor's header with");
    };
    let folder = WorkDir::new();
    let source = folder.write("driver.cpp", DRIVER);
    let driver = folder.path().join("driver");
    let output = Command::new(compiler).arg("-I").arg(header).arg(source).arg("-o").arg(&driver).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));

    let builds = builds(toolchain).iter().filter(|build| ["basic", "spill"].contains(&build.source));
    let entries: Vec<(&Build, Vec<Record>)> = builds.map(|build| (build, build.entries())).collect();
    let mut questions = String::new();
    let launches: Vec<(u32, u32)> =
        [32, 100, 128, 256, 768, 1024].into_iter().flat_map(|block| [(block, 0), (block, 20_000)]).collect();
    for (block, dynamic) in &launches {
        for entry in entries.iter().flat_map(|(_, entries)| entries) {
            let (_, device) = DEVICES.iter().find(|(arch, _)| *arch == entry.arch()).unwrap();
            for figure in device {
                write!(questions, "{figure} ").unwrap();
            }
            // the count is a limit from sm_90 on, and 16 stands for a count that is not known
            let barriers = entry.barriers.filter(|count| device[0] >= 9 && *count < 16).unwrap_or(0);
            let (registers, shared) = (entry.registers.unwrap(), entry.shared);
            writeln!(questions, "{registers} {shared} {barriers} {block} {dynamic}").unwrap();
        }
    }
    let answers = ask(&driver, &folder, &questions);
    let mut answers = answers.lines().map(|line| {
        let (blocks, factors) = line.split_once(' ').unwrap();
        (blocks.parse::<u32>().unwrap(), factors.parse::<u32>().unwrap())
    });

    for (block, dynamic) in launches {
        for (build, entries) in &entries {
            let (threads, bytes) = (block.to_string(), dynamic.to_string());
            let run = warplint(&build.log, &["--block", &threads, "--dynamic-shared", &bytes, "--fail-on", "never"]);
            for entry in entries {
                let (blocks, factors) = answers.next().expect("the driver answers every question");
                let case = format!("{} for {} in blocks of {block} with {dynamic} bytes", entry.name, entry.arch());
                let occupancy = run.entry(&entry.name, entry.arch())["occupancy"].as_array().unwrap();
                assert_eq!(occupancy.len(), 1, "without a target a kernel is judged on its own architecture: {case}");
                assert_eq!(number(&occupancy[0]["blocks_per_sm"]), Some(blocks), "blocks of {case}");
                let warps = blocks * block.div_ceil(32);
                assert_eq!(number(&occupancy[0]["active_warps"]), Some(warps), "warps of {case}");
                let limiters: BTreeSet<&str> =
                    occupancy[0]["limiters"].as_array().unwrap().iter().map(|limit| limit.as_str().unwrap()).collect();
                if blocks > 0 {
                    let named = (0..LIMITS.len()).filter(|bit| factors >> bit & 1 == 1).map(|bit| LIMITS[bit]);
                    assert_eq!(limiters, named.collect(), "limiters of {case}");
                }
            }
        }
    }
    assert_eq!(answers.next(), None, "as many answers as questions");
}

fn ask(driver: &std::path::Path, folder: &WorkDir, questions: &str) -> String {
    let questions = fs::File::open(folder.write("questions", questions)).unwrap();
    let output = Command::new(driver).stdin(Stdio::from(questions)).output().unwrap();
    assert!(output.status.success(), "the header refuses a question: {}", text(&output.stdout));
    text(&output.stdout)
}

#[test]
fn every_wanted_architecture_has_published_figures() {
    let Some(toolchain) = Toolchain::or_skip("every_wanted_architecture_has_published_figures") else { return };
    for arch in &toolchain.archs {
        assert!(DEVICES.iter().any(|(known, _)| known == arch), "{arch} has no row in DEVICES");
    }
    assert!(toolchain.can("sm_80"), "the tests for one architecture use sm_80");
}
