//! The configuration: where it is found, what beats what, and that it says the same when it is printed and read again.
#![allow(clippy::unwrap_used, reason = "a test stops where it is broken")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use proptest::prelude::*;
use serde_json::Value;
use warplint::config;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

const LOG: &str = "\
ptxas info    : Compiling entry function '_Z4gemmILi4EEvPf' for 'sm_80'
ptxas info    : Function properties for _Z4gemmILi4EEvPf
    16 bytes stack frame, 16 bytes spill stores, 24 bytes spill loads
ptxas info    : Used 64 registers, used 1 barriers, 400 bytes cmem[0]
ptxas info    : Compiling entry function '_Z4gemmILi8EEvPf' for 'sm_90'
ptxas info    : Function properties for _Z4gemmILi8EEvPf
    16 bytes stack frame, 16 bytes spill stores, 24 bytes spill loads
ptxas info    : Used 64 registers, used 1 barriers, 400 bytes cmem[0]
ptxas info    : Compiling entry function 'scan' for 'sm_80'
ptxas info    : Function properties for scan
    8 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 64 registers, used 1 barriers, 400 bytes cmem[0]
";

/// An empty folder that is a repository.
fn repository(test: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("config-{test}"));
    let _ = fs::remove_dir_all(&root);
    fs::create_dir_all(root.join(".git")).unwrap();
    fs::write(root.join("build.log"), LOG).unwrap();
    root
}

fn warplint(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_warplint")).args(args).current_dir(folder).output().unwrap()
}

