//! The schema for editors, and the file that `init` writes: neither says other than the reader does.
#![allow(clippy::unwrap_used, reason = "a test stops where it is broken")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use jsonschema::Validator;
use serde_json::Value;
use warplint::config;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn validator() -> Validator {
    let schema = config::schema();
    jsonschema::draft7::meta::validate(&schema).unwrap();
    jsonschema::draft7::new(&schema).unwrap()
}

/// A text of TOML as the schema sees it.
fn value(text: &str) -> Value {
    let table: toml::Table = toml::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    serde_json::to_value(table).unwrap()
}

fn complaints(validator: &Validator, text: &str) -> Vec<String> {
    validator.iter_errors(&value(text)).map(|error| format!("{} at {}", error, error.instance_path())).collect()
}

fn is_read(text: &str) -> bool {
    config::read("warplint.toml", Path::new(ROOT), text.as_bytes()).is_ok()
}

fn warplint(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_warplint")).args(args).current_dir(folder).output().unwrap()
}

/// A text with every key that is commented out in it set.
fn uncommented(text: &str) -> String {
    let set = |line: &str| match line.strip_prefix('#') {
        Some(key) if !key.is_empty() && !key.starts_with(' ') => format!("{key}\n"),
        _ => format!("{line}\n"),
    };
    text.lines().map(set).collect()
}

#[test]
fn the_schema_in_the_repository_is_the_one_that_is_printed() {
    let path = Path::new(ROOT).join("warplint.schema.json");
    let printed = String::from_utf8(warplint(Path::new(ROOT), &["init", "--schema"]).stdout).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&printed).unwrap(), config::schema());
    if std::env::var_os("SNAPSHOTS").is_some_and(|what| what == "overwrite") {
        fs::write(&path, &printed).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == printed, "warplint.schema.json is stale: SNAPSHOTS=overwrite cargo test --test config_schema");
}

#[test]
fn every_configuration_that_is_shown_to_people_is_one_for_editors() {
    let validator = validator();
    let none: Vec<String> = Vec::new();
    assert_eq!(complaints(&validator, &config::template()), none);
    let all = uncommented(&config::template());
    assert_eq!(complaints(&validator, &all), none, "{all}");
    assert!(is_read(&all));
    for name in ["typical.toml", "stale.toml"] {
        let text = fs::read_to_string(Path::new(ROOT).join("fixtures/config").join(name)).unwrap();
        assert_eq!(complaints(&validator, &text), none, "{name}");
        let shown = config::show(&config::read(name, Path::new(ROOT), text.as_bytes()).unwrap());
        assert_eq!(complaints(&validator, &shown), none, "{shown}");
    }
    let faults = fs::read_to_string(Path::new(ROOT).join("fixtures/config/faults.toml")).unwrap();
    assert!(complaints(&validator, &faults).len() >= 4, "{:?}", complaints(&validator, &faults));
    let blocks = |text: &str, fence: &str| -> Vec<String> {
        let (start, end) = (format!("\n{fence}toml\n"), format!("\n{fence}"));
        text.split(&start).skip(1).map(|rest| rest.split(&end).next().unwrap().to_owned()).collect()
    };
    let mut seen = 0;
    let readme = fs::read_to_string(Path::new(ROOT).join("README.md")).unwrap();
    let pages = warplint::rules::RULES.iter().flat_map(|rule| blocks(rule.text, "~~~"));
    for text in blocks(&readme, "```").into_iter().chain(pages) {
        assert_eq!(complaints(&validator, &text), none, "{text}");
        seen += 1;
    }
    assert!(seen > 5, "{seen}");
}

