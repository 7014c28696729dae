//! Reports for other programs are valid by the schemas that these publish: for every example of every rule, and for many
//! findings at once.
#![allow(clippy::unwrap_used, reason = "a test stops where it is broken")]

mod pages;
#[path = "pages/xsd.rs"]
mod xsd;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use jsonschema::Validator;
use serde_json::Value;
use warplint::rules::RULES;
use warplint::run::{Streams, run};

use pages::examples;
use xsd::{Node, Xsd};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn schema(name: &str) -> Validator {
    let text = fs::read_to_string(Path::new(ROOT).join("fixtures/schemas").join(name)).unwrap();
    // OASIS' pattern of languages ends with a bracket that closes nothing, which engines of JavaScript let pass.
    let text = text.replace("[a-zA-Z]{2}]?$", r"[a-zA-Z]{2}\\]?$");
    let schema: Value = serde_json::from_str(&text).unwrap();
    jsonschema::draft7::options().should_validate_formats(true).build(&schema).unwrap()
}

fn xsd() -> Xsd {
    Xsd::read(&fs::read_to_string(Path::new(ROOT).join("fixtures/schemas/junit-10.xsd")).unwrap())
}

fn complaints(schema: &Validator, report: &str) -> Vec<String> {
    let report: Value = match serde_json::from_str(report) {
        Ok(report) => report,
        Err(error) => return vec![format!("{error}\n{report}")],
    };
    schema.iter_errors(&report).take(5).map(|error| format!("{error} at {}", error.instance_path())).collect()
}

/// What is wrong with a report in JUnit's XML: with its form, and with its counts.
fn complaints_of_xml(xsd: &Xsd, report: &str) -> Vec<String> {
    let root = match Node::parse(report) {
        Ok(root) => root,
        Err(error) => return vec![error],
    };
    let mut found = xsd.complaints(&root);
    let suites = root.children.iter().filter(|node| node.name == "testsuite");
    for node in suites.chain([&root]) {
        let cases = count(node, &["testcase"]);
        let failures = count(node, &["failure"]);
        for (key, counted) in [("tests", cases), ("failures", failures), ("errors", count(node, &["error"]))] {
            if node.get(key) != Some(&counted.to_string()) {
                found.push(format!("<{}> has {key}={:?}, and there are {counted}", node.name, node.get(key)));
            }
        }
    }
    found
}

fn count(node: &Node, names: &[&str]) -> usize {
    let own = usize::from(names.contains(&node.name.as_str()));
    own + node.children.iter().map(|child| count(child, names)).sum::<usize>()
}

/// What is wrong with annotations, read as GitHub's runner reads them.
fn complaints_of_commands(report: &str) -> Vec<String> {
    const KEYS: [&str; 4] = ["file", "line", "col", "endColumn"];
    let mut found = Vec::new();
    for line in report.lines().take_while(|line| !line.starts_with("GitHub shows ten")) {
        let command = line.strip_prefix("::").and_then(|rest| rest.split_once(' '));
        let Some((level, rest)) = command.filter(|(level, _)| ["error", "warning", "notice"].contains(level)) else {
            found.push(format!("no command: {line}"));
            continue;
        };
        let Some((properties, message)) = rest.split_once("::") else {
            found.push(format!("no message: {line}"));
            continue;
        };
        for property in properties.split(',') {
            let is_known = property.split_once('=').is_some_and(|(key, value)| {
                let number = key == "file" || value.parse::<u64>().is_ok_and(|number| number > 0);
                (key == "title" || (KEYS.contains(&key) && number)) && !value.contains(':')
            });
            if !is_known {
                found.push(format!("{property} is no property: {line}"));
            }
        }
        if message.is_empty() || level.is_empty() {
            found.push(format!("an empty command: {line}"));
        }
    }
    found
}

