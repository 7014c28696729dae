//! Finds a CUDA toolchain, runs it, and reads what it prints with readers that share nothing with warplint.
//!
//! The readers are simple on purpose: they take one line at a time, expect the layout of a quiet serial build, and panic
//! when a number is not where it should be. What they are good for is being independent.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use serde_json::Value;

/// The architectures worth compiling for, one of each generation that differs in what it prints or allows.
const WANTED: [&str; 7] = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"];

const HOW_TO_GET_ONE: &str = "install the CUDA toolkit, or run .ci/run, which puts it into .venv-cuda";

/// An `nvcc` that can compile, and the tools beside it.
#[derive(Debug, Clone)]
pub(crate) struct Toolchain {
    nvcc: PathBuf,
    cuobjdump: PathBuf,
    /// The wanted architectures that this toolkit can compile for.
    pub(crate) archs: Vec<String>,
}

impl Toolchain {
    /// The toolchain, or `None` after saying on stderr why `test` is skipped.
    ///
    /// Looks at `WARPLINT_NVCC`, then at `PATH`, then at `.venv-cuda` in the package root.
    pub(crate) fn or_skip(test: &str) -> Option<&'static Self> {
        static FOUND: OnceLock<Result<Toolchain, String>> = OnceLock::new();
        match FOUND.get_or_init(Self::find) {
            Ok(toolchain) => Some(toolchain),
            Err(why) => {
                skip(test, why);
                None
            }
        }
    }

    fn find() -> Result<Self, String> {
        let nvcc = find_nvcc().ok_or_else(|| format!("no nvcc ({HOW_TO_GET_ONE})"))?;
        let host = if cfg!(windows) { "cl" } else { "g++" };
        if on_path(host).is_none() {
            return Err(format!("nvcc at {} has no host compiler ({host} is not on PATH)", nvcc.display()));
        }
        let cuobjdump = beside(&nvcc, "cuobjdump")
            .or_else(|| on_path("cuobjdump"))
            .ok_or_else(|| format!("no cuobjdump beside {} ({HOW_TO_GET_ONE})", nvcc.display()))?;
        let listed = text(&run(Command::new(&nvcc).arg("--list-gpu-code")).stdout);
        let archs: Vec<String> = WANTED
            .into_iter()
            .filter(|arch| listed.lines().any(|line| line.trim() == arch.trim_end_matches('a')))
            .map(str::to_owned)
            .collect();
        assert!(!archs.is_empty(), "nvcc lists none of {WANTED:?}:\n{listed}");
        Ok(Self { nvcc, cuobjdump, archs })
    }

    /// Whether code for `arch` can be made.
    pub(crate) fn can(&self, arch: &str) -> bool {
        self.archs.iter().any(|known| known == arch)
    }

    /// An `nvcc` command that works in `dir` and compiles for `archs`.
    pub(crate) fn nvcc<S: AsRef<str>>(&self, dir: &Path, archs: &[S]) -> Command {
        let mut command = Command::new(&self.nvcc);
        command.current_dir(dir).stdin(Stdio::null());
        for arch in archs {
            let number = arch.as_ref().trim_start_matches("sm_");
            command.arg("-gencode").arg(format!("arch=compute_{number},code=sm_{number}"));
        }
        command
    }

    /// The `ptxas` beside `nvcc`.
    pub(crate) fn ptxas(&self) -> PathBuf {
        beside(&self.nvcc, "ptxas").expect("a toolkit has its ptxas beside its nvcc")
    }

    /// What `cuobjdump -res-usage` says of a file.
    pub(crate) fn res_usage(&self, file: &Path) -> String {
        let output = run(Command::new(&self.cuobjdump).arg("-res-usage").arg(file));
        assert!(output.status.success(), "cuobjdump failed: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// The folder that holds the vendor's occupancy header, when this toolkit has it.
    pub(crate) fn occupancy_header(&self) -> Option<PathBuf> {
        let root = self.nvcc.parent()?.parent()?;
        ["include", "targets/x86_64-linux/include", "targets/sbsa-linux/include"]
            .into_iter()
            .map(|folder| root.join(folder))
            .find(|folder| folder.join("cuda_occupancy.h").is_file())
    }
}

/// Says on stderr, past the capture of the test harness, that a test did not run.
pub(crate) fn skip(test: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {why}: {test}");
}

fn find_nvcc() -> Option<PathBuf> {
    if let Some(told) = std::env::var_os("WARPLINT_NVCC").filter(|told| !told.is_empty()) {
        let told = PathBuf::from(told);
        assert!(told.is_file(), "WARPLINT_NVCC names no file: {}", told.display());
        return Some(real(&told));
    }
    if let Some(found) = on_path("nvcc") {
        return Some(real(&found));
    }
    // <venv>/lib/python3.x/site-packages/nvidia/<toolkit>/bin/nvcc, or Lib/site-packages on Windows
    let venv = Path::new(env!("CARGO_MANIFEST_DIR")).join(".venv-cuda");
    let pythons = children(&venv.join("lib")).into_iter().chain([venv.join("Lib")]);
    pythons
        .flat_map(|python| children(&python.join("site-packages").join("nvidia")))
        .map(|toolkit| toolkit.join("bin").join(executable("nvcc")))
        .find(|nvcc| nvcc.is_file())
}

fn children(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        fs::read_dir(folder).map(|entries| entries.flatten().map(|entry| entry.path()).collect()).unwrap_or_default();
    found.sort();
    found
}

fn executable(name: &str) -> String {
    format!("{name}{}", std::env::consts::EXE_SUFFIX)
}

/// Follows links, since a toolkit finds its parts from where its `nvcc` really is; but not those of a compiler cache,
/// which end at a program of another name.
fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).ok().filter(|real| real.file_name() == path.file_name()).unwrap_or_else(|| path.to_owned())
}

