//! Paths to inputs: what each path is, and what a folder holds.

mod exclude;
mod sources;

pub use exclude::Exclude;
pub use sources::{LARGEST, Searched, Sources, check_sources, source_files};

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use miette::Diagnostic;
use thiserror::Error;
use walkdir::WalkDir;

use crate::model::symbol;
use crate::parse::cuda::looks_like_source;
use crate::parse::ptx::looks_like_ptx;

/// Something to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Standard input.
    Stdin,
    /// A build log.
    Log(PathBuf),
    /// A PTX module.
    Ptx(PathBuf),
    /// A CUDA C++ source.
    Source(SourceFile),
}

/// A file of C++ that may hold device code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// Its path.
    pub path: PathBuf,
    /// Whether it is one whatever it holds: named, or of an ending that only CUDA has. Others are sources where they hold
    /// device code or a launch.
    pub is_sure: bool,
}

impl SourceFile {
    /// Whether it is compiled on its own and not included: what it defines nobody else sees.
    #[must_use]
    pub fn is_unit(&self) -> bool {
        const UNITS: [&str; 5] = ["cpp", "cc", "cxx", "c++", "c"];
        self.path.extension().is_some_and(|end| UNITS.iter().any(|unit| end.eq_ignore_ascii_case(unit)))
    }
}

impl Input {
    /// The path; standard input has none.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Input::Stdin => None,
            Input::Log(path) | Input::Ptx(path) | Input::Source(SourceFile { path, .. }) => Some(path),
        }
    }
}

/// Files of a folder that are looked at, at most, to say what it holds.
const MAX_FILES: usize = 20_000;

/// A path that cannot be linted.
#[derive(Debug, Error, Diagnostic)]
pub enum InputError {
    /// It is not there, or may not be read.
    #[error("cannot read `{path}`: {reason}")]
    #[diagnostic(help(
        "give the path of a build log, of PTX or of a CUDA source, or pipe the build into warplint: `nvcc -Xptxas -v … 2>&1 | warplint`"
    ))]
    Unreadable {
        /// The path.
        path: String,
        /// The system's reason.
        reason: String,
    },
    /// What lies below a folder that was to be walked cannot be found.
    #[error("cannot read all of `{folder}`: {reason}")]
    #[diagnostic(help("what lies there was not looked at; allow reading it, or name what is to be linted"))]
    Hidden {
        /// The folder.
        folder: String,
        /// The system's reason.
        reason: String,
    },
    /// A search for sources that came to its end before the files did.
    #[error("the search for sources stopped at {most} files and folders")]
    #[diagnostic(severity(Warning), help("name the folders that the sources lie in: `--source src --source include`"))]
    TooMany {
        /// How many were looked at.
        most: usize,
    },
    /// A source that was piped in.
    #[error("what is piped in as `{name}` is CUDA source, and a pipe is read as the log of a build")]
    #[diagnostic(help("name the file: `warplint kernel.cu`"))]
    PipedSource {
        /// What the pipe is called.
        name: String,
    },
    /// A word that is no file, and reads like a command.
    #[error("`{word}` is neither a file nor a command of warplint")]
    #[diagnostic(help(
        "name a build log, PTX, a source or a folder, or one of the commands, which `warplint --help` lists"
    ))]
    Word {
        /// The word.
        word: String,
    },
    /// A folder without PTX and sources; logs are named or piped.
    #[error("`{path}` is a folder{holds}")]
    #[diagnostic(help(
        "of a folder, the CUDA sources and the PTX are read; name a log, or pipe the build into warplint: `make 2>&1 | warplint`"
    ))]
    Folder {
        /// The path.
        path: String,
        /// What it holds, as far as that says something.
        holds: String,
    },
    /// A folder of which the configuration leaves out everything.
    #[error("all sources and PTX in `{path}` are left out by `exclude` of the configuration")]
    #[diagnostic(help("name what is to be linted, or do without the configuration: `--isolated`"))]
    LeftOut {
        /// The path.
        path: String,
    },
    /// A source that is too large to be one.
    #[error("`{path}` has {size} bytes, and a source of more than {most} is not read")]
    #[diagnostic(help(
        "sources are written by people; leave out what a program wrote, or name its folder's other files"
    ))]
    TooLarge {
        /// The path.
        path: String,
        /// Its size.
        size: u64,
        /// The largest that is read.
        most: u64,
    },
    /// A place for sources that is not there.
    #[error("`--source {path}` names nothing that can be read: {reason}")]
    #[diagnostic(help("give the folder that the sources lie in, or a source file"))]
    NoSource {
        /// The path.
        path: String,
        /// The system's reason.
        reason: String,
    },
    /// A folder for sources without a file in it.
    #[error("`--source {path}` is a folder without a file in it")]
    #[diagnostic(help("give the folder that the sources lie in, or a source file"))]
    EmptySource {
        /// The path.
        path: String,
    },
    /// A built artefact, or another binary.
    #[error("`{path}` is a binary file, neither a build log nor PTX nor a source")]
    #[diagnostic(help(
        "give warplint text: the output of `nvcc -Xptxas -v`, or for an object or library that of `cuobjdump -res-usage`, or its PTX, which `cuobjdump -xptx all` takes out"
    ))]
    Binary {
        /// The path.
        path: String,
    },
}

