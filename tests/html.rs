//! The report to look at: what is in it, that nothing of an input becomes markup, and that a browser shows it.

#[path = "common/tools.rs"]
mod tools;

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tools::tool_or_skip;
use warplint::run::{Streams, run};

const BEFORE: &str = include_str!("browser/before.js");
const AFTER: &str = include_str!("browser/after.js");

/// A log, PTX with branches, and their sources.
const BUILD: [&str; 3] = [
    "fixtures/ptxas/13.5/spill-maxreg32-sm80/input.log",
    "fixtures/ptxas/13.5/basic-sm90/input.log",
    "fixtures/ptx/13.5/parity-branch/input.ptx",
];

fn warplint(args: &[&str], piped: &[u8]) -> String {
    let all = ["warplint"].iter().chain(args);
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    run(
        all.map(OsString::from).collect(),
        &mut Streams {
            stdin: &mut &*piped,
            stdin_is_terminal: piped.is_empty(),
            stdout: &mut stdout,
            stderr: &mut stderr,
            stderr_is_terminal: false,
            terminal: None,
        },
    );
    assert!(!stdout.is_empty(), "{}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).expect("text")
}

fn page(inputs: &[&str]) -> String {
    warplint(&[&["--isolated", "--format", "html"], inputs].concat(), b"")
}

/// The data of a page, as its script reads them.
fn data(page: &str) -> Value {
    let (_, rest) = page.split_once("id=\"data\">").expect("the data");
    let (data, _) = rest.split_once("</script>").expect("its end");
    serde_json::from_str(data).unwrap_or_else(|error| panic!("{error}\n{data}"))
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value[key].as_array().unwrap_or_else(|| panic!("no list {key}"))
}

#[test]
fn the_page_has_every_kernel_finding_and_branch_of_the_json_reports() {
    let page = data(&page(&BUILD));
    let report: Value =
        serde_json::from_str(&warplint(&[&["--isolated", "--format", "json"], &BUILD[..]].concat(), b""))
            .expect("JSON");
    assert_eq!(list(&page, "kernels").len(), list(&report, "kernels").len());
    assert_eq!(list(&page, "findings").len(), list(&report, "findings").len());
    let branches: Value =
        serde_json::from_str(&warplint(&["branches", "--format", "json", BUILD[2]], b"")).expect("JSON");
    assert_eq!(list(&page, "branches").len(), list(&branches, "branches").len());
    for (shown, told) in list(&page, "kernels").iter().zip(list(&report, "kernels")) {
        let points: Vec<&Value> =
            list(shown, "points").iter().map(|at| &page["points"][at.as_u64().expect("an index") as usize]).collect();
        let told = list(told, "occupancy");
        assert_eq!(points.len(), told.len());
        for (point, told) in points.iter().zip(told) {
            assert_eq!(point["warps"], told["active_warps"]);
            assert_eq!(point["blocks"], told["blocks_per_sm"]);
            assert_eq!(point["block"], told["block"]);
        }
    }
}

/// The warps that a curve of the page has at `value`.
fn at(curve: &Value, value: u64) -> u64 {
    let steps = curve.as_array().expect("steps");
    let step = steps.iter().find(|step| value <= step[0].as_u64().expect("a value"));
    step.map_or(0, |step| step[1].as_u64().expect("warps"))
}

#[test]
fn every_value_of_a_curve_is_what_the_calculator_says() {
    let page = data(&page(&BUILD));
    let point = list(&page, "points").iter().max_by_key(|point| point["registers"].as_u64()).expect("a kernel");
    let own = point["registers"].as_u64().expect("registers");
    assert!(own > 32, "a curve with steps");
    let curves: Vec<&Value> =
        list(point, "curves").iter().map(|at| &page["curves"][at.as_u64().expect("an index") as usize]).collect();
    let gpu =
        page["gpus"][point["gpu"].as_u64().expect("an index") as usize]["name"].as_str().expect("a name").to_owned();
    let threads =
        point["block"].as_array().expect("a block").iter().map(|one| one.as_u64().expect("threads")).product::<u64>();
    let warps = |block: u64, registers: u64, shared: u64| {
        let (block, registers, shared) = (block.to_string(), registers.to_string(), shared.to_string());
        let args = ["occupancy", "--gpu", &gpu, "--block", &block, "--registers", &registers, "--shared", &shared];
        let told: Value =
            serde_json::from_str(&warplint(&[&args[..], &["--format", "json"]].concat(), b"")).expect("JSON");
        told["occupancy"][0]["active_warps"].as_u64().expect("warps")
    };
    let shared = point["shared"].as_u64().expect("bytes");
    for block in [1, 32, 33, 95, 96, 256, 640, 700, 1024] {
        assert_eq!(at(curves[0], block), warps(block, own, shared), "{block} threads");
    }
    for registers in [1, 24, 32, 33, 40, 41, 64, 65, 88, 128, 129, 168, 255] {
        assert_eq!(at(curves[1], registers), warps(threads, registers, shared), "{registers} registers");
    }
    let most = page["gpus"][0]["max_shared"].as_u64().expect("bytes");
    let edges = curves[2].as_array().expect("steps").iter().map(|step| step[0].as_u64().expect("bytes"));
    for bytes in edges.flat_map(|edge| [edge, (edge + 1).min(most)]) {
        assert_eq!(at(curves[2], bytes), warps(threads, own, bytes), "{bytes} B");
    }
}

#[test]
fn a_kernel_called_script_is_text() {
    // Markup is no part of a name, but what only begins some is.
    let name = "</script x<script y=alert[1]</script";
    let log = format!(
        "ptxas info    : Compiling entry function '{name}' for 'sm_80'\nptxas info    : Function properties for {name}\n    \
         8 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads\nptxas info    : Used 40 registers, 360 bytes cmem[0]\n"
    );
    let page = warplint(&["--isolated", "--passthrough", "none", "--format", "html"], log.as_bytes());
    assert_eq!(page.matches("<script").count(), 2, "the data and the page's own script");
    assert_eq!(page.matches("</script").count(), 2);
    assert!(!page.contains("alert[1]</"));
    let data = data(&page);
    assert!(
        data["kernels"][0]["name"].as_str().expect("a name").contains("alert[1]</script"),
        "{}",
        data["kernels"][0]
    );
}

#[test]
fn one_page_needs_no_other_file_and_names_no_place_in_the_network() {
    let page = page(&BUILD);
    let (before, rest) = page.split_once("id=\"data\">").expect("the data");
    let (_, after) = rest.split_once("</script>").expect("its end");
    for part in [before, after] {
        for way in ["http:", "https:", "src=", "url(", "@import"] {
            let found = part.matches(way).count();
            // The names of SVG elements are of a namespace that looks like an address.
            let expected = usize::from(way == "http:" && part.contains("http://www.w3.org/2000/svg"));
            assert_eq!(found, expected, "{way}");
        }
    }
    assert!(before.contains("default-src 'none'"));
}

/// Opens `page` in a browser, drives it with the script, and gives what that saw.
fn driven(browser: &Path, page: &str, search: &str) -> Value {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("html");
    fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("report.html");
    let driver = AFTER.replace("{{search}}", search);
    let page = page.replacen("<style>", &format!("<script>{BEFORE}</script><style>"), 1).replacen(
        "</body>",
        &format!("<script>{driver}</script></body>"),
        1,
    );
    fs::write(&file, page).expect("the page");
    let profile = folder.join("profile");
    let output = Command::new(browser)
        .args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--virtual-time-budget=20000",
        ])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg("--dump-dom")
        .arg(format!("file://{}", file.display()))
        .output()
        .expect("a browser that runs");
    let dom = String::from_utf8_lossy(&output.stdout);
    let title = dom.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>")).map(|(title, _)| title);
    let title = title.unwrap_or_else(|| panic!("no title: {dom}\n{}", String::from_utf8_lossy(&output.stderr)));
    let title = title.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").replace("&nbsp;", "\u{a0}");
    serde_json::from_str(&title).unwrap_or_else(|error| panic!("{error}: {title}"))
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().expect("a list").iter().map(|one| one.as_str().expect("text")).collect()
}