/// Configurations that are right, and ones that are wrong where a schema can tell.
#[test]
fn the_schema_and_the_reader_agree() {
    let validator = validator();
    let entry = |line: &str| format!("[[kernel]]\nname = \"k\"\n{line}\n");
    let rules = |line: &str| format!("[rules]\n{line}\n");
    let right = [
        String::new(),
        "gpu = \"a100\"".into(),
        "gpu = [\"a100\", \"9.0\"]".into(),
        "fail-on = \"never\"".into(),
        "require-reason = true".into(),
        "source = \"src\"".into(),
        "source = [\"src\", \"tests\"]".into(),
        "exclude = [\"a/**\"]".into(),
        rules(""),
        rules("register-spill = \"deny\""),
        rules("register-spill = { level = \"deny\", max-bytes = 8 }"),
        rules("register-spill = { max-bytes = 4294967295 }"),
        rules("register-cliff = { gain = 0, within = 16 }"),
        rules("register-cliff = {}"),
        rules("occupancy = \"allow\""),
        "kernel = []".into(),
        entry(""),
        entry("block = 256"),
        entry("block = [16]"),
        entry("block = [8, 8, 4]"),
        entry("block = \" 16 x 16 \""),
        entry("block = \"8,8×4\""),
        entry("dynamic-shared = 0"),
        entry("dynamic-shared = \"48KiB\""),
        entry("dynamic-shared = \" 48 k \""),
        entry("max-registers = 0"),
        entry("max-spill-bytes = \"1KB\"\nmax-stack-bytes = 0\nmax-shared-bytes = \"1M\""),
        entry("min-occupancy = 1"),
        entry("allow = [\"spills\", \"register-spill\"]\nreason = \"\""),
    ];
    for text in right {
        assert_eq!(complaints(&validator, &text), Vec::<String>::new(), "{text}");
        assert!(is_read(&text), "{text}");
    }
    let wrong = [
        "gpus = []".into(),
        "gpu = 3".into(),
        "gpu = [3]".into(),
        "fail-on = \"error\"".into(),
        "fail-on = true".into(),
        "require-reason = \"yes\"".into(),
        "source = 1".into(),
        "exclude = [1]".into(),
        "rules = []".into(),
        rules("spils = \"warn\""),
        rules("spills = \"loud\""),
        rules("spills = { level = \"warn\" }"),
        rules("register-spill = 1"),
        rules("register-spill = { max-byte = 8 }"),
        rules("register-spill = { max-bytes = -1 }"),
        rules("register-spill = { max-bytes = 4294967296 }"),
        rules("register-spill = { max-bytes = 1.5 }"),
        rules("register-cliff = { gain = 1.5 }"),
        rules("build-failed = { max-bytes = 1 }"),
        "[kernel]\nname = \"k\"".into(),
        "[[kernel]]\nblock = 1".into(),
        "[[kernel]]\nname = \"\"".into(),
        entry("blok = 1"),
        entry("block = 0"),
        entry("block = -1"),
        entry("block = 1025"),
        entry("block = 2.5"),
        entry("block = []"),
        entry("block = [1, 2, 3, 4]"),
        entry("block = \"16y16\""),
        entry("dynamic-shared = -1"),
        entry("dynamic-shared = \"48Q\""),
        entry("dynamic-shared = 1.5"),
        entry("max-registers = \"128\""),
        entry("max-registers = 4294967296"),
        entry("min-occupancy = 25"),
        entry("min-occupancy = \"25 %\""),
        entry("allow = \"spills\""),
        entry("allow = [\"spill\"]"),
        entry("allow = [\"spills\", \"spills\"]"),
        entry("reason = 1"),
    ];
    for text in wrong {
        assert!(!complaints(&validator, &text).is_empty(), "the schema takes\n{text}");
        assert!(!is_read(&text), "the reader takes\n{text}");
    }
}

#[test]
fn init_writes_a_file_once_and_over_nobody() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("init");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join(".git")).unwrap();
    let output = warplint(&folder, &["init"]);
    assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(0), true));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("wrote warplint.toml"));
    let written = fs::read_to_string(folder.join("warplint.toml")).unwrap();
    assert_eq!(written, config::template());
    // It changes nothing, and is found.
    let shown = |args: &[&str]| String::from_utf8(warplint(&folder, args).stdout).unwrap();
    assert_eq!(shown(&["--show-config"]), shown(&["--isolated", "--show-config"]));
    fs::write(folder.join("warplint.toml"), "fail-on = \"note\"\n").unwrap();
    let again = warplint(&folder, &["init"]);
    assert_eq!(again.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&again.stderr).contains("`warplint.toml` is there already"));
    assert_eq!(fs::read_to_string(folder.join("warplint.toml")).unwrap(), "fail-on = \"note\"\n");
    assert_eq!(warplint(&folder, &["init", "-o", "warplint.toml"]).status.code(), Some(2));
    assert_eq!(warplint(&folder, &["init", "-o", "no/such/folder.toml"]).status.code(), Some(2));
    assert_eq!(shown(&["init", "-o", "-"]), config::template());
    assert_eq!(warplint(&folder, &["init", "--schema", "-o", "warplint.schema.json"]).status.code(), Some(0));
    assert_eq!(fs::read_to_string(folder.join("warplint.schema.json")).unwrap(), shown(&["init", "--schema"]));
}

#[cfg(unix)]
#[test]
fn init_follows_no_link_that_leads_nowhere() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("init-link");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("other")).unwrap();
    std::os::unix::fs::symlink("other/new.toml", folder.join("warplint.toml")).unwrap();
    assert_eq!(warplint(&folder, &["init"]).status.code(), Some(2));
    assert!(!folder.join("other/new.toml").exists());
}