fn stdout(folder: &Path, args: &[&str]) -> String {
    let output = warplint(folder, args);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn json(folder: &Path, args: &[&str]) -> Value {
    let all: Vec<&str> = ["-f", "json", "build.log"].iter().chain(args).copied().collect();
    serde_json::from_str(&stdout(folder, &all)).unwrap()
}

/// The report on the log with this configuration.
fn with(test: &str, config: &str, args: &[&str]) -> Value {
    let root = repository(test);
    fs::write(root.join("warplint.toml"), config).unwrap();
    json(&root, args)
}

/// The level of a rule as the `rules` command has it, and where it was set.
fn level(folder: &Path, rule: &str, args: &[&str]) -> (String, String) {
    let all: Vec<&str> = ["rules", "-f", "json"].iter().chain(args).copied().collect();
    let rules: Value = serde_json::from_str(&stdout(folder, &all)).unwrap();
    let rule = rules["rules"].as_array().unwrap().iter().find(|found| found["id"] == rule).unwrap().clone();
    (rule["level"].as_str().unwrap().to_owned(), rule["set_by"].as_str().unwrap().to_owned())
}

#[test]
fn the_nearest_file_up_to_the_root_of_the_repository_is_taken_and_files_are_not_merged() {
    let root = repository("search");
    let deep = root.join("a/b");
    fs::create_dir_all(&deep).unwrap();
    let of = |folder: &Path| level(folder, "register-spill", &[]);
    assert_eq!(of(&deep), ("warn".into(), "default".into()));
    fs::write(root.join("warplint.toml"), "[rules]\nregister-spill = \"deny\"\nspills = \"note\"\n").unwrap();
    assert_eq!(of(&deep), ("deny".into(), "../../warplint.toml:2".into()));
    assert_eq!(level(&deep, "local-memory", &[]), ("note".into(), "../../warplint.toml:3".into()));
    fs::write(root.join("a/warplint.toml"), "[rules]\nlocal-memory = \"warn\"\n").unwrap();
    assert_eq!(of(&deep), ("warn".into(), "default".into()));
    assert_eq!(of(&root), ("deny".into(), "warplint.toml:2".into()));
    assert_eq!(level(&root, "register-spill", &["--isolated"]), ("warn".into(), "default".into()));
    fs::create_dir(deep.join(".git")).unwrap();
    assert_eq!(level(&deep, "local-memory", &[]), ("note".into(), "default".into()));
}

#[test]
fn a_file_that_is_there_and_cannot_be_read_is_an_error_and_not_passed_over() {
    let root = repository("unreadable");
    fs::create_dir(root.join("warplint.toml")).unwrap();
    let output = warplint(&root, &["build.log"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot read the configuration `warplint.toml`"));
    assert!(output.stdout.is_empty());
    let large = vec![b'#'; 1 + (1 << 20)];
    fs::write(root.join("large.toml"), large).unwrap();
    let output = warplint(&root, &["--config", "large.toml", "build.log"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("`large.toml` is too large for a configuration"));
}

#[test]
fn a_level_of_the_command_line_beats_the_file_and_a_rule_of_the_file_beats_its_group() {
    let root = repository("levels");
    fs::write(root.join("warplint.toml"), "[rules]\nregister-spill = \"deny\"\nspills = \"note\"\n").unwrap();
    assert_eq!(level(&root, "register-spill", &[]).0, "deny");
    assert_eq!(level(&root, "unbounded-stack", &[]).0, "note");
    assert_eq!(level(&root, "register-spill", &["--warn", "spills"]), ("warn".into(), "option".into()));
    let code = |args: &[&str]| warplint(&root, args).status.code();
    assert_eq!(code(&["build.log"]), Some(1));
    assert_eq!(code(&["build.log", "--note", "register-spill"]), Some(0));
}

#[test]
fn fail_on_and_gpu_of_the_command_line_beat_those_of_the_file() {
    let root = repository("beats");
    fs::write(root.join("warplint.toml"), "fail-on = \"never\"\ngpu = [\"a100\", \"sm_80\"]\n").unwrap();
    assert_eq!(warplint(&root, &["build.log"]).status.code(), Some(0));
    assert_eq!(warplint(&root, &["build.log", "--fail-on", "warn"]).status.code(), Some(1));
    let gpus = |args: &[&str]| {
        let report = json(&root, args);
        let list = report["kernels"][0]["occupancy"].as_array().unwrap().clone();
        list.iter().map(|one| one["gpu"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(gpus(&[]), ["a100-sxm4-40gb", "sm_80"]);
    assert_eq!(gpus(&["--gpu", "rtx3090"]), ["rtx-3090"]);
}

#[test]
fn an_entry_tells_the_launch_of_its_kernels_and_options_that_of_the_others() {
    let config = "[[kernel]]\nname = \"gemm*\"\nblock = [16, 8]\ndynamic-shared = \"1K\"\n";
    let report = with("launch", config, &["--block", "256", "--dynamic-shared", "2K"]);
    let of = |at: usize| {
        let kernel = &report["kernels"][at];
        let launch = &kernel["launch"];
        assert_eq!(launch["block"], kernel["occupancy"][0]["block"]);
        (launch["block"].to_string(), launch["block_source"].to_string(), launch["dynamic_shared_bytes"].to_string())
    };
    for at in [0, 1] {
        assert_eq!(of(at), ("[16,8,1]".into(), "\"config\"".into(), "1024".into()));
    }
    assert_eq!(of(2), ("[256,1,1]".into(), "\"option\"".into(), "2048".into()));
}

#[test]
fn of_several_entries_the_first_that_tells_something_holds_and_what_they_allow_adds_up() {
    let config = "[[kernel]]\nname = \"gemm<4>\"\nblock = 64\n\n[[kernel]]\nname = \"*\"\nblock = 128\n\
                  dynamic-shared = 512\nallow = [\"occupancy\"]\n";
    let report = with("several", config, &[]);
    let block = |at: usize| report["kernels"][at]["launch"]["block"][0].as_u64().unwrap();
    assert_eq!([block(0), block(1), block(2)], [64, 128, 128]);
    assert_eq!(report["kernels"][0]["launch"]["dynamic_shared_bytes"], 512);
    let findings = report["findings"].as_array().unwrap();
    let occupancy = findings.iter().filter(|one| one["rule"].as_str().unwrap().contains("occupancy"));
    assert!(occupancy.clone().count() > 0 && occupancy.clone().all(|one| one["status"] == "allowed"));
}

#[test]
fn what_an_entry_allows_is_counted_for_all_instantiations_and_architectures_with_its_reason() {
    let config = "[[kernel]]\nname = \"gemm*\"\nallow = [\"spills\"]\nreason = \"two stages in flight\"\n";
    let report = with("allow", config, &["--allow", "occupancy"]);
    let spills: Vec<_> =
        report["findings"].as_array().unwrap().iter().filter(|one| one["rule"] == "register-spill").collect();
    let of = |status: &str| spills.iter().filter(|one| one["status"] == status).count();
    assert_eq!((of("allowed"), of("shown")), (2, 1));
    for one in spills {
        let reason = if one["status"] == "allowed" { "two stages in flight".into() } else { Value::Null };
        assert_eq!(one["reason"], reason);
        assert_eq!(one["level"], if one["status"] == "allowed" { "allow" } else { "warn" });
    }
    assert_eq!(report["summary"]["warnings"], 1);
}

#[test]
fn options_of_the_file_reach_the_rules() {
    let count = |test: &str, bytes: u32| {
        let report = with(test, &format!("[rules]\nregister-spill = {{ max-bytes = {bytes} }}\n"), &[]);
        report["findings"].as_array().unwrap().iter().filter(|one| one["rule"] == "register-spill").count()
    };
    assert_eq!([count("options", 0), count("options", 8), count("options", 24)], [3, 2, 0]);
}

#[test]
fn an_entry_that_matches_nothing_is_a_note_at_its_line_when_there_are_kernels() {
    let root = repository("unmatched");
    fs::write(root.join("warplint.toml"), "[[kernel]]\n  name = \"gem\"  # gone\nblock = 32\n").unwrap();
    let report = json(&root, &[]);
    let found = report["findings"].as_array().unwrap().iter().find(|one| one["rule"] == "unmatched-kernel-entry");
    let location = &found.unwrap()["location"];
    assert_eq!((&location["path"], &location["line"]), (&"warplint.toml".into(), &2.into()));
    assert_eq!((&location["column"], &location["end_column"]), (&10.into(), &15.into()));
    assert_eq!((&location["byte_start"], &location["byte_end"]), (&20.into(), &25.into()));
    let kernels_left_out = json(&root, &["--arch", "sm_90"]);
    assert_eq!(kernels_left_out["summary"]["kernels"], 1);
    fs::write(root.join("warplint.toml"), "[[kernel]]\nname = \"scan\"\nblock = 32\n").unwrap();
    let text = json(&root, &["--arch", "sm_90"]).to_string();
    assert!(!text.contains("unmatched-kernel-entry"), "{text}");
    fs::write(root.join("build.log"), "make: Nothing to be done for 'all'.\n").unwrap();
    fs::write(root.join("warplint.toml"), "[[kernel]]\nname = \"gem\"\nblock = 32\n").unwrap();
    let text = json(&root, &[]).to_string();
    assert!(!text.contains("unmatched-kernel-entry"), "{text}");
}

#[test]
fn the_configuration_as_shown_says_the_same_when_it_is_read() {
    let root = repository("round-trip");
    let config = "gpu = [\"a100\", \"9.0\"]\nfail-on = \"deny\"\nrequire-reason = true\nsource = \".\"\n\
                  exclude = [\"third_party/**\", '\\[a].cu']\n[rules]\noccupancy = \"note\"\n\
                  register-spill = { level = \"deny\", max-bytes = 8 }\nregister-cliff = { gain = 0 }\n\
                  [[kernel]]\nname = 'gemm<\"\\*>'\nblock = \"8x8x4\"\n[[kernel]]\nname = \"scan\"\ndynamic-shared = \"2K\"\n\
                  max-registers = 63\nmax-spill-bytes = \"1K\"\nmax-stack-bytes = 0\nmax-shared-bytes = 0x400\nmin-occupancy = 1\n\
                  allow = [\"hygiene\", \"register-spill\"]\nreason = \"\"\"two\nlines \\u001b\"\"\"\n";
    fs::write(root.join("warplint.toml"), config).unwrap();
    for args in [&[][..], &["--allow", "launch", "--deny", "warps", "--fail-on", "note"], &["--gpu", "rtx4090"]] {
        let shown = stdout(&root, &[&["--show-config"], args].concat());
        fs::write(root.join("shown.toml"), &shown).unwrap();
        assert_eq!(stdout(&root, &["--config", "shown.toml", "--show-config"]), shown);
        let lint = |more: &[&str]| {
            let all = [&["-f", "json", "build.log"], more].concat();
            stdout(&root, &all).replace("shown.toml", "warplint.toml")
        };
        let place = |text: &str| -> Value {
            let mut report: Value = serde_json::from_str(text).unwrap();
            // The same entry stands on another line.
            report["findings"].as_array_mut().unwrap().iter_mut().for_each(|one| {
                if ["unmatched-kernel-entry", "budget-exceeded"].contains(&one["rule"].as_str().unwrap()) {
                    one["location"] = Value::Null;
                    one["labels"] = Value::Null;
                }
                if one["allowed_by"]["kind"] == "entry" {
                    one["allowed_by"]["line"] = Value::Null;
                }
            });
            report
        };
        assert_eq!(place(&lint(&["--config", "shown.toml"])), place(&lint(args)), "{shown}");
        let status = |more: &[&str]| warplint(&root, &[&["build.log"], more].concat()).status.code();
        assert_eq!(status(&["--config", "shown.toml"]), status(args), "{shown}");
    }
}

#[test]
fn a_device_file_is_looked_for_beside_the_configuration_and_nowhere_above() {
    let root = repository("device");
    let below = root.join("below");
    fs::create_dir(&below).unwrap();
    let board = "prop.name = Our board\nprop.major = 8\nprop.minor = 0\n";
    fs::write(root.join("board.txt"), board).unwrap();
    fs::write(root.join("warplint.toml"), "gpu = \"board.txt\"\n").unwrap();
    fs::copy(root.join("build.log"), below.join("build.log")).unwrap();
    assert_eq!(json(&below, &[])["kernels"][0]["occupancy"][0]["gpu"], "Our board");
    for out in ["../board.txt", root.join("board.txt").to_str().unwrap()] {
        fs::write(below.join("warplint.toml"), format!("gpu = {out:?}\n")).unwrap();
        let output = warplint(&below, &["build.log"]);
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains("is out of reach"));
    }
}

#[cfg(unix)]
#[test]
fn a_link_is_no_way_out_for_a_device_file() {
    let root = repository("link");
    let below = root.join("below");
    fs::create_dir(&below).unwrap();
    fs::write(root.join("board.txt"), "prop.major = 8\nprop.minor = 0\n").unwrap();
    std::os::unix::fs::symlink(root.join("board.txt"), below.join("link.txt")).unwrap();
    fs::write(below.join("warplint.toml"), "gpu = \"link.txt\"\n").unwrap();
    let output = warplint(&below, &["rules"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("`link.txt` is out of reach"));
}

/// What is said on standard error about this configuration.
#[cfg(unix)]
fn complaint(test: &str, config: &str) -> String {
    let root = repository(test);
    fs::write(root.join("warplint.toml"), config).unwrap();
    assert!(Command::new("mkfifo").arg(root.join("pipe.txt")).status().unwrap().success());
    String::from_utf8(warplint(&root, &["build.log"]).stderr).unwrap()
}

#[cfg(unix)]
#[test]
fn a_pipe_that_lies_in_the_folder_is_not_waited_for() {
    let text = complaint("pipe-of-figures", "gpu = \"pipe.txt\"\n");
    assert!(text.contains("the device file `pipe.txt` is no regular file"), "{text}");
    let root = repository("pipe");
    assert!(Command::new("mkfifo").arg(root.join("warplint.toml")).status().unwrap().success());
    let output = warplint(&root, &["build.log"]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && text.contains("it is no regular file"), "{text}");
}

#[cfg(unix)]
#[test]
fn a_number_that_is_too_large_is_told_the_largest() {
    let text = complaint("most-option", "[rules.register-spill]\nmax-bytes = 9223372036854775807\n");
    assert!(text.contains("`max-bytes` must be a whole number from 0 to 4294967295"), "{text}");
    for (test, line, most) in [
        ("most-block", "block = 99999999999999999999", "has 1024 threads at most"),
        ("most-y", "block = [1, 4294967296]", "has 1024 threads at most"),
        ("most-shared", "dynamic-shared = 4294967296", "4294967295 bytes"),
    ] {
        let text = complaint(test, &format!("[[kernel]]\nname = \"k\"\n{line}\n"));
        assert!(text.contains(most), "{text}");
    }
    let text = complaint("long", &format!("{} = 1\n", "a".repeat(200_000)));
    assert!(text.contains("warplint.toml:1:1: unknown key") && text.len() < 1000, "{}", text.len());
}

#[test]
fn every_configuration_in_the_readme_is_one() {
    let readme = fs::read_to_string(Path::new(ROOT).join("README.md")).unwrap();
    let blocks: Vec<&str> = readme.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(!blocks.is_empty());
    for block in blocks {
        let read = config::read("README.md", Path::new(ROOT), block.as_bytes());
        assert!(read.is_ok(), "{block}\n{:?}", read.err());
    }
}

/// Pieces of configurations, right and wrong, for texts that come further than random bytes.
const PIECES: [&str; 41] = [
    "require-reason",
    "source",
    "exclude",
    "max-registers",
    "max-shared-bytes",
    "min-occupancy",
    "= false\n",
    "= [\"src\", \"**/gen\"]\n",
    "= 0.5\n",
    "gpu",
    "fail-on",
    "[rules]\n",
    "[[kernel]]\n",
    "name",
    "block",
    "allow",
    "reason",
    "dynamic-shared",
    "level",
    "register-spill",
    "max-bytes",
    "occupancy",
    " = ",
    "= \"warn\"\n",
    "= \"a100\"\n",
    "= 3\n",
    "= [16, 16]\n",
    "= { ",
    " }\n",
    "= 1e400\n",
    "= -1\n",
    "= 99999999999999999999\n",
    "= nan\n",
    "\"gemm_*\"",
    "\"{a,b\"",
    ".",
    ",",
    "\n",
    "# é\u{202e}\n",
    "= true\n",
    "= 1979-05-27\n",
];

proptest! {
    #[test]
    fn random_bytes_are_a_configuration_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = config::read("x.toml", Path::new(ROOT), &bytes);
    }

    #[test]
    fn random_pieces_are_a_configuration_or_an_error_that_can_be_shown(
        pieces in proptest::collection::vec(proptest::sample::select(&PIECES[..]), 0..40)
    ) {
        let text = pieces.concat();
        match config::read("x.toml", Path::new(ROOT), text.as_bytes()) {
            Ok(config) => {
                let shown = config::show(&config);
                let again = config::read("y.toml", Path::new(ROOT), shown.as_bytes());
                prop_assert!(again.is_ok(), "{shown}");
                prop_assert_eq!(config::show(&again.unwrap()), shown);
            }
            Err(error) => {
                let style = warplint::report::Style::PLAIN;
                let parts = error.parts();
                prop_assert!(!parts.is_empty());
                for part in parts {
                    prop_assert!(!warplint::report::failure(part, style).is_empty());
                }
            }
        }
    }
}

/// What an entry allows in vain is told where the run would have seen it, and of no other build.
#[test]
fn what_an_entry_allows_in_vain_is_a_note() {
    let told = |test: &str, allow: &str, args: &[&str]| {
        let config = format!("[[kernel]]\nname = \"*scan*\"\nallow = [{allow}]\n");
        let report = with(&format!("vain-{test}"), &config, args);
        let ours = report["findings"].as_array().unwrap().iter().filter(|one| one["rule"] == "unused-allow");
        ours.map(|one| {
            let place = (one["location"]["path"].as_str().unwrap(), one["location"]["line"].as_u64().unwrap());
            assert_eq!((place, &one["level"]), (("warplint.toml", 3), &"note".into()));
            one["facts"]["allowed"].as_str().unwrap().to_owned()
        })
        .collect::<Vec<_>>()
    };
    assert_eq!(told("one", "\"unbounded-stack\"", &[]), ["unbounded-stack"]);
    // It spills.
    assert!(told("used", "\"register-spill\"", &[]).is_empty());
    assert_eq!(told("both", "\"register-spill\", \"unbounded-stack\"", &[]), ["unbounded-stack"]);
    // No block is known, nor a product, nor PTX; and others may be left out.
    let unsure = "\"block-limited-occupancy\", \"grid-too-small\", \"index-divergent-branch\"";
    assert!(told("unsure", unsure, &[]).is_empty());
    assert_eq!(told("block", unsure, &["--block", "256"]), ["block-limited-occupancy"]);
    assert!(told("filtered", "\"unbounded-stack\"", &["--kernel", "*scan*"]).is_empty());
    assert!(told("meant", "\"unbounded-stack\", \"unused-allow\"", &[]).is_empty());
    assert!(told("isolated", "\"unbounded-stack\"", &["--isolated"]).is_empty());
}