#[test]
fn a_browser_sorts_filters_opens_a_kernel_and_reads_its_curves() {
    const NAME: &str = "a_browser_sorts_filters_opens_a_kernel_and_reads_its_curves";
    let Some(browser) = tool_or_skip("chromium", NAME) else { return };
    let seen = driven(&browser, &page(&BUILD), "reg_hungry");
    assert_eq!(seen["complaints"], Value::Array(Vec::new()));
    assert_eq!(seen["requests"], Value::Array(Vec::new()));
    assert_eq!(seen["survives"], true);
    assert_eq!(seen["sorted"], "descending");
    let numbers = |key: &str| texts(&seen[key]).iter().filter_map(|text| text.parse().ok()).collect::<Vec<u32>>();
    assert!(numbers("falling").is_sorted_by(|a, b| a >= b), "{seen}");
    assert!(numbers("rising").is_sorted(), "{seen}");
    assert!(numbers("rising").len() > 5);
    assert!(texts(&seen["filtered"]).iter().all(|name| name.contains("reg_hungry")), "{seen}");
    assert_eq!(seen["kernel"], "reg_hungry");
    assert!(!texts(&seen["findings"]).is_empty());
    // 255 registers of 256 threads: 65,536 / (8 × 8,192) registers leave one block.
    assert_eq!(seen["most_registers"], "255 registers a thread: 8 of 64 warps, 13 %");
    assert_eq!(seen["one_warp"], "32 threads a block: 32 of 64 warps, 50 %");
    assert_eq!(seen["two_warps"], "64 threads a block: 64 of 64 warps, 100 %");
    assert_eq!(seen["back"], seen["own"][0]);
    // The warps of the parity branch are parted lane by lane.
    assert!(texts(&seen["branch_lanes"]).iter().any(|lanes| lanes.contains("0, 2, 4")), "{seen}");
}