/// What a path names.
#[derive(Debug, Default)]
pub struct Inputs {
    /// Inputs, in order.
    pub found: Vec<Input>,
    /// What of a folder could not be looked at.
    pub problems: Vec<InputError>,
    /// Links to sources and PTX that a walk came to and did not follow.
    pub links: u32,
}

/// The inputs that `path` names: one, or the sources and PTX files of a folder, in order, without those that `exclude`
/// leaves out; `-` is standard input.
///
/// # Errors
/// When it cannot be read, or is nothing that this version lints.
pub fn inputs(path: &Path, exclude: &Exclude) -> Result<Inputs, InputError> {
    if !path.is_dir() {
        return Ok(Inputs { found: vec![input(path)?], ..Inputs::default() });
    }
    let all = inputs_in(path, exclude);
    if !all.found.is_empty() || !all.problems.is_empty() {
        return Ok(all);
    }
    if !inputs_in(path, &Exclude::default()).found.is_empty() {
        return Err(InputError::LeftOut { path: path.display().to_string() });
    }
    Err(nothing_in(path))
}

/// The sources and PTX files of a folder, in order.
fn inputs_in(folder: &Path, exclude: &Exclude) -> Inputs {
    let mut all = Inputs::default();
    let below = exclude.below(folder);
    let walk = WalkDir::new(folder).follow_links(false).sort_by_file_name().into_iter();
    for entry in walk.filter_entry(move |entry| !below.leaves_out(entry)) {
        match entry {
            Ok(entry) if entry.file_type().is_file() => all.found.extend(found_input(folder, named(entry.into_path()))),
            Ok(entry) if entry.path_is_symlink() && entry.depth() > 0 => {
                all.links += u32::from(entry.path().is_file() && found_input(folder, entry.into_path()).is_some());
            }
            // A pipe or a device that lies there would be waited for.
            Ok(_) => {}
            Err(error) => all.problems.push(hidden(folder, &error)),
        }
    }
    all
}

/// A file of a walk as people call it: what lies in this folder has no `./` before it.
fn named(path: PathBuf) -> PathBuf {
    path.strip_prefix(".").map(Path::to_owned).unwrap_or(path)
}

/// What is to be said of a part of a folder that a walk cannot read.
fn hidden(root: &Path, error: &walkdir::Error) -> InputError {
    let folder = symbol::printable(&error.path().unwrap_or(root).display().to_string()).into_owned();
    let reason = match error.io_error() {
        Some(error) => reason(error),
        None => "links lead in a circle".to_owned(),
    };
    InputError::Hidden { folder, reason }
}

/// What is to be said of a folder in which nothing is to be read.
#[must_use]
pub fn nothing_in(folder: &Path) -> InputError {
    InputError::Folder { path: folder.display().to_string(), holds: holds(folder) }
}

/// The input that a file below `root` is. PTX lies in folders of builds, and sources do not.
fn found_input(root: &Path, path: PathBuf) -> Option<Input> {
    if is_ptx(&path) {
        return Some(Input::Ptx(path));
    }
    let is_sure = match source_kind(&path)? {
        SourceKind::Cuda => true,
        SourceKind::Cpp => false,
    };
    (!sources::is_below_foreign(root, &path)).then_some(Input::Source(SourceFile { path, is_sure }))
}

/// The input that the file at `path` is.
fn input(path: &Path) -> Result<Input, InputError> {
    if path == Path::new("-") {
        return Ok(Input::Stdin);
    }
    let shown = path.display().to_string();
    let unreadable = |error: io::Error| InputError::Unreadable { path: shown.clone(), reason: reason(&error) };
    let metadata = std::fs::metadata(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound if is_word(&shown) => InputError::Word { word: shown.clone() },
        _ => unreadable(error),
    })?;
    // Others than C++ have that ending, too.
    let may_be_any = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("inc"));
    if !may_be_any && source_kind(path).is_some() {
        return Ok(Input::Source(SourceFile { path: path.to_owned(), is_sure: true }));
    }
    if !metadata.is_file() {
        // A pipe, as of `<(make)`, can be read only once.
        return Ok(Input::Log(path.to_owned()));
    }
    let mut start = Vec::new();
    File::open(path).and_then(|file| file.take(START).read_to_end(&mut start)).map_err(unreadable)?;
    if looks_like_ptx(&start) {
        return Ok(Input::Ptx(path.to_owned()));
    }
    if is_binary(&start[..start.len().min(4096)]) {
        return Err(InputError::Binary { path: shown });
    }
    if is_ptx(path) {
        return Ok(Input::Ptx(path.to_owned()));
    }
    if looks_like_source(&start) {
        return Ok(Input::Source(SourceFile { path: path.to_owned(), is_sure: true }));
    }
    Ok(Input::Log(path.to_owned()))
}

