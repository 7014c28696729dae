//! Logs as people post them: the facts that a reader would find, none that are not there, and what a rule should say.

// A failed expectation is how a test reports.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use warplint::rules::RULES;
use warplint::run::{Streams, run};

/// What `fixtures/wild/README.md` calls a diagnostic, and the rule that tells it.
const RULE_OF: [(&str, &str); 9] = [
    ("spill", "register-spill"),
    ("underfilled-warp", "under-filled-warp"),
    ("register-limited", "register-limited-occupancy"),
    ("block-limited", "block-limited-occupancy"),
    ("smem-over-static-limit", "build-failed"),
    ("link-register-cap", "build-failed"),
    ("wgmma-serialized", "wgmma-serialized"),
    ("setmaxnreg-ignored", "setmaxnreg-ignored"),
    ("launch-bounds-ignored", "launch-bounds-ignored"),
];

/// The figures of an expectation and of the JSON report.
const FIGURES: [(&str, &str); 9] = [
    ("registers", "registers"),
    ("barriers", "barriers"),
    ("textures", "textures"),
    ("stack", "stack_bytes"),
    ("cumulative_stack", "cumulative_stack_bytes"),
    ("spill_stores", "spill_store_bytes"),
    ("spill_loads", "spill_load_bytes"),
    ("smem", "static_shared_bytes"),
    ("lmem", "local_bytes"),
];

struct Case {
    name: String,
    path: PathBuf,
    block: Option<String>,
    expected: Vec<Value>,
}

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/wild");
    let mut found: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    found.sort();
    found.into_iter().map(case).collect()
}

fn case(path: PathBuf) -> Case {
    let told: toml::Table = fs::read_to_string(path.join("case.toml")).unwrap().parse().unwrap();
    let block = told.get("block").and_then(toml::Value::as_array).map(|block| {
        block.iter().map(|size| size.as_integer().unwrap().to_string()).collect::<Vec<String>>().join(",")
    });
    let expected = serde_json::from_str(&fs::read_to_string(path.join("expected.json")).unwrap()).unwrap();
    Case { name: path.file_name().unwrap().to_str().unwrap().to_owned(), path, block, expected }
}

impl Case {
    /// The JSON report, with the options of the case.
    fn report(&self) -> Value {
        let log = self.path.join("input.log");
        let mut args: Vec<String> =
            ["warplint", "-f", "json", log.to_str().unwrap()].into_iter().map(str::to_owned).collect();
        if let Some(block) = &self.block {
            args.extend(["--block".to_owned(), block.clone()]);
        }
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        run(
            args.into_iter().map(Into::into).collect(),
            &mut Streams {
                stdin: &mut std::io::empty(),
                stdin_is_terminal: true,
                stderr_is_terminal: false,
                stdout: &mut stdout,
                stderr: &mut stderr,
                terminal: None,
            },
        );
        let said = String::from_utf8_lossy(&stderr);
        serde_json::from_slice(&stdout).unwrap_or_else(|error| panic!("{}: {error}: {said}", self.name))
    }

    /// Records that are figures of a kernel; the others are messages.
    fn kernels(&self) -> impl Iterator<Item = &Value> {
        self.expected.iter().filter(|record| !record["registers"].is_null() || record["kind"] == "function")
    }

    fn differences(&self, report: &Value) -> Vec<String> {
        let kernels = report["kernels"].as_array().unwrap();
        let mut wrong = Vec::new();
        let expected: Vec<&Value> = self.kernels().collect();
        if kernels.len() != expected.len() {
            let names: Vec<&Value> = kernels.iter().map(|kernel| &kernel["name"]).collect();
            wrong.push(format!("{} kernels of {}: {names:?}", kernels.len(), expected.len()));
        }
        for record in expected {
            match kernels.iter().find(|kernel| kernel["name"] == record["kernel"]) {
                Some(kernel) => wrong.extend(figures_that_differ(record, kernel)),
                None => wrong.push(format!("no kernel {}", record["kernel"])),
            }
        }
        wrong
    }
}

