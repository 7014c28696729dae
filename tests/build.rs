//! `warplint run`: what the build prints is passed on as it is and at once, its status counts, and signals reach it.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test stops where it is broken")]

#[path = "common/toolchain.rs"]
#[allow(dead_code, reason = "other tests use other parts")]
mod toolchain;
#[path = "common/tools.rs"]
mod tools;

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use toolchain::Toolchain;
use tools::tool_or_skip;

const LOG: &str = "fixtures/ptxas/13.5/spill-sm90/input.log";

/// `warplint run OPTIONS -- sh -c SCRIPT`, in the root of the package.
fn run(options: &[&str], script: &str) -> Command {
    let mut command = warplint(options);
    command.args(["--", "sh", "-c", script]);
    command
}

fn warplint(options: &[&str]) -> Command {
    let mut command = with_signals(env!("CARGO_BIN_EXE_warplint"));
    command.current_dir(env!("CARGO_MANIFEST_DIR")).stdin(Stdio::null());
    command.env_remove("CLICOLOR_FORCE").args(["run", "--isolated"]).args(options);
    command
}

/// A program, with the signals that whoever runs the tests may ignore, as a shell does for what it runs behind its back: they
/// would be ignored here too. Where `env` cannot do that, it is left.
fn with_signals(program: impl AsRef<OsStr>) -> Command {
    const DEFAULT: &str = "--default-signal=INT,HUP,TERM";
    let can = Command::new("env").args([DEFAULT, "true"]).stderr(Stdio::null()).status().is_ok_and(|one| one.success());
    if !can {
        return Command::new(program);
    }
    let mut command = Command::new("env");
    command.arg(DEFAULT).arg(program);
    command
}

fn output(mut command: Command) -> Output {
    command.output().expect("it runs")
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// An empty folder for one test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("build").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn rules_of(json: &[u8]) -> Vec<String> {
    let report: Value = serde_json::from_slice(json).expect("a JSON report");
    let findings = report["findings"].as_array().expect("findings");
    findings.iter().map(|finding| finding["rule"].as_str().expect("a rule").to_owned()).collect()
}