/// Bytes of a file that tell what it is.
const START: u64 = 16 * 1024;

/// The file behind `input`, the same for every way to write its path. A pipe has none.
#[must_use]
pub fn identity(input: &Input) -> Option<PathBuf> {
    match input.path() {
        None => Some(PathBuf::from("-")),
        Some(path) => std::fs::canonicalize(path).ok().filter(|path| path.is_file()),
    }
}

fn is_word(path: &str) -> bool {
    path.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'-')
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

fn is_ptx(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("ptx"))
}

/// What a source may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SourceKind {
    /// Device code.
    Cuda,
    /// C++, perhaps with device code.
    Cpp,
}

/// The kind of source that a path's extension says it is.
fn source_kind(path: &Path) -> Option<SourceKind> {
    let end = path.extension()?.to_str()?.to_ascii_lowercase();
    // What a build makes `k.cu` of.
    if end == "in" {
        return source_kind(Path::new(path.file_stem()?)).filter(|kind| *kind == SourceKind::Cuda);
    }
    match end.as_str() {
        "cu" | "cuh" | "hip" => Some(SourceKind::Cuda),
        "h" | "hh" | "hpp" | "hxx" | "h++" | "inl" | "inc" | "ipp" | "tpp" => Some(SourceKind::Cpp),
        "cpp" | "cc" | "cxx" | "c++" | "c" => Some(SourceKind::Cpp),
        _ => None,
    }
}

/// No log holds NUL bytes, unless it is UTF-16, which Windows PowerShell writes and which is read.
fn is_binary(start: &[u8]) -> bool {
    let utf16 = start.starts_with(b"\xff\xfe") || start.starts_with(b"\xfe\xff");
    start.starts_with(b"\x7fELF") || (start.contains(&0) && !utf16)
}

fn holds(folder: &Path) -> String {
    let files =
        WalkDir::new(folder).follow_links(false).sort_by_file_name().into_iter().take(MAX_FILES).filter_map(Result::ok);
    let logs = files.filter(|entry| entry.file_type().is_file());
    let logs = logs.filter(|entry| entry.path().extension().is_some_and(|extension| extension == "log"));
    let logs: Vec<String> = logs.take(3).map(|entry| entry.path().display().to_string()).collect();
    match logs.as_slice() {
        [] => " without CUDA sources and PTX in it".to_owned(),
        logs => format!(" that holds {}", logs.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_walk_of_this_folder_finds_is_called_as_people_call_it() {
        let all = inputs(Path::new("."), &Exclude::default()).expect("this repository");
        let paths = all.found.iter().filter_map(|input| match input {
            Input::Source(file) => Some(&file.path),
            _ => None,
        });
        let paths: Vec<_> = paths.map(|path| path.display().to_string()).collect();
        let known = Path::new("fixtures").join("kernels").join("spill.cu").display().to_string();
        assert!(paths.contains(&known), "{paths:?}");
        assert!(!paths.iter().any(|path| path.starts_with("./")), "{paths:?}");
    }

    #[test]
    fn what_is_no_log_is_told_from_one() {
        assert_eq!(source_kind(Path::new("a/K.CU")), Some(SourceKind::Cuda));
        assert_eq!(source_kind(Path::new("a/k.hpp")), Some(SourceKind::Cpp));
        for name in ["k.hh", "k.hxx", "k.H++", "k.inc", "k.ipp", "k.tpp", "k.cxx", "k.c++", "k.c"] {
            assert_eq!(source_kind(Path::new(name)), Some(SourceKind::Cpp), "{name}");
        }
        assert_eq!(source_kind(Path::new("a/k.cu.in")), Some(SourceKind::Cuda));
        for name in ["a/k.log", "config.h.in", "k.in", ".in", "k.cl"] {
            assert_eq!(source_kind(Path::new(name)), None, "{name}");
        }
        assert!(is_binary(b"\x7fELF\x02") && is_binary(b"a\0b") && !is_binary(b"ptxas info\xff"));
        assert!(!is_binary(b"\xff\xfep\0t\0"));
        assert!(matches!(input(Path::new("check")), Err(InputError::Word { .. })));
        assert!(matches!(input(Path::new("no/such/file.log")), Err(InputError::Unreadable { .. })));
        assert_eq!(input(Path::new("-")).expect("stdin"), Input::Stdin);
    }
}