fn figures_that_differ(record: &Value, kernel: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut compare = |what: &str, expected: &Value, got: &Value| {
        if expected != got {
            wrong.push(format!("{}: {what} is {got}, not {expected}", record["kernel"]));
        }
    };
    // The architecture of a function is that of the entries of its run, which an expectation may leave open.
    if record["kind"] != "function" || !record["arch"].is_null() {
        compare("arch", &record["arch"], &kernel["arch"]);
    }
    compare("kind", record.get("kind").unwrap_or(&Value::from("entry")), &kernel["kind"]);
    compare("ambiguous", &Value::from(false), &kernel["ambiguous"]);
    for (here, there) in FIGURES {
        if let Some(expected) = record.get(here) {
            compare(here, expected, &kernel[there]);
        }
    }
    if record["cmem"].is_null() {
        compare("cmem", &Value::Null, &kernel["constant_bytes"]);
    } else {
        compare("cmem", &record["cmem"], &kernel["constant_bytes"]);
    }
    wrong.extend(occupancy_that_differs(record, kernel));
    wrong
}

fn occupancy_that_differs(record: &Value, kernel: &Value) -> Vec<String> {
    let Some(expected) = record.get("occupancy") else { return Vec::new() };
    let got = &kernel["occupancy"][0];
    let percent = got["occupancy"].as_f64().unwrap_or(-1.0) * 100.0;
    let limiter = expected["limiter"].as_str().unwrap().replace("threads", "warps");
    let limiters = got["limiters"].as_array().cloned().unwrap_or_default();
    let mut wrong = Vec::new();
    if (percent - expected["percent"].as_f64().unwrap()).abs() > 0.01 {
        wrong.push(format!("occupancy is {percent} %, not {}", expected["percent"]));
    }
    if !limiters.contains(&Value::from(limiter.as_str())) {
        wrong.push(format!("limiters are {limiters:?}, without {limiter}"));
    }
    for figure in ["blocks_per_sm", "active_warps", "max_warps"] {
        if got[figure] != expected[figure] {
            wrong.push(format!("{figure} is {}, not {}", got[figure], expected[figure]));
        }
    }
    wrong
}

/// The rules that should report each record, as far as they exist.
fn rules_of(record: &Value) -> Vec<&'static str> {
    let told = record.get("diagnostics").and_then(Value::as_array).cloned().unwrap_or_default();
    let names = told.iter().map(|name| name.as_str().unwrap().split(':').next().unwrap().to_owned());
    names
        .map(|name| {
            RULE_OF.iter().find(|(here, _)| *here == name).unwrap_or_else(|| panic!("{name} is no diagnostic")).1
        })
        .filter(|id| RULES.iter().any(|rule| rule.id == *id))
        .collect()
}

#[test]
fn every_log_of_the_wild_gives_its_facts_and_no_others() {
    let cases = cases();
    assert!(cases.len() > 20, "{} cases", cases.len());
    let wrong: Vec<String> = cases
        .iter()
        .flat_map(|case| {
            let differences = case.differences(&case.report());
            differences.into_iter().map(|what| format!("{}: {what}", case.name)).collect::<Vec<String>>()
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_log_of_the_wild_is_told_what_a_reader_wants_to_know() {
    let mut missing = Vec::new();
    for case in cases() {
        let report = case.report();
        let findings = report["findings"].as_array().unwrap();
        for record in &case.expected {
            for rule in rules_of(record) {
                let tells = |finding: &&Value| finding["rule"] == rule && finding["kernel"] == record["kernel"];
                if !findings.iter().any(|finding| tells(&finding)) {
                    missing.push(format!("{}: no {rule} for {}", case.name, record["kernel"]));
                }
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn a_full_warp_is_never_called_under_filled() {
    for case in cases()
        .iter()
        .filter(|case| !case.expected.iter().any(|record| rules_of(record).contains(&"under-filled-warp")))
    {
        let report = case.report();
        let findings = report["findings"].as_array().unwrap();
        assert!(!findings.iter().any(|finding| finding["rule"] == "under-filled-warp"), "{}", case.name);
    }
}
