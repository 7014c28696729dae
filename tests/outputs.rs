//! `--output` and inputs that are not plain files: links, pipes, open files.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use warplint::run::{Streams, Terminal, run};

const LOG: &str = "fixtures/ptxas/13.5/spill-sm90/input.log";

fn warplint() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warplint"));
    command.args(["-f", "short", "--isolated"]);
    command
}

/// An empty folder for one test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn write_to(path: &Path) -> Output {
    let output = warplint().arg(LOG).arg("-o").arg(path).output().expect("it runs");
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

fn holds_the_report(path: &Path) {
    let text = fs::read_to_string(path).expect("it is there");
    assert!(text.contains("warning[register-spill] `pressure<128>`"), "{text}");
}

#[test]
fn a_written_file_keeps_its_links_and_its_mode() {
    let folder = folder("links");
    let (file, link) = (folder.join("real.txt"), folder.join("link.txt"));
    fs::write(&file, "old").expect("written");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("set");
    symlink("real.txt", &link).expect("linked");
    write_to(&link);
    holds_the_report(&file);
    assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
    assert_eq!(fs::metadata(&file).expect("there").permissions().mode() & 0o777, 0o640);
    fs::remove_file(&file).expect("removed");
    write_to(&link);
    holds_the_report(&file);
    assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 2, "nothing is left beside them");
}

#[test]
fn a_long_name_is_as_good_as_any_other() {
    let file = folder("long").join("n".repeat(250));
    write_to(&file);
    holds_the_report(&file);
}

/// `/dev/stdout` is such a link; a test that fails must not replace that one.
#[test]
fn an_open_file_is_written_to_in_place() {
    let folder = folder("open");
    let (link, file) = (folder.join("stdout"), folder.join("report.txt"));
    symlink("/proc/self/fd/1", &link).expect("linked");
    fs::write(&file, "before\n").expect("written");
    let stdout = fs::OpenOptions::new().append(true).open(&file).expect("opened");
    let status = warplint().arg(LOG).arg("-o").arg(&link).stdout(stdout).status().expect("it runs");
    assert_eq!(status.code(), Some(1));
    assert!(fs::read_to_string(&file).expect("read").starts_with("before\n"));
    holds_the_report(&file);
    assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
}

#[test]
fn a_table_without_kernels_replaces_nothing() {
    let folder = folder("table");
    let (empty, table) = (folder.join("empty.log"), folder.join("table.csv"));
    fs::write(&empty, "").expect("written");
    fs::write(&table, "old").expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_warplint"));
    let output = command.args(["kernels", "--isolated", "-f", "csv", "-o"]).arg(&table).arg(&empty).output();
    assert_eq!(output.expect("it runs").status.code(), Some(2));
    assert_eq!(fs::read_to_string(&table).expect("read"), "old");
}

/// As `warplint <(make)` and `warplint /dev/stdin`: what a pipe has given is gone.
#[test]
fn a_pipe_that_is_named_is_read_from_its_beginning() {
    let script = format!("cat {LOG} | {} -f short --isolated /dev/stdin", env!("CARGO_BIN_EXE_warplint"));
    let output = Command::new("sh").args(["-c", &script]).stdin(Stdio::null()).output().expect("it runs");
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("warning[register-spill]"));
}

#[test]
fn a_file_that_is_named_twice_is_read_once() {
    let once = warplint().arg(LOG).output().expect("it runs");
    let twice = warplint().args([LOG, &format!("./{LOG}"), LOG]).output().expect("it runs");
    assert_eq!(String::from_utf8_lossy(&twice.stdout), String::from_utf8_lossy(&once.stdout));
}

#[test]
fn a_report_is_not_written_over_what_it_is_about() {
    let folder = folder("over-input");
    let (log, link) = (folder.join("build.log"), folder.join("link.log"));
    fs::copy(LOG, &log).expect("copied");
    symlink("build.log", &link).expect("linked");
    let before = fs::read(&log).expect("there");
    let json = format!("json={}", link.display());
    for more in [["-o", log.to_str().expect("text")], ["--report", &json]] {
        let output = warplint().arg(&log).args(more).output().expect("it runs");
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains("would be written over"), "{output:?}");
        assert_eq!(fs::read(&log).expect("there"), before);
    }
}