fn beside(tool: &Path, name: &str) -> Option<PathBuf> {
    Some(tool.parent()?.join(executable(name))).filter(|path| path.is_file())
}

/// The first file of that name on `PATH`.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join(executable(name)))
        .find(|path| path.is_file())
}

fn run(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{command:?} did not start: {error}"))
}

/// Compiler output as text; a byte that is no UTF-8 would be a finding of its own.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("the tool prints UTF-8")
}

/// Runs commands two at a time and gives back their output in the order of the commands.
pub(crate) fn two_at_a_time(commands: Vec<Command>) -> Vec<Output> {
    let count = commands.len();
    let queue = Mutex::new(commands.into_iter().enumerate());
    let done = Mutex::new(Vec::with_capacity(count));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some((index, mut command)) = queue.lock().unwrap().next() else { break };
                    let output = run(&mut command);
                    done.lock().unwrap().push((index, output));
                }
            });
        }
    });
    let mut outputs = done.into_inner().unwrap();
    outputs.sort_by_key(|(index, _)| *index);
    outputs.into_iter().map(|(_, output)| output).collect()
}

/// A folder of the test's own, removed when it goes out of scope.
#[derive(Debug)]
pub(crate) struct WorkDir(PathBuf);

impl WorkDir {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let unique = format!("warplint-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(unique);
        fs::create_dir_all(&path).expect("the folder for temporary files is writable");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file into the folder and returns its path.
    pub(crate) fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, content).expect("the folder for temporary files is writable");
        path
    }
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The path of a file in `fixtures/`.
pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

/// A run of the program under test.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) status: i32,
    pub(crate) report: Value,
    pub(crate) stderr: String,
}

/// Runs `warplint -f json` over a log in a folder that holds nothing but that log: no config and no sources to find.
pub(crate) fn warplint<S: AsRef<OsStr>>(log: &str, args: &[S]) -> Run {
    let folder = WorkDir::new();
    folder.write("build.log", log);
    let mut command = Command::new(env!("CARGO_BIN_EXE_warplint"));
    command.current_dir(folder.path()).args(["--isolated", "-f", "json"]).args(args).arg("build.log");
    judge(run(&mut command))
}

/// The same, with the log on standard input.
pub(crate) fn warplint_piped(log: &str) -> Run {
    let folder = WorkDir::new();
    let mut child = Command::new(env!("CARGO_BIN_EXE_warplint"))
        .current_dir(folder.path())
        .args(["--isolated", "-f", "json", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary under test starts");
    let mut stdin = child.stdin.take().expect("standard input was piped");
    let output = std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(log.as_bytes()));
        child.wait_with_output().expect("the binary under test ends")
    });
    judge(output)
}

/// Runs `warplint -f json --assemble` over PTX in a folder, with the folder of `ptxas` alone on PATH.
pub(crate) fn warplint_assembling<S: AsRef<OsStr>>(ptxas: &Path, folder: &Path, files: &[S]) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warplint"));
    command.current_dir(folder).env("PATH", ptxas.parent().expect("a file lies in a folder"));
    command.args(["--isolated", "-f", "json", "--fail-on", "never", "--assemble"]).args(files);
    judge(run(&mut command))
}

fn judge(output: Output) -> Run {
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    let status = output.status.code().unwrap_or(-1);
    let report: Value = serde_json::from_str(&stdout)
        .unwrap_or_else(|error| panic!("exit {status}, and stdout is no JSON ({error}):\n{stdout}\nstderr:\n{stderr}"));
    assert!(status == 0 || status == 1, "exit {status}:\n{stderr}");
    assert_eq!(report["version"], 1, "the report is not version 1");
    Run { status, report, stderr }
}

