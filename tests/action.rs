//! `action.yml`: its script, run with the environment that GitHub gives it, and the release that it installs, as `.ci/pack`
//! packs it. A script plays `gh`, and one `cargo`.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test stops where it is broken")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SOURCE: &str = "__global__ void copy(float *to, const float *from) { to[threadIdx.x] = from[threadIdx.x]; }\n\
                      void start(float *to, const float *from) { copy<<<4096, 33>>>(to, from); }\n";

fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A runner with a repository checked out, and with nothing on PATH but the system's tools and those that are added.
struct Runner {
    root: PathBuf,
    version: &'static str,
    args: &'static str,
    paths: &'static str,
    folder: &'static str,
}

struct Ran {
    status: Option<i32>,
    stdout: String,
    stderr: String,
    outputs: String,
    summary: String,
}

impl Runner {
    fn new(name: &str) -> Runner {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("action {name}"));
        let _ = fs::remove_dir_all(&root);
        for folder in ["bin", "temp", "work/src", "work/.git"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::write(root.join("work/src/copy.cu"), SOURCE).unwrap();
        Runner { root, version: "", args: "", paths: "src", folder: "." }
    }

    fn with_warplint(self) -> Runner {
        symlink(env!("CARGO_BIN_EXE_warplint"), self.root.join("bin/warplint")).unwrap();
        self
    }

