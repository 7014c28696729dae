//! `.pre-commit-hooks.yaml`, with the real pre-commit: what it gives to warplint, and what it stops. `.ci/packaging` tries the
//! hooks that build from source.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test stops where it is broken")]

#[path = "common/tools.rs"]
mod tools;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tools::{skip, tool_or_skip};

const NAME: &str = "the_hook_stops_a_launch_of_33_threads_in_every_kind_of_file_and_passes_when_it_is_fixed";

/// What holds the launch: every ending that a folder is walked for.
const KINDS: [&str; 8] = ["cu", "cuh", "hip", "h", "hpp", "cpp", "cc", "inl"];

struct Repository {
    root: PathBuf,
    pre_commit: PathBuf,
}

impl Repository {
    fn git(&self, args: &[&str]) {
        let output = Command::new("git").args(args).current_dir(&self.root).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.root.join(name), text).unwrap();
        self.git(&["add", name]);
    }

    fn run(&self) -> (Option<i32>, String) {
        let bin = Path::new(env!("CARGO_BIN_EXE_warplint")).parent().unwrap().to_owned();
        let rest = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths([bin].into_iter().chain(std::env::split_paths(&rest))).unwrap();
        let output = Command::new(&self.pre_commit)
            .args(["try-repo", env!("CARGO_MANIFEST_DIR"), "warplint-system", "--all-files", "--verbose"])
            .current_dir(&self.root)
            .env("PATH", path)
            .env("PRE_COMMIT_HOME", self.root.with_extension("cache"))
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

#[test]
fn the_hook_stops_a_launch_of_33_threads_in_every_kind_of_file_and_passes_when_it_is_fixed() {
    let Some(pre_commit) = tool_or_skip("pre-commit", NAME) else { return };
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    if !package.join(".git").exists() {
        return skip(NAME, "the package is no repository, of which pre-commit could be given the hooks");
    }
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hooks");
    let _ = fs::remove_dir_all(&root);
    fs::create_dir_all(&root).unwrap();
    let repository = Repository { root, pre_commit };
    repository.git(&["init", "--quiet"]);
    let source = fs::read_to_string(package.join("fixtures/hooks/block33.cu")).unwrap();
    let named = |kind: &str| source.replace("copy", &format!("copy_{kind}"));
    for kind in KINDS {
        repository.write(&format!("block.{kind}"), &named(kind));
    }
    let ptx = fs::read_to_string(package.join("fixtures/ptx/13.5/parity-branch/input.ptx")).unwrap();
    repository.write("parity.ptx", &ptx);
    repository.write("host.c", "int host(void) { return 1; }\n");
    repository
        .write("build.log", &fs::read_to_string(package.join("fixtures/ptxas/13.5/spill-sm90/input.log")).unwrap());
    repository.write("block.py", &named("py"));

    let (status, said) = repository.run();
    assert_eq!(status, Some(1), "{said}");
    // HIP is linted, and a warp there may have other lanes.
    for kind in KINDS.iter().filter(|kind| **kind != "hip") {
        assert!(said.contains(&format!("`copy_{kind}` with 33 threads")), "{kind}: {said}");
    }
    assert!(said.contains("index-divergent-branch"), "PTX is linted: {said}");
    assert!(!said.contains("copy_py") && !said.contains("register-spill"), "{said}");

    for kind in KINDS {
        repository.write(&format!("block.{kind}"), &named(kind).replace("33", "64"));
    }
    repository.git(&["rm", "--quiet", "--force", "parity.ptx"]);
    let (status, said) = repository.run();
    assert_eq!(status, Some(0), "{said}");
}