#[test]
fn each_stream_is_passed_on_byte_by_byte() {
    let folder = folder("bytes");
    let (one, other) = (folder.join("one"), folder.join("other"));
    let odd: Vec<u8> = (0..=255).chain(*b"\r\n\x1b[1mno end of a line").collect();
    fs::write(&one, odd.repeat(40_000)).expect("written");
    fs::write(&other, odd.iter().rev().copied().collect::<Vec<u8>>().repeat(30_000)).expect("written");
    // Both at the same time, and more than any pipe holds.
    let script = format!("cat '{}' & cat '{}' >&2; wait", one.display(), other.display());
    let output = output(run(&["-q", "--allow", "compiler"], &script));
    assert!(output.stdout == fs::read(&one).expect("read"), "{} bytes on stdout", output.stdout.len());
    assert!(output.stderr == fs::read(&other).expect("read"), "{} bytes on stderr", output.stderr.len());
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn what_comes_is_passed_on_before_the_line_or_the_build_ends() {
    let mut child = run(&["-q"], "printf 'no end of a line'; read answer; echo \" $answer\" >&2")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut first = [0; 16];
    child.stdout.as_mut().expect("piped").read_exact(&mut first).expect("it comes");
    assert_eq!(lossy(&first), "no end of a line");
    child.stdin.take().expect("piped").write_all(b"seen\n").expect("the build reads");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(lossy(&output.stderr), " seen\n");
}

#[test]
fn the_report_follows_on_stdout_on_lines_of_its_own() {
    let output = output(run(&["-f", "short"], &format!("cat {LOG} >&2; printf built")));
    let stdout = lossy(&output.stdout);
    assert!(
        stdout.starts_with("built\nfixtures/kernels/spill.cu:3:44: warning[register-spill] `pressure<128>`"),
        "{stdout}"
    );
    assert_eq!(output.stderr, fs::read(LOG).expect("the log"));
    assert_eq!(output.status.code(), Some(1), "a build that went well is judged by its lint");
}

#[test]
fn a_report_of_nothing_adds_nothing() {
    let output = output(run(&["-q", "-f", "short", "--allow", "no-resource-report"], "printf built"));
    assert_eq!((lossy(&output.stdout).as_str(), output.status.code()), ("built", Some(0)));
}

#[test]
fn a_report_that_is_one_document_has_stdout_to_itself_or_a_file() {
    let script = format!("echo built; cat {LOG} >&2");
    let to_stdout = output(run(&["-f", "json"], &script));
    assert!(rules_of(&to_stdout.stdout).contains(&"register-spill".to_owned()));
    assert!(lossy(&to_stdout.stderr).contains("built\n"), "nothing that the build says is lost");
    let file = folder("document").join("r.json");
    let name = file.display().to_string();
    let to_file = output(run(&["-f", "json", "-o", &name], &script));
    assert_eq!(lossy(&to_file.stdout), "built\n");
    assert!(rules_of(&fs::read(&file).expect("a report")).contains(&"register-spill".to_owned()));
    let beside = output(run(&["-f", "short", "--report", &format!("json={name}")], &script));
    assert!(lossy(&beside.stdout).starts_with("built\nfixtures/kernels/spill.cu:3:44: "));
    assert!(rules_of(&fs::read(&file).expect("a report")).contains(&"register-spill".to_owned()));
}

#[test]
fn the_status_of_a_build_that_fails_is_kept_whatever_the_lint_says() {
    for (options, script, status) in [
        (&[][..], "exit 3", 3),
        (&["--fail-on", "never"], "exit 1", 1),
        (&[], "kill -9 $$", 137),
        (&[], "kill -TERM $$", 143),
        (&["--kernel", "no_such_kernel"], "exit 5", 5),
        (&["-o", "no/such/folder/report"], "exit 7", 7),
        (&["--kernel", "no_such_kernel"], "exit 0", 2),
        (&["--allow", "compiler"], "exit 0", 0),
    ] {
        assert_eq!(output(run(options, script)).status.code(), Some(status), "{options:?} {script}");
    }
}

#[test]
fn what_cannot_be_started_has_the_status_that_shells_give_it() {
    let folder = folder("start");
    let script = |name: &str, text: &str, mode: u32| {
        let path = folder.join(name);
        fs::write(&path, text).expect("written");
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(mode)).expect("set");
        path.display().to_string()
    };
    let plain = script("plain", "#!/bin/sh\n", 0o644);
    let headless = script("headless", "echo no first line that says what runs it\n", 0o755);
    let lost = script("lost", "#!/no/such/interpreter\n", 0o755);
    let report = folder.join("report").display().to_string();
    for (command, status, says) in [
        ("no-such-command", 127, "there is no command `no-such-command`"),
        ("make -j8", 127, "write its words apart"),
        ("./no-such-script", 127, "there is no command `./no-such-script`"),
        (plain.as_str(), 126, "permission denied"),
        (headless.as_str(), 126, "format error"),
        (lost.as_str(), 126, "its first line says runs it is not there"),
    ] {
        let mut of = warplint(&["-o", &report]);
        of.args(["--", command]);
        let output = output(of);
        let stderr = lossy(&output.stderr).replace("\n        ", " ").replace("\n  | ", " ");
        assert_eq!(output.status.code(), Some(status), "{command}: {stderr}");
        assert!(stderr.contains(says), "{command}: {stderr}");
        assert!(!Path::new(&report).exists(), "{command}: nothing was built, and nothing is reported");
    }
}

#[test]
fn a_wrong_command_line_or_configuration_runs_nothing() {
    let folder = folder("nothing");
    let mark = folder.join("mark");
    let script = format!("echo ran > '{}'", mark.display());
    let config = folder.join("warplint.toml");
    fs::write(&config, "no-such-key = 1\n").expect("written");
    let config = config.display().to_string();
    let mut configured = Command::new(env!("CARGO_BIN_EXE_warplint"));
    configured.args(["run", "--config", &config, "--", "sh", "-c", &script]);
    let mut words = warplint(&[]);
    words.args(["sh", "-c", &script]);
    let wrong = [
        configured,
        words,
        run(&["--gpu", "no-such-gpu"], &script),
        run(&["--deny", "no-such-rule"], &script),
        run(&["--source", "no/such/folder"], &script),
        run(&["--passthrough", "none"], &script),
    ];
    for command in wrong {
        let told = format!("{command:?}");
        assert_eq!(output(command).status.code(), Some(2), "{told}");
        assert!(!mark.exists(), "{told}");
    }
}