    fn with_program(self, name: &str, script: &str) -> Runner {
        let path = self.root.join("bin").join(name);
        fs::write(&path, format!("#!/bin/bash\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    /// A release, with the program of this build, from which a script that plays gh downloads.
    fn with_release(self, tag: &str, sum_of: impl Fn(&str) -> String) -> Runner {
        let release = self.root.join("release");
        let packed = Command::new(package().join(".ci/pack"))
            .args(["x86_64-unknown-linux-gnu", env!("CARGO_BIN_EXE_warplint")])
            .arg(&release)
            .output()
            .unwrap();
        assert!(packed.status.success(), "{}", String::from_utf8_lossy(&packed.stderr));
        let summed = Command::new("sha256sum")
            .arg("warplint-x86_64-unknown-linux-gnu.tar.gz")
            .current_dir(&release)
            .output()
            .unwrap();
        fs::write(release.join("SHA256SUMS"), sum_of(&String::from_utf8(summed.stdout).unwrap())).unwrap();
        let gh = format!(
            "[ \"$*\" = \"release download {tag} --repo someone/warplint --dir $7 --clobber --pattern \
             warplint-x86_64-unknown-linux-gnu.tar.gz --pattern SHA256SUMS\" ] || exit 1\ncp '{}'/* \"$7\"",
            release.display()
        );
        self.with_program("gh", &gh)
    }

    fn run(&self, reference: &str) -> Ran {
        let (outputs, summary) = (self.root.join("outputs"), self.root.join("summary"));
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", self.root.join("bin").display());
        let output = Command::new(package().join(".github/action/lint"))
            .current_dir(self.root.join("work"))
            .env_clear()
            .env("PATH", path)
            .env("HOME", &self.root)
            .env("GITHUB_ACTIONS", "true")
            .env("GITHUB_ACTION_PATH", package())
            .env("GITHUB_OUTPUT", &outputs)
            .env("GITHUB_STEP_SUMMARY", &summary)
            .env("GITHUB_WORKSPACE", self.root.join("work"))
            .env("RUNNER_TEMP", self.root.join("temp"))
            .env("RUNNER_OS", "Linux")
            .env("RUNNER_ARCH", "X64")
            .env("WARPLINT_REPOSITORY", "someone/warplint")
            .env("WARPLINT_REF", reference)
            .env("GH_TOKEN", "none")
            .env("INPUT_PATHS", self.paths)
            .env("INPUT_ARGS", self.args)
            .env("INPUT_WORKING_DIRECTORY", self.folder)
            .env("INPUT_VERSION", self.version)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
        Ran {
            status: output.status.code(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
            outputs: read(&outputs),
            summary: read(&summary),
        }
    }
}

impl Ran {
    fn output(&self, name: &str) -> &str {
        let value = self.outputs.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        value.unwrap_or_else(|| panic!("no output {name}: {}\n{}", self.outputs, self.stderr))
    }

    fn has_linted(&self) {
        assert_eq!(self.status, Some(1), "{}{}", self.stdout, self.stderr);
        let annotation = self.stdout.lines().find(|line| line.starts_with("::warning "));
        let annotation = annotation.unwrap_or_else(|| panic!("no annotation: {}", self.stdout));
        assert!(annotation.contains("file=src/copy.cu,line=2") && annotation.contains("33 threads"), "{annotation}");
    }
}

#[test]
fn findings_are_annotations_a_summary_and_reports_and_fail_the_step() {
    let ran = Runner::new("on path").with_warplint().run("main");
    ran.has_linted();
    assert_eq!(ran.output("status"), "1");
    assert!(ran.summary.contains("under-filled-warp"), "{}", ran.summary);
    let report =
        |name: &str| -> serde_json::Value { serde_json::from_slice(&fs::read(ran.output(name)).unwrap()).unwrap() };
    assert_eq!(report("sarif")["version"], "2.1.0");
    assert_eq!(report("json")["findings"][0]["rule"], "under-filled-warp");
}

#[test]
fn a_source_without_findings_passes() {
    let runner = Runner::new("clean").with_warplint();
    fs::write(runner.root.join("work/src/copy.cu"), SOURCE.replace("33", "64")).unwrap();
    let ran = runner.run("main");
    assert_eq!((ran.status, ran.output("status")), (Some(0), "0"), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn files_are_named_from_the_root_of_the_repository_wherever_warplint_runs() {
    let mut runner = Runner::new("folder").with_warplint();
    (runner.folder, runner.paths) = ("src", ".");
    let ran = runner.run("main");
    ran.has_linted();
    let sarif = fs::read_to_string(ran.output("sarif")).unwrap();
    assert!(sarif.contains("\"uri\":\"src/copy.cu\""), "{sarif}");
}

#[test]
fn what_warplint_could_not_do_is_an_annotation_too() {
    let mut runner = Runner::new("unable").with_warplint();
    runner.args = "--gpu nonsense";
    let ran = runner.run("main");
    assert_eq!(ran.status, Some(2));
    assert!(ran.stdout.contains("::error title=warplint::"), "{}", ran.stdout);
}

#[test]
fn words_of_args_are_options_and_nothing_in_inputs_is_run() {
    let mut runner = Runner::new("args").with_warplint();
    runner.args = "--fail-on never\n  --allow $(touch${IFS}ran)";
    let ran = runner.run("main");
    assert_eq!(ran.status, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("no rule or group is called `$(touch${IFS}ran)`"), "{}", ran.stderr);
    runner.args = "--fail-on never";
    runner.paths = "src/copy.cu\n$(touch ran)\n";
    let ran = runner.run("main");
    assert_eq!(ran.status, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("cannot read `$(touch ran)`"), "{}", ran.stderr);
    assert!(!runner.root.join("work/ran").exists());
    runner.paths = "src/copy.cu\n";
    assert_eq!(runner.run("main").status, Some(0));
}

#[test]
fn a_tag_is_the_release_of_it_and_what_is_packed_is_whole() {
    let runner = Runner::new("release").with_release("v1.2.3", str::to_owned);
    runner.run("v1.2.3").has_linted();
    let mut runner = Runner::new("release asked").with_release("v1.2.3", str::to_owned).with_warplint();
    runner.version = "v1.2.3";
    let ran = runner.run("main");
    ran.has_linted();
    let unpacked = fs::read_dir(runner.root.join("temp")).unwrap().next().unwrap().unwrap().path().join("bin");
    for file in ["warplint", "warplint.1", "completions/_warplint", "LICENSE-MIT", "warplint.cmake"] {
        assert!(fs::metadata(unpacked.join(file)).unwrap().len() > 0, "{file}");
    }
}

#[test]
fn a_release_that_is_not_what_its_sums_say_is_not_run() {
    for (name, sum) in [("wrong", "0".repeat(64)), ("missing", String::new())] {
        let spoil = |line: &str| match sum.as_str() {
            "" => String::new(),
            sum => format!("{sum}{}", &line[64..]),
        };
        let ran = Runner::new(name).with_release("v1.2.3", spoil).run("v1.2.3");
        assert_eq!(ran.status, Some(2), "{name}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains("::error title=warplint::the warplint-x86_64"), "{name}: {}", ran.stdout);
    }
}

#[test]
fn without_a_release_it_is_built_from_source_and_a_release_that_was_asked_for_must_be_there() {
    let cargo = format!(
        "[ \"$*\" = \"install --quiet --locked --path {} --root ${{*: -1}}\" ] || exit 1\n\
         mkdir -p \"${{*: -1}}/bin\" && ln -s '{}' \"${{*: -1}}/bin/warplint\"",
        package().display(),
        env!("CARGO_BIN_EXE_warplint"),
    );
    let runner = Runner::new("source").with_program("gh", "exit 1").with_program("cargo", &cargo);
    runner.run("main").has_linted();
    runner.run("v9.9.9").has_linted();
    let mut runner = Runner::new("no release").with_program("gh", "exit 1").with_program("cargo", &cargo);
    runner.version = "v9.9.9";
    let ran = runner.run("main");
    assert_eq!(ran.status, Some(2), "{}", ran.stdout);
    assert!(ran.stdout.contains("::error title=warplint::there is no release v9.9.9"), "{}", ran.stdout);
}
