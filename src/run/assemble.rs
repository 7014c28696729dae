//! Runs ptxas on PTX inputs, only where `--assemble` asks for it, and reads what it prints as the log of an input.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};

use miette::Diagnostic;
use thiserror::Error;

use crate::model::{Arch, Kind, Module, Origin, Report, symbol};
use crate::parse::{Echo, EchoMode, read_log};

/// Why ptxas could not be asked, or did not answer.
#[derive(Debug, Error, Diagnostic)]
pub(super) enum AssembleError {
    #[error("`--assemble` runs ptxas, and there is none on PATH")]
    #[diagnostic(help("ptxas is in the `bin` folder of the CUDA toolkit: put that folder on PATH, by its whole path"))]
    NotFound,
    #[error("`--assemble` runs ptxas on PTX, and there is none in the input")]
    #[diagnostic(help(
        "compile with `nvcc -ptx -lineinfo`, and give warplint the .ptx file; a build log has its figures already"
    ))]
    NoPtx,
    #[error("cannot make a folder for what ptxas writes in `{folder}`: {error}")]
    #[diagnostic(help("name a folder that can be written to in TMPDIR (on Windows, TMP)"))]
    NoFolder { folder: String, error: io::Error },
    #[error("cannot run `{program}`: {error}")]
    #[diagnostic(help("`{program} --version` has to work for `--assemble`"))]
    NoStart { program: String, error: io::Error },
    #[error("cannot read what ptxas says of `{input}`: {error}")]
    Broken { input: String, error: io::Error },
    #[error("ptxas cannot be run on `{input}`: it has no `.target` such as sm_90")]
    #[diagnostic(help("give PTX as a compiler writes it, whole: `nvcc -ptx -lineinfo`"))]
    NoTarget { input: String },
    #[error("this ptxas makes no code for {target}, which is the target of `{input}`")]
    #[diagnostic(help(
        "`{program}` is of a toolkit that no longer has it, or does not have it yet: put one on PATH that has it, or compile the PTX for another target (`nvcc -ptx -arch=…`)"
    ))]
    UnknownTarget { input: String, target: Arch, program: String },
    #[error("ptxas did not end by itself on `{input}`: {status}")]
    #[diagnostic(help("`{again}` shows whether it does so again; a ptxas of another release may not"))]
    Died { input: String, status: ExitStatus, again: String },
    #[error("ptxas failed on `{input}`, with {status}{said}")]
    #[diagnostic(help("`{again}` is what was run"))]
    Failed { input: String, status: ExitStatus, said: String, again: String },
}

/// The first ptxas on PATH.
///
/// # Errors
/// When there is none.
pub(super) fn find() -> Result<PathBuf, AssembleError> {
    let name = format!("ptxas{}", std::env::consts::EXE_SUFFIX);
    let folders = std::env::var_os("PATH").unwrap_or_default();
    // A program that lies in the working folder is not run for being there.
    let mut programs = std::env::split_paths(&folders).filter(|folder| folder.is_absolute()).map(|at| at.join(&name));
    programs.find(|path| is_program(path)).ok_or(AssembleError::NotFound)
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}

/// Runs `program` on every module of `report`, and reads what it says into the same report. Of each module that came from a
/// file, `paths` has that file at its index.
pub(super) fn all(program: &Path, paths: &[Option<PathBuf>], report: &mut Report) -> Vec<AssembleError> {
    // What was made of a source for its branches is nothing that ptxas could compile.
    let is_ptx = |module: &Module| module.origin == Origin::Compiler;
    if !report.modules.iter().any(is_ptx) {
        return vec![AssembleError::NoPtx];
    }
    let scratch = match Scratch::new() {
        Ok(scratch) => scratch,
        Err(error) => return vec![error],
    };
    let mut errors = Vec::new();
    for at in 0..report.modules.len() {
        let module = &report.modules[at];
        if !is_ptx(module) {
            continue;
        }
        // Without a function there is nothing to have figures of.
        let Some(first) = module.functions.first() else { continue };
        let input = report.inputs.get(module.input as usize).map_or_else(String::new, |input| input.name.clone());
        let Some(target) = first.arch else {
            errors.push(AssembleError::NoTarget { input: shown(&input) });
            continue;
        };
        // What nothing calls is left out of a whole program.
        let relocatable = !module.functions.iter().any(|function| function.kind == Kind::Entry);
        let file = scratch.file_of(module, paths.get(at).and_then(Option::as_deref));
        let result =
            file.and_then(|file| Run { program, scratch: &scratch, input, target, file }.read(relocatable, report));
        match result {
            Ok(()) => {}
            Err(error @ (AssembleError::NoStart { .. } | AssembleError::NoFolder { .. })) => {
                errors.push(error);
                break;
            }
            Err(error) => errors.push(error),
        }
    }
    errors
}