#[test]
fn the_reports_on_the_examples_of_all_rules_are_valid() {
    let (sarif, gitlab, junit) = (schema("sarif-schema-2.1.0.json"), schema("gitlab-code-quality.json"), xsd());
    let mut wrong = Vec::new();
    let mut shown: BTreeSet<String> = BTreeSet::new();
    for rule in RULES {
        for example in examples(rule.page().body).unwrap() {
            let report = |format: &str| example.report(format, "format-schemas");
            let text = report("sarif");
            let log: Value = serde_json::from_str(&text).unwrap_or_default();
            let results = log["runs"][0]["results"].as_array().cloned().unwrap_or_default();
            shown.extend(results.iter().filter_map(|result| result["ruleId"].as_str()).map(str::to_owned));
            wrong.extend(complaints(&sarif, &text).into_iter().map(|text| format!("{} sarif: {text}", rule.id)));
            let text = complaints(&gitlab, &report("gitlab"));
            wrong.extend(text.into_iter().map(|text| format!("{} gitlab: {text}", rule.id)));
            let text = complaints_of_xml(&junit, &report("junit"));
            wrong.extend(text.into_iter().map(|text| format!("{} junit: {text}", rule.id)));
            let text = complaints_of_commands(&report("github"));
            wrong.extend(text.into_iter().map(|text| format!("{} github: {text}", rule.id)));
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
    let silent: Vec<&str> = RULES.iter().map(|rule| rule.id).filter(|id| !shown.contains(*id)).collect();
    assert!(silent.is_empty(), "no example shows {silent:?}");
}

/// A folder with this log in a file whose name no format can take as it is.
fn odd_log(folder: &str, log: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("bäu, ld 100%&'1'.log");
    fs::write(&path, log).unwrap();
    path
}

fn report(format: &str, args: &[&str], path: &Path) -> String {
    let fixed = ["warplint", "--isolated", "--source", "Cargo.toml", "-f", format];
    let args = fixed.iter().chain(args).map(OsString::from).chain([path.as_os_str().to_owned()]);
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    run(
        args.collect(),
        &mut Streams {
            stdin: &mut std::io::empty(),
            stdin_is_terminal: true,
            stdout: &mut stdout,
            stderr: &mut stderr,
            stderr_is_terminal: false,
            terminal: None,
        },
    );
    assert_eq!(String::from_utf8_lossy(&stderr), "");
    String::from_utf8(stdout).unwrap()
}

/// A log of kernels that spill, of all templates and names that make trouble.
fn many(count: usize) -> String {
    let name = |at: usize| match at % 4 {
        0 => format!("_Z4gemmILi{at}EEvPKfPf"),
        1 => format!("_ZN3ns{}12kernel_{at:05}E{}", "1a", "v"),
        2 => format!("k<&\"'>é漢{at}"),
        _ => format!("plain_{at}"),
    };
    let record = |at: usize| {
        let name = name(at);
        format!(
            "ptxas info    : Compiling entry function '{name}' for 'sm_80'\nptxas info    : Function properties for {name}\n    \
             8 bytes stack frame, {} bytes spill stores, 4 bytes spill loads\nptxas info    : Used 255 registers\n",
            4 + at % 7,
        )
    };
    (0..count).map(record).collect()
}

#[test]
fn a_report_of_ten_thousand_findings_is_valid() {
    let log = odd_log("ten-thousand", &many(10_000));
    let only = ["--allow", "occupancy"];
    let sarif = report("sarif", &only, &log);
    let results: Value = serde_json::from_str(&sarif).unwrap();
    assert!(results["runs"][0]["results"].as_array().unwrap().len() >= 10_000);
    let none: Vec<String> = Vec::new();
    assert_eq!(complaints(&schema("sarif-schema-2.1.0.json"), &sarif), none);
    let gitlab = report("gitlab", &only, &log);
    assert_eq!(complaints(&schema("gitlab-code-quality.json"), &gitlab), none);
    let issues: Vec<Value> = serde_json::from_str(&gitlab).unwrap();
    let fingerprints: BTreeSet<&str> = issues.iter().map(|issue| issue["fingerprint"].as_str().unwrap()).collect();
    assert_eq!((issues.len(), fingerprints.len()), (10_000, 10_000));
    assert_eq!(complaints_of_xml(&xsd(), &report("junit", &only, &log)), none);
    assert_eq!(complaints_of_commands(&report("github", &only, &log)), none);
}

#[test]
fn an_empty_report_is_valid_too() {
    let log = odd_log("empty-report", &many(1).replace("8 bytes", "0 bytes").replace("4 bytes", "0 bytes"));
    let only = ["--allow", "occupancy", "--allow", "spills", "--allow", "compiler"];
    let none: Vec<String> = Vec::new();
    assert_eq!(complaints(&schema("sarif-schema-2.1.0.json"), &report("sarif", &only, &log)), none);
    assert_eq!(report("gitlab", &only, &log), "[]\n");
    assert_eq!(complaints_of_xml(&xsd(), &report("junit", &only, &log)), none);
    assert_eq!(report("github", &only, &log), "");
}

#[test]
fn the_schemas_refuse_what_is_wrong() {
    let (sarif, gitlab, junit) = (schema("sarif-schema-2.1.0.json"), schema("gitlab-code-quality.json"), xsd());
    assert!(!complaints(&sarif, r#"{"version": "2.1.0"}"#).is_empty());
    assert!(
        !complaints(&sarif, r#"{"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "x", "helpUri": "y"}}}]}"#)
            .is_empty()
    );
    assert!(!complaints(&gitlab, r#"[{"description": "x"}]"#).is_empty());
    for wrong in [
        "<testsuites><testsuite/></testsuites>",
        "<testsuites color=\"red\"/>",
        "<testsuites time=\"soon\"/>",
        "<testsuites>words</testsuites>",
        "<testsuites><testcase name=\"x\"/></testsuites>",
        "<other/>",
        "<testsuites>",
        "<testsuites/><testsuites/>",
        "<testsuites name=\"\u{1}\"/>",
    ] {
        assert!(!Node::parse(wrong).map_or(vec![String::new()], |root| junit.complaints(&root)).is_empty(), "{wrong}");
    }
    let right = "<testsuites time=\"0.003\"><testsuite name=\"a\" tests=\"1\" failures=\"1\" errors=\"0\"><testcase name=\"x\">\
                 <failure>why</failure><system-out/></testcase></testsuite></testsuites>";
    assert_eq!(junit.complaints(&Node::parse(right).unwrap()), Vec::<String>::new());
    for wrong in
        ["::debug title=x::y", "::error file=a:b::y", "::error line=0::y", "::error title=x", "::error  color=red::y"]
    {
        assert!(!complaints_of_commands(wrong).is_empty(), "{wrong}");
    }
}

/// Places in SARIF with the text that they mark, read by the rules of the format.
fn marked(sarif: &str, folder: &Path) -> Vec<(String, String)> {
    let log: Value = serde_json::from_str(sarif).unwrap();
    let run = &log["runs"][0];
    assert_eq!(run["columnKind"], "unicodeCodePoints");
    let mut found = Vec::new();
    for result in run["results"].as_array().unwrap() {
        let place = &result["locations"][0]["physicalLocation"];
        let (artifact, region) = (&place["artifactLocation"], &place["region"]);
        let uri = artifact["uri"].as_str().unwrap();
        let path = decoded(uri.strip_prefix("file://").unwrap_or(uri));
        // A relative reference has a base, and an absolute one none.
        assert_eq!(artifact.get("uriBaseId").is_some(), !uri.starts_with("file:"), "{artifact}");
        assert!(
            artifact
                .get("uriBaseId")
                .is_none_or(|base| run["originalUriBaseIds"].get(base.as_str().unwrap()).is_some())
        );
        let text = fs::read_to_string(folder.join(path)).unwrap();
        let number = |key: &str| usize::try_from(region[key].as_u64().unwrap()).unwrap();
        let line = text.lines().nth(number("startLine") - 1).unwrap();
        let taken = number("endColumn") - number("startColumn");
        let text: String = line.chars().skip(number("startColumn") - 1).take(taken).collect();
        found.push((result["ruleId"].as_str().unwrap().to_owned(), text));
    }
    found
}

fn decoded(uri: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = uri.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        if *first == b'%' {
            bytes.push(u8::from_str_radix(std::str::from_utf8(&more[..2]).unwrap(), 16).unwrap());
            rest = &more[2..];
        } else {
            assert!(first.is_ascii_alphanumeric() || b"-._~/".contains(first), "{uri}");
            bytes.push(*first);
            rest = more;
        }
    }
    String::from_utf8(bytes).unwrap()
}

#[test]
fn columns_count_characters_whatever_they_are_made_of() {
    let record = "ptxas info    : Compiling entry function 'k' for 'sm_80'\nptxas info    : Function properties for k\n    8 bytes \
                  stack frame, 4 bytes spill stores, 4 bytes spill loads\nptxas info    : Used 24 registers\n";
    let prefixed: String = record.lines().map(|line| format!("[構築 é😀] {line}\n")).collect();
    let log = odd_log("columns-log", &prefixed);
    let found = marked(&report("sarif", &["--allow", "occupancy"], &log), Path::new("/"));
    assert_eq!(found, [("register-spill".to_owned(), "4 bytes spill stores, 4 bytes spill loads".to_owned())]);

    let source = "__global__ void k(float *x) { x[threadIdx.x] = 0; }\n\
                  void run(float *x) {\n\t/* 漢字 é😀 */ k<<<1, 33>>>(x); // 後\n}\n";
    let path = log.with_file_name("é 漢#1.cu");
    fs::write(&path, source).unwrap();
    let found = marked(&report("sarif", &[], &path), Path::new("/"));
    assert_eq!(found, [("under-filled-warp".to_owned(), "33".to_owned())]);

    let ptx = ".version 8.5\n.target sm_80\n.address_size 64\n/* é漢 */ .visible .entry k(.param .u64 p)\n{\n\t.reg .b32 %r<2>;\n\
               \tret;\n}\n/* é😀 */ // warplint: allow(no-such-rule)\n";
    let path = log.with_file_name("k.ptx");
    fs::write(&path, ptx).unwrap();
    let found = marked(&report("sarif", &[], &path), Path::new("/"));
    assert_eq!(found, [("unused-allow".to_owned(), "no-such-rule".to_owned())]);
}

#[test]
fn what_is_allowed_is_suppressed_with_its_reason_and_its_place() {
    let folder = odd_log("suppressed", "").parent().unwrap().to_owned();
    let launch = |name: &str| format!("void run_{name}(float *x) {{ {name}<<<1, 33>>>(x); }}\n");
    let kernel = |name: &str| format!("__global__ void {name}(float *x) {{ x[threadIdx.x] = 0; }}\n");
    let source =
        kernel("shown") + "// warplint: allow(warps) one warp and the halo\n" + &kernel("said") + &kernel("listed");
    let source = source + &launch("shown") + &launch("said") + &launch("listed");
    let path = folder.join("k.cu");
    fs::write(&path, source).unwrap();
    let config = folder.join("warplint.toml");
    let text = "[[kernel]]\nname = \"listed\"\nallow = [\"warps\"]\nreason = \"it is cold\"\n";
    fs::write(&config, text).unwrap();
    let run = |format: &str| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_warplint"))
            .args(["-f", format, "k.cu"])
            .current_dir(&folder)
            .output()
            .unwrap();
        assert!(output.stderr.is_empty());
        String::from_utf8(output.stdout).unwrap()
    };
    let sarif = run("sarif");
    assert_eq!(complaints(&schema("sarif-schema-2.1.0.json"), &sarif), Vec::<String>::new());
    let log: Value = serde_json::from_str(&sarif).unwrap();
    let suppressions: Vec<Value> = log["runs"][0]["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| {
            let one = &result["suppressions"][0];
            let place = &one["location"]["physicalLocation"];
            serde_json::json!([
                one["kind"],
                one["justification"],
                place["artifactLocation"]["uri"],
                place["region"]["startLine"]
            ])
        })
        .collect();
    let expected = serde_json::json!([
        [null, null, null, null],
        ["inSource", "one warp and the halo", "k.cu", 2],
        ["external", "it is cold", "warplint.toml", 3],
    ]);
    assert_eq!(Value::from(suppressions), expected);
    let json: Value = serde_json::from_str(&run("json")).unwrap();
    let allowed: Vec<Value> = json["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| serde_json::json!([one["status"], one["reason"], one["allowed_by"]]))
        .collect();
    let expected = serde_json::json!([
        ["shown", null, null],
        ["allowed", "one warp and the halo", {"kind": "comment", "path": "k.cu", "line": 2}],
        ["allowed", "it is cold", {"kind": "entry", "path": "warplint.toml", "line": 3}],
    ]);
    assert_eq!(Value::from(allowed), expected);
    fs::write(&config, "[rules]\nwarps = \"allow\"\n").unwrap();
    let json: Value = serde_json::from_str(&run("json")).unwrap();
    let by = |at: usize| json["findings"][at]["allowed_by"].to_string();
    assert!((0..3).filter(|at| by(*at).contains("\"level\"") && by(*at).contains("\"line\":2")).count() >= 2, "{json}");
}

#[test]
fn sarif_describes_every_rule() {
    let log: Value = serde_json::from_str(&report("sarif", &[], &odd_log("described", &many(1)))).unwrap();
    let rules = log["runs"][0]["tool"]["driver"]["rules"].as_array().unwrap();
    assert_eq!(rules.len(), RULES.len());
    for (described, rule) in rules.iter().zip(RULES) {
        let page = rule.page();
        assert_eq!(described["id"], rule.id);
        for key in ["shortDescription", "fullDescription", "help"] {
            assert!(described[key]["text"].as_str().is_some_and(|text| text.len() > 10), "{} {key}", rule.id);
        }
        let level = ["none", "note", "warning", "error"][page.level as usize];
        assert_eq!(described["defaultConfiguration"]["level"], level);
        assert_eq!(described["defaultConfiguration"]["enabled"], level != "none");
        assert_eq!(described["properties"]["tags"][0], page.group.name());
    }
}