#[cfg(unix)]
#[test]
fn files_whose_names_are_commands_or_formulas_are_named_in_another_way() {
    let folder = std::env::temp_dir().join(format!("warplint-outputs-names-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let text = "__global__ void k(float* p) {}\nvoid f(float* p) { k<<<1, 2048>>>(p); }\n";
    for name in ["::error::x\u{202e}.cu", "=1+1.cu"] {
        std::fs::write(folder.join(name), text).unwrap();
        let lint = |format: &str| {
            let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_warplint"));
            let output = command.current_dir(&folder).args(["--isolated", "-f", format, name]).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        for format in ["short", "csv", "github", "human", "json", "sarif", "gitlab"] {
            let out = lint(format);
            let is_bad =
                |line: &str| line.starts_with("::error::") || line.split(',').any(|cell| cell.starts_with('='));
            assert!(!out.lines().any(is_bad) && !out.contains('\u{202e}'), "{format}: {out}");
            assert!(out.contains("2048"), "{format}: {out}");
        }
    }
    let _ = std::fs::remove_dir_all(&folder);
}

#[test]
fn two_reports_have_a_file_each() {
    let folder = folder("one-file");
    let (file, link) = (folder.join("report"), folder.join("link"));
    symlink("report", &link).expect("linked");
    let [json, sarif] = [("json", &file), ("sarif", &link)].map(|(form, file)| format!("{form}={}", file.display()));
    let file = file.to_str().expect("text");
    for more in [["-o", file, "--report", &sarif], ["--report", &json, "--report", &sarif]] {
        let output = warplint().arg(LOG).args(more).output().expect("it runs");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("two reports would be written to"), "{output:?}");
        assert!(fs::metadata(file).is_err() && output.stdout.is_empty(), "{output:?}");
    }
    let devices = ["-o", "/dev/null", "--report", "json=/dev/null"];
    assert_eq!(warplint().arg(LOG).args(devices).output().expect("it runs").status.code(), Some(1));
}

#[cfg(target_os = "linux")]
#[test]
fn what_could_not_be_printed_is_told_by_every_command() {
    for args in
        [&["man"][..], &["completions", "bash"], &["gpus"], &["rules"], &["init", "--schema"], &["--version"], &[LOG]]
    {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("it is there");
        let mut command = Command::new(env!("CARGO_BIN_EXE_warplint"));
        let output = command.args(args).current_dir(env!("CARGO_MANIFEST_DIR")).stdout(full).output().expect("it runs");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && told.contains("cannot write the report"), "{args:?}: {output:?}");
    }
}

#[test]
fn a_name_that_repeats_itself_is_searched_for_as_fast_as_any_other() {
    let folder = folder("long-name");
    let name = "x".repeat(60_000);
    let log = format!(
        "ptxas info    : Compiling entry function '{name}' for 'sm_90'\n\
         ptxas info    : Function properties for {name}\n    \
         8 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads\n\
         ptxas info    : Used 40 registers, used 0 barriers\n"
    );
    fs::write(folder.join("build.log"), log).expect("written");
    let ptx = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.shared .align 4 .b8 {name}[64];\n\
         .visible .entry k(.param .u64 p)\n{{\n.reg .b32 %r<3>;\nmov.u32 %r1, {name};\nret;\n}}\n"
    );
    fs::write(folder.join("name.ptx"), ptx).expect("written");
    let start = std::time::Instant::now();
    for (input, status) in [("build.log", 1), ("name.ptx", 0)] {
        let output = warplint().current_dir(&folder).arg(input).output().expect("it runs");
        assert_eq!(output.status.code(), Some(status), "{output:?}");
    }
    // In the square of its length it is minutes.
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}

#[test]
fn every_command_ends_quietly_when_its_reader_goes_away() {
    for command in [
        "gpus",
        "gpus -f json",
        "gpus a100 -f json",
        "rules -f json",
        "explain register-spill",
        "occupancy --gpu sm_80 --registers 40 --block 128 -f json",
        "launch --gpu sm_80 --block 128 --grid 100 -f json",
        "completions bash",
        "man",
        "init --schema",
        "init -o -",
        "kernels --isolated -f json fixtures/ptxas/13.5/spill-sm90/input.log",
        "diff --isolated -f json fixtures/ptxas/13.5/spill-sm90/input.log fixtures/ptxas/13.5/basic-sm90/input.log",
        "--isolated --fail-on never -f html fixtures/ptxas/13.5/spill-sm90/input.log",
    ] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_warplint"))
            .args(command.split(' '))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code().is_some_and(|code| code < 2) && told.is_empty(), "{command}: {told}");
    }
}

/// What `args` print, or write to `file`, at a terminal of 60 columns.
fn at_a_terminal(args: &[&str], file: Option<&Path>) -> String {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let file_args = file.into_iter().flat_map(|file| ["-o".into(), file.as_os_str().to_owned()]);
    run(
        args.iter().map(Into::into).chain(file_args).collect(),
        &mut Streams {
            stdin: &mut std::io::empty(),
            stdin_is_terminal: true,
            stdout: &mut stdout,
            stderr: &mut stderr,
            stderr_is_terminal: false,
            terminal: Some(Terminal { width: 60, unicode: true }),
        },
    );
    let text = String::from_utf8(stdout).expect("text");
    file.map_or(text, |file| fs::read_to_string(file).expect("it is there"))
}

#[test]
fn a_file_has_neither_the_colours_nor_the_width_of_the_terminal() {
    let file = folder("plain").join("out.txt");
    let ptx = "fixtures/ptx/13.5/parity-branch/input.ptx";
    let commands = [
        &["warplint", "--isolated", LOG][..],
        &["warplint", "kernels", "--isolated", LOG],
        &["warplint", "branches", "--isolated", ptx],
        &["warplint", "diff", "--isolated", LOG, "fixtures/ptxas/13.5/tile-in-one-folder/input.log"],
    ];
    for command in commands {
        let shown = at_a_terminal(command, None);
        let written = at_a_terminal(command, Some(&file));
        assert!(shown.contains('\u{1b}') && !written.contains('\u{1b}'), "{command:?}: {written}");
        assert!(!written.is_empty(), "{command:?}");
        let asked = [command, &["--color", "always"]].concat();
        assert!(at_a_terminal(&asked, Some(&file)).contains('\u{1b}'), "{command:?}");
    }
}
