//! `--assemble`: what is run, when, and what becomes of every way in which that can end. A script plays ptxas.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test stops where it is broken")]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// A folder with a ptxas that runs a script, a folder for temporary files, and a working folder.
struct Place {
    root: PathBuf,
}

impl Place {
    /// The script finds what it was given in `$*`, and the folder that it may write to in `$OUT`.
    fn new(name: &str, script: &str) -> Place {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("assemble-{name}"));
        let _ = fs::remove_dir_all(&root);
        for folder in ["bin", "tmp", "work/.git", "out"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        let place = Place { root };
        let keep = "printf '%s\\n' \"$@\" >>\"$OUT/arguments\"\npwd >>\"$OUT/folder\"\n";
        place.program(&format!("#!/bin/sh\n{keep}{script}\n"));
        place
    }

    fn program(&self, text: &str) {
        let path = self.root.join("bin/ptxas");
        fs::write(&path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn file(&self, name: impl AsRef<OsStr>, text: &str) {
        fs::write(self.root.join("work").join(Path::new(name.as_ref())), text).unwrap();
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_warplint"));
        command.args(args).current_dir(self.root.join("work"));
        command.env("PATH", format!("{}:/usr/bin:/bin", self.root.join("bin").display()));
        command.env("TMPDIR", self.root.join("tmp")).env("OUT", self.root.join("out")).env("NO_COLOR", "1");
        command.stdin(Stdio::null());
        command
    }

    /// Runs warplint, and sees to it that nothing is left of it.
    fn run(&self, args: &[&str]) -> Run {
        Run::of(self, self.command(args).output().unwrap())
    }

    /// What the script was given: a line a word.
    fn arguments(&self) -> Vec<String> {
        let text = fs::read(self.root.join("out/arguments")).unwrap_or_default();
        String::from_utf8_lossy(&text).lines().map(str::to_owned).collect()
    }
}

struct Run {
    status: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Run {
    fn of(place: &Place, output: Output) -> Run {
        let left: Vec<_> = fs::read_dir(place.root.join("tmp")).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(left.is_empty(), "{left:?} is left");
        Run {
            status: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap().replace("\n  | ", " "),
        }
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}{}", self.stdout, self.stderr))
    }

    fn rules(&self) -> Vec<String> {
        let report = self.json();
        let findings = report["findings"].as_array().unwrap();
        findings.iter().map(|finding| finding["rule"].as_str().unwrap().to_owned()).collect()
    }
}

fn module(body: &str) -> String {
    format!("//\n// by hand\n//\n.version 8.5\n.target sm_90\n.address_size 64\n\n{body}")
}

fn entry(name: &str, directives: &str) -> String {
    format!(".visible .entry {name}()\n{directives}\n{{\n\tret;\n}}\n")
}

/// A script's words for a kernel that spills.
fn says(name: &str) -> String {
    format!(
        "cat >&2 <<'END'
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '{name}' for 'sm_90'
ptxas info    : Function properties for {name}
    16 bytes stack frame, 20 bytes spill stores, 24 bytes spill loads
ptxas info    : Used 64 registers, used 1 barriers, 256 bytes smem
END"
    )
}

#[test]
fn figures_join_the_functions_of_the_module() {
    let place = Place::new("join", &format!("cat\necho noise on stdout\n{}", says("k")));
    place.file(
        "k.ptx",
        &module(&(entry("k", ".reqntid 64, 2, 1\n.maxnreg 64") + &entry("other", ".maxntid 512, 1, 1"))),
    );
    let run = place.run(&["-f", "json", "--assemble", "k.ptx"]);
    let report = run.json();
    assert_eq!((run.status, run.stderr.as_str()), (Some(1), ""), "a spill is a warning");
    let kernels = report["kernels"].as_array().unwrap();
    assert_eq!(kernels.len(), 2);
    let kernel = kernels.iter().find(|kernel| kernel["name"] == "k").unwrap();
    assert_eq!((&kernel["registers"], &kernel["spill_store_bytes"]), (&64.into(), &20.into()));
    assert_eq!(kernel["launch"]["block_source"], "reqntid");
    let occupancy = &kernel["occupancy"][0];
    assert_eq!((&occupancy["block"], &occupancy["blocks_per_sm"]), (&serde_json::json!([64, 2, 1]), &8.into()));
    assert_eq!(kernel["reported_at"]["path"], "k.ptx (ptxas -v)");
    let other = kernels.iter().find(|kernel| kernel["name"] == "other").unwrap();
    assert!(other["registers"].is_null() && other["occupancy"].as_array().unwrap().is_empty(), "{other}");
    let spill = &report["findings"][0];
    assert_eq!((&spill["rule"], &spill["basis"]), (&"register-spill".into(), &"measured".into()));
    assert_eq!(spill["location"]["path"], "k.ptx (ptxas -v)");

    let arguments = place.arguments();
    assert_eq!(
        (&arguments[..3], &arguments[4..]),
        (&["-v", "-arch=sm_90", "-o"].map(str::to_owned)[..], &["./k.ptx".to_owned()][..])
    );
    assert!(Path::new(&arguments[3]).starts_with(place.root.join("tmp")), "{arguments:?}");
}

#[test]
fn launch_bounds_tell_the_block() {
    let place = Place::new("bounds", &says("k"));
    place.file("k.ptx", &module(&entry("k", ".maxntid 512, 1, 1")));
    let report = place.run(&["-f", "json", "--assemble", "k.ptx"]).json();
    let kernel = &report["kernels"][0];
    assert_eq!(kernel["launch"]["block_source"], "launch-bounds");
    assert_eq!(kernel["occupancy"][0]["active_warps"], 32);
}

#[test]
fn nothing_is_run_that_was_not_asked_for() {
    let place = Place::new("unasked", "exit 1");
    place.file("k.ptx", &module(&entry("k", "")));
    for args in
        [&["k.ptx"][..], &["kernels", "k.ptx"], &["branches", "k.ptx"], &["--assemble", "--show-config", "k.ptx"]]
    {
        assert_eq!(place.run(args).status, Some(0), "{args:?}");
    }
    place.file("warplint.toml", "assemble = true\n");
    let run = place.run(&["--config", "warplint.toml", "k.ptx"]);
    assert!(run.status == Some(2) && run.stderr.contains("assemble"), "{}", run.stderr);
    assert!(place.arguments().is_empty());
}

#[test]
fn without_a_ptxas_nothing_is_read() {
    let place = Place::new("none", "exit 0");
    place.file("k.ptx", &module(&entry("k", "")));
    // One in the working folder is not run for being there, and neither is a file that is no program.
    fs::copy(place.root.join("bin/ptxas"), place.root.join("work/ptxas")).unwrap();
    fs::create_dir(place.root.join("files")).unwrap();
    fs::write(place.root.join("files/ptxas"), "").unwrap();
    for path in [String::new(), ".".to_owned(), ":.:".to_owned(), place.root.join("files").display().to_string()] {
        let run = Run::of(&place, place.command(&["--assemble", "k.ptx"]).env("PATH", &path).output().unwrap());
        assert_eq!((run.status, run.stdout.as_str()), (Some(2), ""), "PATH={path}");
        assert!(run.stderr.contains("`--assemble` runs ptxas, and there is none on PATH"), "{}", run.stderr);
        assert!(run.stderr.contains("CUDA toolkit"), "{}", run.stderr);
    }
    assert!(place.arguments().is_empty());
}

#[test]
fn a_log_is_nothing_to_assemble() {
    let place = Place::new("log", "exit 0");
    place.file("build.log", "ptxas info    : 0 bytes gmem\n");
    let run = place.run(&["--assemble", "build.log"]);
    assert_eq!(run.status, Some(2));
    assert!(run.stderr.contains("there is none in the input"), "{}", run.stderr);
    assert!(place.arguments().is_empty());
}

#[test]
fn a_source_beside_ptx_is_not_assembled() {
    let place = Place::new("beside", "exit 0");
    place.file("k.ptx", &module(&entry("k", "")));
    // A branch that is followed, so that it becomes a module.
    place.file("k.cu", "__global__ void j(float* o) { if (threadIdx.x & 1) { for (int i = 0; i < 9; i++) o[i] *= 2; } else { o[0] = 1; __syncthreads(); } }\n");
    let run = place.run(&["--assemble", "k.ptx", "k.cu"]);
    assert!(run.status != Some(2), "{}", run.stderr);
    assert!(place.arguments().iter().any(|one| one.ends_with("k.ptx")));
    let alone = place.run(&["--assemble", "k.cu"]);
    assert!(alone.status == Some(2) && alone.stderr.contains("there is none in the input"), "{}", alone.stderr);
}

#[test]
fn what_ptxas_refuses_is_a_failed_build() {
    let script = "echo \"ptxas ./k.ptx, line 8; error   : Unknown symbol 'q'\" >&2\n\
                  echo 'ptxas fatal   : Ptx assembly aborted due to errors' >&2\nexit 255";
    let place = Place::new("refused", script);
    place.file("k.ptx", &module(&entry("k", "")));
    let run = place.run(&["-f", "json", "--assemble", "k.ptx"]);
    assert_eq!((run.status, run.stderr.as_str()), (Some(1), ""));
    assert_eq!(run.rules(), ["build-failed"]);
    let report = run.json();
    assert_eq!(report["findings"][0]["location"]["path"], "k.ptx (ptxas -v)");
    assert_eq!(report["summary"]["build_failed"], true);
}

#[test]
fn two_modules_that_fail_alike_are_both_told() {
    let place = Place::new("alike", "echo 'ptxas fatal   : Something is wrong' >&2\nexit 1");
    place.file("a.ptx", &module(&entry("a", "")));
    place.file("b.ptx", &module(&entry("b", "")));
    let run = place.run(&["-f", "json", "--assemble", "a.ptx", "b.ptx"]);
    assert_eq!((run.status, run.stderr.as_str()), (Some(1), ""), "what is said twice is no silence");
}

#[test]
fn a_ptxas_that_dies_is_told_and_the_others_are_read() {
    let place = Place::new("dies", &format!("case $5 in ./bad*) kill -SEGV $$;; esac\n{}", says("k")));
    place.file("bad.ptx", &module(&entry("bad", "")));
    place.file("k.ptx", &module(&entry("k", "")));
    let run = place.run(&["-f", "json", "--assemble", "bad.ptx", "k.ptx"]);
    assert_eq!(run.status, Some(2));
    assert!(run.stderr.contains("ptxas did not end by itself on `bad.ptx`: signal: 11 (SIGSEGV)"), "{}", run.stderr);
    assert!(run.stderr.contains("`ptxas -v -arch=sm_90 -o out.cubin ./bad.ptx` shows"), "{}", run.stderr);
    assert!(run.json()["kernels"].as_array().unwrap().iter().any(|kernel| kernel["registers"] == 64));
}

#[test]
fn a_ptxas_that_fails_without_an_error_is_told_with_its_last_words() {
    for (name, script, says) in [
        ("silent", "exit 3", "with exit status: 3, and says nothing"),
        (
            "loader",
            "echo 'ptxas: error while loading shared libraries: libx.so' >&2\nexit 127",
            "loading shared libraries: libx.so`",
        ),
    ] {
        let place = Place::new(name, script);
        place.file("k.ptx", &module(&entry("k", "")));
        let run = place.run(&["--assemble", "k.ptx"]);
        assert_eq!(run.status, Some(2), "{}", run.stderr);
        assert!(run.stderr.contains("ptxas failed on `k.ptx`") && run.stderr.contains(says), "{}", run.stderr);
    }
}

#[test]
fn a_ptxas_that_is_content_and_silent_does_not_look_like_success() {
    let place = Place::new("content", "exit 0");
    place.file("k.ptx", &module(&entry("k", "")));
    assert_eq!(place.run(&["-f", "json", "--assemble", "k.ptx"]).rules(), ["no-resource-report"]);
}

#[test]
fn a_target_that_ptxas_does_not_know_is_told_as_that() {
    let script = "echo \"ptxas fatal   : Value 'sm_90' is not defined for option 'gpu-name'\" >&2\nexit 255";
    let place = Place::new("target", script);
    place.file("k.ptx", &module(&entry("k", "")));
    let run = place.run(&["-f", "json", "--assemble", "k.ptx"]);
    assert_eq!((run.status, run.rules().len()), (Some(2), 0));
    assert!(
        run.stderr.contains("this ptxas makes no code for sm_90, which is the target of `k.ptx`"),
        "{}",
        run.stderr
    );
    place.file("n.ptx", ".version 8.5\n.target debug\n.entry k() { ret; }\n");
    let run = place.run(&["--assemble", "n.ptx"]);
    assert!(run.stderr.contains("`n.ptx`: it has no `.target`"), "{}", run.stderr);
}

#[test]
fn a_part_of_a_program_is_assembled_as_one() {
    let unresolved = "echo \"ptxas fatal   : Unresolved extern function 'f'\" >&2; exit 255";
    let script = format!("case \"$*\" in *--compile-only*) ;; *) {unresolved} ;; esac\n{}", says("k"));
    let place = Place::new("part", &script);
    place.file("k.ptx", &module(&entry("k", "")));
    let run = place.run(&["-f", "json", "--assemble", "k.ptx"]);
    assert_eq!((run.rules(), run.stderr.as_str()), (vec!["register-spill".to_owned()], ""));
    assert_eq!(place.arguments().iter().filter(|word| *word == "--compile-only").count(), 1);
}

#[test]
fn a_module_of_device_functions_has_figures() {
    let script = "echo 'ptxas info    : Function properties for f' >&2\n\
                  echo '    88 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads' >&2";
    let place = Place::new("functions", script);
    place.file("f.ptx", &module(".visible .func f()\n{\n\tret;\n}\n"));
    let report = place.run(&["-f", "json", "--assemble", "f.ptx"]).json();
    let kernels = report["kernels"].as_array().unwrap();
    assert_eq!(kernels.len(), 1, "the figures are those of the function in the module: {kernels:#?}");
    assert_eq!((&kernels[0]["kind"], &kernels[0]["arch"]), (&"function".into(), &"sm_90".into()));
    assert_eq!(kernels[0]["stack_bytes"], 88);
    assert!(place.arguments().contains(&"--compile-only".to_owned()));
}

#[test]
fn ptx_that_is_piped_in_lies_in_a_file_for_as_long_as_it_is_needed() {
    let place = Place::new("stdin", &format!("grep -q reqntid \"$5\" || exit 9\n{}", says("k")));
    let text = module(&entry("k", ".reqntid 256, 1, 1"));
    place.file("k.ptx", &text);
    for path in ["-", "/dev/stdin"] {
        let input = fs::File::open(place.root.join("work/k.ptx")).unwrap();
        let output = place.command(&["-f", "json", "--assemble", path]).stdin(input).output().unwrap();
        let run = Run::of(&place, output);
        assert_eq!((run.rules()[0].as_str(), run.stderr.as_str()), ("register-spill", ""), "{path}");
    }
    assert_eq!(place.arguments()[4], "./stdin.ptx");
    let folder = fs::read_to_string(place.root.join("out/folder")).unwrap();
    assert!(Path::new(folder.lines().next().unwrap()).starts_with(place.root.join("tmp")), "{folder}");
}

#[test]
fn no_name_of_a_file_is_an_option_or_a_command() {
    let names = ["-o.ptx", "--version.ptx", "a b;touch x.ptx", "$(touch y).ptx", "@k.ptx", "'q\".ptx", "*.ptx"];
    let place = Place::new("names", &says("k"));
    // Not every system has names that are no text.
    let foreign = cfg!(target_os = "linux").then(|| OsStr::from_bytes(b"\xff.ptx"));
    for name in names.iter().map(OsStr::new).chain(foreign) {
        place.file(name, &module(&entry("k", "")));
        let mut command = place.command(&["-f", "json", "--assemble", "--"]);
        command.arg(name);
        let run = Run::of(&place, command.output().unwrap());
        assert_eq!((run.rules(), run.stderr.as_str()), (vec!["register-spill".to_owned()], ""), "{}", name.display());
        let last = place.arguments().pop().unwrap();
        assert_eq!(last, format!("./{}", name.to_string_lossy()));
    }
    assert!(!place.root.join("work/x.ptx").exists() && !place.root.join("work/y").exists());
}

#[test]
fn many_figures_are_read_as_they_come() {
    let record = "ptxas info    : Compiling entry function 'k'$n for 'sm_90'\n";
    let script = format!(
        "n=0; while [ $n -lt 1500 ]; do n=$((n+1)); echo \"{}\" >&2; echo 'ptxas info    : Used 20 registers, used 0 barriers' >&2; done",
        record.trim_end().replace("'k'$n", "'k$n'")
    );
    let place = Place::new("many", &script);
    place.file("k.ptx", &module(&entry("k1", "")));
    let report = place.run(&["kernels", "-f", "json", "--assemble", "k.ptx"]).json();
    assert_eq!(report["kernels"].as_array().unwrap().len(), 1500);
}

#[test]
fn a_program_that_does_not_start_and_a_folder_that_cannot_be_made_are_told_once() {
    let place = Place::new("start", "");
    place.file("a.ptx", &module(&entry("a", "")));
    place.file("b.ptx", &module(&entry("b", "")));
    let no_folder = place.command(&["--assemble", "a.ptx", "b.ptx"]).env("TMPDIR", "/nowhere/at/all").output().unwrap();
    let run = Run::of(&place, no_folder);
    assert_eq!((run.status, run.stderr.matches("cannot make a folder").count()), (Some(2), 1), "{}", run.stderr);
    place.program("#!/nowhere/sh\n");
    let run = place.run(&["--assemble", "a.ptx", "b.ptx"]);
    assert_eq!((run.status, run.stderr.matches("cannot run").count()), (Some(2), 1), "{}", run.stderr);
    assert!(run.stdout.contains("2 kernels on sm_90"), "the code is linted all the same: {}", run.stdout);
}