fn shown(name: &str) -> String {
    symbol::printable(name).into_owned()
}

/// A folder of this run, which goes with everything in it when the run is over.
struct Scratch {
    path: PathBuf,
}

impl Scratch {
    fn new() -> Result<Scratch, AssembleError> {
        let parent = std::env::temp_dir();
        let mut tries = (0..100_u32).map(|number| {
            let path = parent.join(format!("warplint-{}-{number}", std::process::id()));
            create_private(&path).map(|()| Scratch { path })
        });
        // A folder that is there already is another's.
        let is_taken =
            |made: &io::Result<Scratch>| made.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AlreadyExists);
        tries
            .find(|made| !is_taken(made))
            .unwrap_or_else(|| Err(io::ErrorKind::AlreadyExists.into()))
            .map_err(|error| AssembleError::NoFolder { folder: shown(&parent.display().to_string()), error })
    }

    /// The file that holds a module: its own, or one that is written for it.
    fn file_of(&self, module: &Module, path: Option<&Path>) -> Result<File, AssembleError> {
        if let Some(path) = path.filter(|path| is_lasting(path)) {
            return Ok(File { folder: None, path: no_option(path) });
        }
        fs::write(self.path.join(STDIN), &module.text[..])
            .map_err(|error| AssembleError::NoFolder { folder: shown(&self.path.display().to_string()), error })?;
        Ok(File { folder: Some(self.path.clone()), path: Path::new(".").join(STDIN).into() })
    }
}

/// What the PTX of standard input is written to.
const STDIN: &str = "stdin.ptx";

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[cfg(unix)]
fn create_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().mode(0o700).create(path)
}

#[cfg(not(unix))]
fn create_private(path: &Path) -> io::Result<()> {
    fs::create_dir(path)
}

/// Whether another process finds the same file there: a pipe is read once, and `/dev/stdin` is each one's own.
fn is_lasting(path: &Path) -> bool {
    path.is_file() && !path.starts_with("/dev") && !path.starts_with("/proc")
}

/// The path in a form that no program takes for an option.
fn no_option(path: &Path) -> OsString {
    match path.components().next() {
        Some(Component::Normal(_)) => Path::new(".").join(path).into(),
        _ => path.into(),
    }
}

/// A file for ptxas, and the folder that its path is relative to, if that is not the working folder.
struct File {
    folder: Option<PathBuf>,
    path: OsString,
}

/// One ptxas on one module.
struct Run<'a> {
    program: &'a Path,
    scratch: &'a Scratch,
    /// The input that the module came from.
    input: String,
    target: Arch,
    file: File,
}

/// What ptxas says at most of a module that it refuses as a whole, and of most others.
const HEAD: u64 = 64 * 1024;

