//! `source` and `exclude`: where a configuration lets sources be read, and what it leaves out of folders.
#![allow(clippy::unwrap_used, reason = "a test stops where it is broken")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// A launch of 33 threads, which is a finding.
const ODD: &str = "__global__ void tail(float *x) { x[threadIdx.x] = 0.0f; }\n\
                   void run(float *x) { tail<<<1, 33>>>(x); }\n";

const LOG: &str = "\
ptxas info    : Compiling entry function '_Z4tailPf' for 'sm_80'
ptxas info    : Function properties for _Z4tailPf
    16 bytes stack frame, 16 bytes spill stores, 24 bytes spill loads
ptxas info    : Used 64 registers, used 1 barriers, 400 bytes cmem[0]
";

/// A repository with a source in each of these files, a build log, and this configuration.
fn repository(test: &str, files: &[&str], config: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("config-paths-{test}"));
    let _ = fs::remove_dir_all(&root);
    fs::create_dir_all(root.join(".git")).unwrap();
    fs::write(root.join("build.log"), LOG).unwrap();
    fs::write(root.join("warplint.toml"), config).unwrap();
    for file in files {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, ODD).unwrap();
    }
    root
}

fn warplint(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_warplint")).args(args).current_dir(folder).output().unwrap()
}

fn report(folder: &Path, args: &[&str]) -> Value {
    let output = warplint(folder, &[&["-f", "json"], args].concat());
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

/// The files with a launch that is told, in order.
fn told(folder: &Path, args: &[&str]) -> Vec<String> {
    let report = report(folder, args);
    let findings = report["findings"].as_array().unwrap().iter();
    let launches = findings.filter(|one| one["rule"] == "under-filled-warp");
    let mut paths: Vec<String> =
        launches.map(|one| one["location"]["path"].as_str().unwrap().replace('\\', "/")).collect();
    paths.sort();
    paths
}

/// What is said on standard error, and the exit status.
fn complaint(folder: &Path, args: &[&str]) -> (String, Option<i32>) {
    let output = warplint(folder, args);
    (String::from_utf8(output.stderr).unwrap(), output.status.code())
}

const FILES: [&str; 4] = ["src/a.cu", "src/gen/b.cu", "third_party/c.cu", "lib/third_party/deep/d.cu"];

#[test]
fn what_is_excluded_is_left_out_of_folders_and_not_of_what_is_named() {
    let root = repository("exclude", &FILES, "exclude = [\"third_party\", \"src/gen/**\"]\n");
    assert_eq!(told(&root, &["."]), ["src/a.cu"]);
    assert_eq!(told(&root, &["src", "lib/third_party/deep/d.cu"]), ["lib/third_party/deep/d.cu", "src/a.cu"]);
    assert_eq!(told(&root, &["src/gen"]), ["src/gen/b.cu"]);
    assert_eq!(told(&root, &["lib/third_party/deep"]), ["lib/third_party/deep/d.cu"]);
    assert_eq!(told(&root, &["--isolated", "."]).len(), 4);
    // Patterns begin at the folder of the configuration, wherever warplint is run.
    assert_eq!(told(&root.join("src"), &["."]), ["a.cu"]);
    assert_eq!(told(&root.join("lib"), &["../src"]), ["../src/a.cu"]);
    let (said, status) = complaint(&root, &["lib"]);
    assert!(said.contains("all sources and PTX in `lib` are left out by `exclude`") && status == Some(2), "{said}");
}

#[test]
fn with_force_exclude_what_is_named_is_left_out_too_and_nothing_is_no_failure() {
    let root = repository("force", &FILES, "exclude = [\"third_party\", \"src/gen/**\"]\n");
    let all: Vec<&str> = ["--force-exclude"].iter().chain(&FILES).copied().collect();
    assert_eq!(told(&root, &all), ["src/a.cu"]);
    let nothing = ["--force-exclude", "third_party/c.cu", "src/gen"];
    assert!(told(&root, &nothing).is_empty());
    let (said, status) = complaint(&root, &nothing);
    assert!(said.contains("`exclude` of the configuration leaves out all that was named"), "{said}");
    assert_eq!(status, Some(0));
    let quiet: Vec<&str> = ["-q"].iter().chain(&nothing).copied().collect();
    assert_eq!(complaint(&root, &quiet), (String::new(), Some(0)));
    // Nobody else is spared a failure.
    assert_eq!(complaint(&root, &["--force-exclude", "third_party/c.cu", "gone.cu"]).1, Some(2));
}

#[test]
fn excluded_sources_are_not_searched_for_kernels_either() {
    let declared = |root: &Path, args: &[&str]| {
        let report = report(root, &[&["build.log"], args].concat());
        report["kernels"][0]["declared_at"]["path"].as_str().map(str::to_owned)
    };
    let root = repository("search", &["third_party/c.cu"], "exclude = [\"third_party\"]\nsource = [\".\"]\n");
    assert_eq!(declared(&root, &[]), None);
    assert_eq!(declared(&root, &["--source", "third_party"]).as_deref(), Some("third_party/c.cu"));
    assert_eq!(declared(&root, &["--isolated", "--source", "."]).as_deref(), Some("third_party/c.cu"));
    let spill = |root: &Path, args: &[&str]| {
        let report = report(root, &[&["build.log"], args].concat());
        let findings = report["findings"].as_array().unwrap().clone();
        let spill = findings.iter().find(|one| one["rule"] == "register-spill").unwrap().clone();
        spill["location"]["path"].as_str().unwrap().to_owned()
    };
    let root = repository("around", &["third_party/c.cu"], "exclude = [\"third_party\"]\n");
    assert_eq!(spill(&root, &[]), "build.log");
    assert_eq!(spill(&root, &["--isolated"]), "third_party/c.cu");
}

#[test]
fn sources_of_the_configuration_lie_beside_it_and_those_of_the_command_line_beat_them() {
    let root = repository("source", &["src/a.cu", "other/a.cu"], "source = [\"src\"]\n");
    let declared = |folder: &Path, args: &[&str]| {
        report(folder, args)["kernels"][0]["declared_at"]["path"].as_str().map(str::to_owned)
    };
    assert_eq!(declared(&root, &["build.log"]).as_deref(), Some("src/a.cu"));
    assert_eq!(declared(&root.join("other"), &["../build.log"]).as_deref(), Some("../src/a.cu"));
    assert_eq!(declared(&root, &["build.log", "--source", "other"]).as_deref(), Some("other/a.cu"));
    // What is read and searched is read once.
    assert_eq!(report(&root, &["src"])["kernels"].as_array().unwrap().len(), 1);
}

#[test]
fn a_configuration_has_no_way_out_of_its_folder() {
    let root = repository("out", &["inner/src/a.cu", "secret/s.cu"], "");
    let inner = root.join("inner");
    fs::create_dir_all(inner.join("empty")).unwrap();
    let absolute = root.join("secret");
    let absolute = absolute.to_str().unwrap();
    for (value, said) in [
        ("../secret", "the source `../secret` is out of reach"),
        ("src/../../secret", "is out of reach"),
        (absolute, "is out of reach"),
        ("/", "the source `/` is out of reach"),
        ("nowhere", "the source `nowhere` cannot be read: there is no such file"),
        ("empty", "the source `empty` is a folder without a file in it"),
    ] {
        fs::write(inner.join("warplint.toml"), format!("source = [\"src\", {value:?}]\n")).unwrap();
        let (text, status) = complaint(&inner, &["src"]);
        assert!(text.contains(said) && text.contains("[warplint.toml:1:18]") && status == Some(2), "{value}: {text}");
    }
}

#[cfg(unix)]
#[test]
fn a_link_is_no_way_out_for_a_source() {
    let root = repository("link", &["inner/src/a.cu", "secret/s.cu"], "");
    let inner = root.join("inner");
    std::os::unix::fs::symlink(root.join("secret"), inner.join("link")).unwrap();
    std::os::unix::fs::symlink(root.join("secret"), inner.join("src/link")).unwrap();
    fs::write(inner.join("warplint.toml"), "source = \"link\"\n").unwrap();
    assert!(complaint(&inner, &["src"]).0.contains("the source `link` is out of reach"));
    // Links below are not followed.
    fs::write(inner.join("warplint.toml"), "source = \"src\"\n").unwrap();
    fs::copy(root.join("build.log"), inner.join("build.log")).unwrap();
    let report = report(&inner, &["build.log"]).to_string();
    assert!(report.contains("src/a.cu") && !report.contains("s.cu\""), "{report}");
}