#[test]
fn a_build_that_fails_is_one_finding_with_or_without_an_error_in_its_output() {
    let error = "a.cu(3): error: identifier \"x\" is undefined";
    let said = output(run(&["-f", "json"], &format!("echo '{error}' >&2; echo 'make: *** [a.o] Error 2' >&2; exit 2")));
    assert_eq!(rules_of(&said.stdout), ["build-failed"]);
    assert!(lossy(&said.stdout).contains("identifier"), "the error itself is told");
    let silent = output(run(&["-f", "json"], "exit 2"));
    assert_eq!(
        rules_of(&silent.stdout),
        ["build-failed"],
        "a report must not look like that of a build that went well"
    );
    let report: Value = serde_json::from_slice(&silent.stdout).expect("JSON");
    assert_eq!(report["summary"]["build_failed"], true);
    assert!(lossy(&silent.stdout).contains("`sh` exited with status 2"));
}

#[test]
fn colours_pass_and_do_not_hide_figures_and_nothing_is_set_for_the_build() {
    let frame = "\\033[1mptxas info    : Compiling entry function 'k' for 'sm_90'\\033[0m\\n";
    let used = "\\033[32mptxas info    : Used 200 registers, used 0 barriers\\033[0m\\n";
    let script = format!("printf \"{frame}{used}\" >&2; echo \"<$CLICOLOR_FORCE$NO_COLOR$TERM>\"");
    let mut command = run(&["-f", "short", "--block", "256"], &script);
    command.env("TERM", "xterm").env_remove("NO_COLOR");
    let output = output(command);
    let stdout = lossy(&output.stdout);
    assert!(stdout.starts_with("<xterm>\n"), "{stdout}");
    assert!(stdout.contains("warning[register-limited-occupancy] `k` reaches 12.5 %"), "{stdout}");
    assert!(output.stderr.starts_with(b"\x1b[1mptxas info"));
}

/// A build that says that it is there, and then goes on for a long time.
fn started(script: &str) -> (Child, BufReader<std::process::ChildStdout>, String) {
    let mut child =
        run(&["-f", "short"], script).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    stdout.read_line(&mut line).expect("it says so");
    (child, stdout, line.trim().to_owned())
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).expect("a process id"))
}

/// Whether a process is gone, after a moment to go.
fn is_gone(pid: &str) -> bool {
    let pid = Pid::from_raw(pid.parse().expect("a process id"));
    let patience = Instant::now() + Duration::from_secs(5);
    while Instant::now() < patience {
        let is_zombie = fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "));
        if kill(pid, None).is_err() || is_zombie {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let _ = kill(pid, Signal::SIGKILL);
    false
}

#[test]
fn a_signal_reaches_the_whole_build_and_what_was_read_is_reported() {
    for (signal, status) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143), (Signal::SIGHUP, 129)] {
        // `sleep` is a child of the shell, which would outlive it.
        let (child, mut stdout, sleeper) = started(&format!("cat {LOG} >&2; sleep 600 & echo $!; wait; exit 0"));
        kill(pid(&child), signal).expect("it is there");
        let mut rest = String::new();
        stdout.read_to_string(&mut rest).expect("a report");
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(status), "{signal}: {rest}");
        assert!(rest.contains("warning[register-spill]"), "{signal}: {rest}");
        assert!(rest.contains(&format!("`sh` was ended by signal {} ({signal})", status - 128)), "{rest}");
        assert!(is_gone(&sleeper), "{signal}");
    }
}

#[test]
fn a_build_that_was_stopped_ends_too() {
    let (child, mut stdout, _) = started("echo ready; kill -STOP $$; echo went on");
    std::thread::sleep(Duration::from_millis(200));
    kill(pid(&child), Signal::SIGTERM).expect("it is there");
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).expect("a report");
    assert_eq!(child.wait_with_output().expect("it ends").status.code(), Some(143), "{rest}");
}

#[cfg(target_os = "linux")]
#[test]
fn the_status_of_a_build_counts_where_nothing_can_be_printed() {
    for (script, status) in [("exit 5", 5), ("exit 0", 2)] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("it is there");
        let output = run(&[], &format!("cat {LOG}; {script}")).stdout(full).output().expect("it runs");
        assert_eq!(output.status.code(), Some(status), "{output:?}");
    }
}