impl Run {
    /// The entries of the report, or its device functions.
    pub(crate) fn kernels(&self, kind: &str) -> Vec<&Value> {
        let all = self.report["kernels"].as_array().expect("the report lists kernels");
        all.iter().filter(|kernel| kernel["kind"] == kind).collect()
    }

    /// The one entry of that name and architecture.
    pub(crate) fn entry(&self, name: &str, arch: &str) -> &Value {
        let found: Vec<&Value> =
            self.kernels("entry").into_iter().filter(|one| one["name"] == name && one["arch"] == arch).collect();
        assert_eq!(found.len(), 1, "{name} for {arch} is listed {} times in {:#}", found.len(), self.report["kernels"]);
        found[0]
    }

    /// The findings of one rule.
    pub(crate) fn findings(&self, rule: &str) -> Vec<&Value> {
        let all = self.report["findings"].as_array().expect("the report lists findings");
        all.iter().filter(|finding| finding["rule"] == rule).collect()
    }
}

/// What `ptxas -v` says of one function.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Record {
    pub(crate) name: String,
    /// Only an entry has one.
    pub(crate) arch: Option<String>,
    pub(crate) stack: u32,
    pub(crate) spill_stores: u32,
    pub(crate) spill_loads: u32,
    pub(crate) registers: Option<u32>,
    pub(crate) barriers: Option<u32>,
    pub(crate) cumulative: Option<u32>,
    pub(crate) shared: u32,
    pub(crate) constant: BTreeMap<u32, u32>,
    pub(crate) textures: u32,
    pub(crate) surfaces: u32,
    pub(crate) samplers: u32,
    /// The stack is unbounded: a warning ahead of the records says so.
    pub(crate) unbounded: bool,
}

impl Record {
    /// The architecture of an entry.
    pub(crate) fn arch(&self) -> &str {
        self.arch.as_deref().expect("an entry has an architecture")
    }
}

/// Reads the log of one compiler at a time: entries and device functions in the order of the log.
pub(crate) fn read_ptxas(log: &str) -> Vec<Record> {
    let mut records: Vec<Record> = Vec::new();
    let mut announced: Option<(String, String)> = None;
    let mut unbounded: Vec<String> = Vec::new();
    let mut lines = log.lines();
    while let Some(line) = lines.next() {
        let Some((_, message)) = line.split_once(" : ").or_else(|| line.split_once(": ")) else { continue };
        if let Some(rest) = message.strip_prefix("Stack size for entry function '") {
            unbounded.extend(rest.strip_suffix("' cannot be statically determined").map(str::to_owned));
        } else if let Some(rest) = message.strip_prefix("Compiling entry function '") {
            let (name, arch) = rest.rsplit_once("' for '").expect("an entry line names an architecture");
            announced = Some((name.to_owned(), arch.trim_end_matches('\'').to_owned()));
        } else if let (true, Some(name)) = (line.starts_with("ptxas"), message.strip_prefix("Function properties for "))
        {
            let frame = lines.next().expect("a properties line is followed by the frame");
            let arch = announced.take_if(|(entry, _)| entry == name).map(|(_, arch)| arch);
            records.push(Record {
                name: name.to_owned(),
                unbounded: arch.is_some() && unbounded.iter().any(|entry| entry == name),
                arch,
                stack: before(frame, " bytes stack frame").expect("the frame line tells the stack"),
                spill_stores: before(frame, " bytes spill stores").expect("the frame line tells the spill stores"),
                spill_loads: before(frame, " bytes spill loads").expect("the frame line tells the spill loads"),
                ..Record::default()
            });
        } else if let (true, true) = (line.starts_with("ptxas"), message.starts_with("Used ")) {
            let record = records.last_mut().expect("a usage line follows properties");
            record.registers = before(message, " registers");
            record.barriers = before(message, " barriers");
            record.cumulative = before(message, " bytes cumulative stack size");
            record.shared = before(message, " bytes smem").unwrap_or(0);
            record.textures = before(message, " textures").unwrap_or(0);
            record.surfaces = before(message, " surfaces").unwrap_or(0);
            record.samplers = before(message, " samplers").unwrap_or(0);
            record.constant = message.split(", ").filter_map(constant_bank).collect();
        }
    }
    records
}

/// `376 bytes cmem[0]` as bank and size.
fn constant_bank(item: &str) -> Option<(u32, u32)> {
    let (size, bank) = item.split_once(" bytes cmem[")?;
    // the device linker puts the architecture behind the last item
    Some((bank.split_once(']')?.0.parse().ok()?, size.parse().ok()?))
}