impl Run<'_> {
    /// Reads what ptxas says into `report`. With `relocatable` it makes code that is linked later.
    fn read(&self, relocatable: bool, report: &mut Report) -> Result<(), AssembleError> {
        let mut ptxas = self.start(relocatable)?;
        let mut head = Vec::new();
        let rest = &mut ptxas.stderr;
        rest.take(HEAD).read_to_end(&mut head).map_err(|error| self.broken(error))?;
        if memchr::memmem::find(&head, b"for option 'gpu-name'").is_some() {
            let program = shown(&self.program.display().to_string());
            return Err(AssembleError::UnknownTarget { input: shown(&self.input), target: self.target, program });
        }
        if !relocatable && memchr::memmem::find(&head, b"Unresolved extern function").is_some() {
            // A part of a program, which another part completes.
            drop(ptxas);
            return self.read(true, report);
        }
        let (kernels, errors) = (report.kernels.len(), failures(report));
        let name = format!("{} (ptxas -v)", self.input);
        let mut source = head.as_slice().chain(rest);
        read_log(&mut source, &name, report, &mut Echo::new(EchoMode::None, &mut io::sink()))
            .map_err(|error| self.broken(error))?;
        let status = ptxas.child.wait().map_err(|error| self.broken(error))?;
        // ptxas prints functions without a target, and all are made for the one that it was given.
        for kernel in &mut report.kernels[kernels..] {
            kernel.arch = kernel.arch.or(Some(self.target));
        }
        let again = || shown(&self.again(relocatable));
        match status.code() {
            Some(0) => Ok(()),
            // What is wrong is in the report.
            Some(_) if failures(report) > errors => Ok(()),
            Some(_) => {
                Err(AssembleError::Failed { input: shown(&self.input), status, said: last_line(&head), again: again() })
            }
            None => Err(AssembleError::Died { input: shown(&self.input), status, again: again() }),
        }
    }

    fn broken(&self, error: io::Error) -> AssembleError {
        AssembleError::Broken { input: shown(&self.input), error }
    }

    fn arguments(&self, relocatable: bool, output: &Path) -> Vec<OsString> {
        let mut all = vec!["-v".into(), format!("-arch={}", self.target).into()];
        if relocatable {
            all.push("--compile-only".into());
        }
        all.extend(["-o".into(), output.into(), self.file.path.clone()]);
        all
    }

    /// The command as a person would type it.
    fn again(&self, relocatable: bool) -> String {
        let arguments = self.arguments(relocatable, Path::new("out.cubin"));
        let words: Vec<_> = arguments.iter().map(|word| word.to_string_lossy()).collect();
        format!("ptxas {}", words.join(" "))
    }

    fn start(&self, relocatable: bool) -> Result<Ptxas, AssembleError> {
        let mut command = Command::new(self.program);
        command.args(self.arguments(relocatable, &self.scratch.path.join("out.cubin")));
        if let Some(folder) = &self.file.folder {
            command.current_dir(folder);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let failed = |error| AssembleError::NoStart { program: shown(&self.program.display().to_string()), error };
        let mut child = command.spawn().map_err(failed)?;
        let stderr = child.stderr.take().expect("bug: a piped stream is there");
        Ok(Ptxas { child, stderr })
    }
}

/// A ptxas that runs; it does not outlive the interest in it.
struct Ptxas {
    child: Child,
    stderr: ChildStderr,
}

impl Drop for Ptxas {
    fn drop(&mut self) {
        // One that has ended, and was waited for, is neither ended nor waited for again.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How many errors the logs of a report hold.
fn failures(report: &Report) -> u64 {
    report.messages.iter().filter(|message| message.kind.fails_build()).map(|message| message.count).sum()
}

/// What a program said last, as the end of a sentence.
fn last_line(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    match text.lines().rev().map(str::trim).find(|line| !line.is_empty()) {
        Some(line) => format!(": `{}`", symbol::printable(&symbol::cut_middle(line, 160))),
        None => ", and says nothing".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_reads_as_an_option() {
        assert_eq!(no_option(Path::new("-o.ptx")), "./-o.ptx");
        assert_eq!(no_option(Path::new("../-o.ptx")), "../-o.ptx");
        assert_eq!(no_option(Path::new("./k.ptx")), "./k.ptx");
        assert_eq!(no_option(Path::new("/-o.ptx")), "/-o.ptx");
    }

    #[test]
    fn a_scratch_folder_goes_with_what_is_in_it() {
        let scratch = Scratch::new().expect("a folder");
        let path = scratch.path.clone();
        fs::write(path.join("x"), "x").expect("a file");
        assert_ne!(Scratch::new().expect("another folder").path, path);
        drop(scratch);
        assert!(!path.exists());
    }
}