#[test]
fn a_build_that_handles_a_signal_ends_as_it_likes() {
    let (child, mut stdout, _) =
        started("trap 'echo cleaned up; exit 9' INT; echo ready; while :; do sleep 0.05; done");
    kill(pid(&child), Signal::SIGINT).expect("it is there");
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).expect("a report");
    assert!(rest.starts_with("cleaned up\n"), "{rest}");
    assert_eq!(child.wait_with_output().expect("it ends").status.code(), Some(9));
}

#[cfg(target_os = "linux")]
#[test]
fn what_is_ignored_from_outside_stays_ignored() {
    let warplint = env!("CARGO_BIN_EXE_warplint");
    let build = "echo $$; sleep 1; echo built";
    let mut child = Command::new("sh")
        .args(["-c", &format!("trap '' HUP; exec '{warplint}' run -q --isolated --allow compiler -- sh -c '{build}'")])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    stdout.read_line(&mut line).expect("the build is there");
    kill(pid(&child), Signal::SIGHUP).expect("it is there");
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).expect("the rest");
    assert_eq!((rest.as_str(), child.wait().expect("it ends").code()), ("built\n", Some(0)));
}

#[cfg(target_os = "linux")]
#[test]
fn the_key_of_a_terminal_that_interrupts_reaches_the_build_once() {
    const NAME: &str = "the_key_of_a_terminal_that_interrupts_reaches_the_build_once";
    let Some(script) = tool_or_skip("script", NAME) else { return };
    let folder = folder("terminal");
    let count = folder.join("count");
    let build = folder.join("build.sh");
    let body = format!(
        "#!/bin/sh\ntrap 'echo x >> {count}' INT\ncat {LOG} >&2\necho ready\nwhile [ ! -s {count} ]; do sleep 0.05; done\n\
         sleep 0.5\nexit 4\n",
        count = count.display(),
    );
    fs::write(&build, body).expect("written");
    let line = format!(
        "'{}' run --isolated -f short -- sh '{}'; echo status $?",
        env!("CARGO_BIN_EXE_warplint"),
        build.display()
    );
    let mut child = with_signals(script)
        .args(["-qec", &line, "/dev/null"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut stdin = child.stdin.take().expect("piped");
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
    let mut seen = String::new();
    while !seen.contains("ready") {
        assert!(stdout.read_line(&mut seen).expect("text") > 0, "{seen}");
    }
    stdin.write_all(b"\x03").expect("typed");
    stdout.read_to_string(&mut seen).expect("text");
    drop(stdin);
    child.wait().expect("it ends");
    assert_eq!(fs::read_to_string(&count).expect("counted"), "x\n", "{seen}");
    assert!(seen.contains("warning[register-spill]"), "{seen}");
}

#[test]
fn what_a_build_leaves_running_does_not_hold_it_up() {
    let start = Instant::now();
    let output = output(run(&["-f", "short", "--allow", "compiler"], "sleep 600 & echo $!"));
    assert!(start.elapsed() < Duration::from_secs(9), "{:?}", start.elapsed());
    assert_eq!(output.status.code(), Some(0));
    assert!(
        lossy(&output.stderr).contains("`sh` has ended, and something that it started"),
        "{}",
        lossy(&output.stderr)
    );
    let sleeper = lossy(&output.stdout);
    let sleeper = Pid::from_raw(sleeper.lines().next().expect("a line").parse().expect("a process id"));
    kill(sleeper, Signal::SIGTERM).expect("what the build left running on purpose still runs");
}

#[test]
fn what_is_printed_after_the_end_of_a_build_is_read_as_long_as_it_comes() {
    let output = output(run(&["-f", "short"], &format!("(sleep 1; cat {LOG}) & exit 0")));
    assert!(lossy(&output.stdout).contains("warning[register-spill]"), "{}", lossy(&output.stdout));
}

#[test]
fn a_reader_that_goes_away_does_not_stop_the_build() {
    let mark = folder("closed").join("mark");
    let script = format!("echo 1; sleep 0.3; echo 2; echo 3; echo done > '{}'; exit 6", mark.display());
    let mut child = run(&[], &script).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it runs");
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(6));
    assert!(mark.exists());
}

#[cfg(target_os = "linux")]
#[test]
fn output_without_end_of_line_and_without_end_takes_bounded_memory() {
    // 320 MiB in one line, within less.
    // Each thread's heap would reserve much that it never uses.
    let line = format!(
        "ulimit -v 300000; MALLOC_ARENA_MAX=1 '{}' run -q --isolated --allow compiler -- sh -c 'head -c 335544320 /dev/zero | tr \"\\\\0\" x'",
        env!("CARGO_BIN_EXE_warplint")
    );
    let status = Command::new("sh").args(["-c", &line]).stdout(Stdio::null()).status().expect("it runs");
    assert_eq!(status.code(), Some(0));
}

const BUILD: &str = "
nvcc = NVCC
rule cu
  command = $nvcc -arch=sm_90 -Xptxas -v -c $in -o $out
  description = \u{1b}[32mCUDA $out\u{1b}[0m
build spill.o: cu spill.cu
build parity.o: cu parity.cu
build block33.o: cu block33.cu
";

const MAKEFILE: &str = "
all: spill.o parity.o block33.o
%.o: %.cu
\tNVCC -arch=sm_90 -Xptxas -v -c $< -o $@
";

/// A project of three sources, one of which launches blocks of 33 threads.
fn project(name: &str, nvcc: &Path) -> PathBuf {
    let folder = folder(name);
    let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/kernels");
    for source in ["spill.cu", "parity.cu"] {
        fs::copy(kernels.join(source), folder.join(source)).expect("copied");
    }
    let launch = "__global__ void copy(float *to, const float *from) { to[threadIdx.x] = from[threadIdx.x]; }\n\
                  void start(float *to, const float *from) { copy<<<4096, 33>>>(to, from); }\n";
    fs::write(folder.join("block33.cu"), launch).expect("written");
    let nvcc = nvcc.display().to_string();
    fs::write(folder.join("build.ninja"), BUILD.replace("NVCC", &nvcc)).expect("written");
    fs::write(folder.join("Makefile"), MAKEFILE.replace("NVCC", &nvcc)).expect("written");
    folder
}

/// Whether jobs that wrote at the same time began a kernel before the figures of another one had come, as those of make may.
fn is_mixed(log: &str) -> bool {
    let mut open = 0;
    log.lines().any(|line| {
        open += i32::from(line.contains("Compiling entry function")) - i32::from(line.contains(": Used "));
        open > 1
    })
}

#[test]
fn parallel_builds_of_make_and_ninja_are_read_whole() {
    const NAME: &str = "parallel_builds_of_make_and_ninja_are_read_whole";
    let Some(toolchain) = Toolchain::or_skip(NAME) else { return };
    for (builder, options) in [("make", &["-j3"][..]), ("ninja", &[])] {
        let Some(program) = tool_or_skip(builder, NAME) else { continue };
        let folder = project(builder, Path::new(toolchain.nvcc(Path::new("."), &[""; 0]).get_program()));
        let build = |of: &mut Command| {
            let command = of.current_dir(&folder).args(["--source", ".", "--"]).arg(&program).args(options);
            command.output().expect("it runs")
        };
        let built = build(warplint(&["-f", "json"]).env("CLICOLOR_FORCE", "1"));
        let report: Value = serde_json::from_slice(&built.stdout).expect("a JSON report");
        let kernels = report["kernels"].as_array().expect("kernels");
        let read = kernels.iter().filter(|kernel| kernel["registers"].is_u64()).count();
        assert_eq!(read, 7, "{builder}: {}", lossy(&built.stderr));
        let is_sure = kernels.iter().all(|kernel| kernel["ambiguous"] == false);
        assert!(is_sure || is_mixed(&lossy(&built.stderr)), "{builder}: {}", lossy(&built.stderr));
        assert!(rules_of(&built.stdout).contains(&"register-spill".to_owned()));
        assert_eq!(built.status.code(), Some(1), "{builder}");
        if builder == "ninja" {
            assert!(lossy(&built.stderr).contains("\u{1b}[32mCUDA spill.o\u{1b}[0m"), "{}", lossy(&built.stderr));
        }
        let again = build(&mut warplint(&["-q", "-f", "short", "--allow", "no-resource-report"]));
        assert_eq!(again.status.code(), Some(0), "{builder}: nothing is left to build: {}", lossy(&again.stdout));
        fs::write(folder.join("parity.cu"), "__global__ void k() { undefined(); }\n").expect("written");
        let broken = build(&mut warplint(&["-f", "short"]));
        let own = Command::new(&program).args(options).current_dir(&folder).output().expect("it runs");
        assert_eq!(broken.status.code(), own.status.code(), "{builder}");
        let stdout = lossy(&broken.stdout);
        assert_eq!(stdout.matches("[build-failed]").count(), 1, "{builder}: {stdout}");
    }
}