/// The number that stands right before `unit`.
fn before(line: &str, unit: &str) -> Option<u32> {
    let head = &line[..line.find(unit)?];
    let digits = head.len() - head.bytes().rev().take_while(u8::is_ascii_digit).count();
    head[digits..].parse().ok()
}

/// What `cuobjdump -res-usage` says of one function.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Usage {
    pub(crate) name: String,
    pub(crate) arch: String,
    pub(crate) registers: u32,
    /// `None` where the listing says that it is unknown.
    pub(crate) stack: Option<u32>,
    pub(crate) shared: u32,
    pub(crate) local: u32,
    pub(crate) constant: BTreeMap<u32, u32>,
    pub(crate) textures: u32,
    pub(crate) surfaces: u32,
    pub(crate) samplers: u32,
}

impl Usage {
    /// Static shared memory, without what every block reserves on newer architectures.
    ///
    /// A kernel that declares none is listed with 0 in one module and with the reserved bytes in the next: it depends
    /// on what else the module declares.
    pub(crate) fn static_shared(&self) -> u32 {
        if self.shared == 0 { 0 } else { self.shared - reserved(&self.arch) }
    }

    /// Entries have a constant bank of parameters, device functions none.
    pub(crate) fn is_entry(&self) -> bool {
        self.constant.contains_key(&0)
    }
}

/// What the listing of an object and the device linker add to static shared memory from sm_90 on.
pub(crate) fn reserved(arch: &str) -> u32 {
    let number: u32 = arch.trim_start_matches("sm_").trim_end_matches(char::is_alphabetic).parse().unwrap();
    if number >= 90 { 1024 } else { 0 }
}

/// Reads the listing of an object: every function of every architecture.
pub(crate) fn read_res_usage(listing: &str) -> Vec<Usage> {
    let mut usages = Vec::new();
    let mut arch = String::new();
    let mut lines = listing.lines();
    while let Some(line) = lines.next() {
        if let Some(told) = line.strip_prefix("arch = ") {
            arch = told.trim().to_owned();
        } else if let Some(name) = line.strip_prefix(" Function ").and_then(|rest| rest.strip_suffix(':')) {
            let figures = lines.next().expect("a function line is followed by its figures");
            let items: BTreeMap<&str, &str> =
                figures.split_whitespace().filter_map(|item| item.rsplit_once(':')).collect();
            let number = |key: &str| -> u32 { items[key].parse().unwrap() };
            let constant = items.iter().filter_map(|(key, size)| {
                let bank = key.strip_prefix("CONSTANT[")?.strip_suffix(']')?;
                Some((bank.parse().unwrap(), size.parse().unwrap()))
            });
            usages.push(Usage {
                name: name.to_owned(),
                arch: arch.clone(),
                registers: number("REG"),
                stack: items["STACK"].parse().ok(),
                shared: number("SHARED"),
                local: number("LOCAL"),
                constant: constant.collect(),
                textures: number("TEXTURE"),
                surfaces: number("SURFACE"),
                samplers: number("SAMPLER"),
            });
        }
    }
    usages
}

/// What `nvlink -v` says of one entry of a link for several architectures.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Linked {
    pub(crate) name: String,
    pub(crate) arch: String,
    pub(crate) registers: u32,
    pub(crate) barriers: Option<u32>,
    pub(crate) stack: u32,
    pub(crate) shared: u32,
    pub(crate) constant: BTreeMap<u32, u32>,
}

/// Reads the records of a device link; it must be for several architectures, since only then does a line name its own.
pub(crate) fn read_nvlink(log: &str) -> Vec<Linked> {
    let mut linked = Vec::new();
    let mut named = None;
    for line in log.lines().filter(|line| line.starts_with("nvlink info")) {
        let Some((_, message)) = line.split_once(": ") else { continue };
        let Some((message, arch)) = message.split_once(" (target: ") else { continue };
        if let Some(rest) = message.strip_prefix("Function properties for '") {
            named = rest.strip_suffix("':").map(str::to_owned);
        } else if message.starts_with("used ") {
            linked.push(Linked {
                name: named.take().expect("a usage line follows a name"),
                arch: arch.trim_end_matches(')').to_owned(),
                registers: before(message, " registers").expect("a usage line tells registers"),
                barriers: before(message, " barriers"),
                stack: before(message, " stack").expect("a usage line tells the stack"),
                shared: before(message, " bytes smem").unwrap_or(0),
                constant: message.split(", ").filter_map(constant_bank).collect(),
            });
        }
    }
    linked
}
