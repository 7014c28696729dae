//! Finding the file, reading it, and making a configuration of it.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use miette::Diagnostic;
use toml::Spanned;
use walkdir::{DirEntry, WalkDir};

use super::file::{self, ConfigFile};
use super::paths;
use super::problem::{ConfigError, Fault, problems};
use super::{Config, MAX_BYTES};
use crate::gpu::Gpu;
use crate::model::symbol;
use crate::pattern::Patterns;

/// What the file is called.
const NAME: &str = "warplint.toml";

/// Which configuration is asked for.
#[derive(Debug, Clone, Copy)]
pub enum Choice<'a> {
    /// None.
    Isolated,
    /// This file.
    File(&'a Path),
    /// That of the working folder, or of the nearest folder above it up to the root of the repository.
    Nearest,
}

/// The configuration of the file that is asked for; the defaults where there is none.
///
/// # Errors
/// When it cannot be read, or says what cannot be meant: everything that is wrong with it.
pub fn load(choice: Choice<'_>) -> Result<Config, ConfigError> {
    let path = match choice {
        Choice::Isolated => return Ok(Config::default()),
        Choice::File(path) => path.to_owned(),
        Choice::Nearest => match nearest() {
            Some(path) => path,
            None => return Ok(Config::default()),
        },
    };
    let name = symbol::printable(&path.display().to_string()).into_owned();
    let is_walked = matches!(choice, Choice::Nearest);
    let content = content(&path, is_walked)
        .map_err(|error| ConfigError::Unreadable { name: name.clone(), reason: reason(&error) })?;
    read(&name, path.parent().unwrap_or(Path::new("")), &content)
}

/// A few questions to the file system, and no more.
fn nearest() -> Option<PathBuf> {
    let working = std::env::current_dir().ok()?;
    // As text: a finding shows the path, and shows it alike on every system.
    let mut up = String::new();
    for folder in working.ancestors() {
        // Also a link that leads nowhere: it is there, and saying so is better than doing without.
        if folder.join(NAME).symlink_metadata().is_ok() {
            return Some(PathBuf::from(up + NAME));
        }
        if folder.join(".git").symlink_metadata().is_ok() {
            return None;
        }
        up.push_str("../");
    }
    None
}

/// The start of the file, one byte more than it may have at most.
fn content(path: &Path, is_walked: bool) -> io::Result<Vec<u8>> {
    if path.is_dir() {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    }
    // Who names a pipe writes to it; one that lies in a folder would be waited for without an end.
    if is_walked && !path.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut content = Vec::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_end(&mut content)?;
    Ok(content)
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::IsADirectory => "it is a folder".to_owned(),
        _ => error.to_string(),
    }
}

/// Reads the content of the file that is called `name` and lies in `folder`.
///
/// # Errors
/// When it says what cannot be meant: everything that is wrong with it.
pub fn read(name: &str, folder: &Path, content: &[u8]) -> Result<Config, ConfigError> {
    if content.len() as u64 > MAX_BYTES {
        return Err(ConfigError::TooLarge { name: name.to_owned() });
    }
    let text = std::str::from_utf8(content).map_err(|error| {
        let before = &content[..error.valid_up_to()];
        ConfigError::NotUtf8 { name: name.to_owned(), line: 1 + memchr::memchr_iter(b'\n', before).count() }
    })?;
    // A mark that some editors put before UTF-8 is no part of the text.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (file, mut faults) = file::read(text);
    let config = complete(name, folder, text, file, &mut faults);
    if faults.is_empty() { Ok(config) } else { Err(problems(name, text, faults)) }
}

fn complete(name: &str, folder: &Path, text: &str, file: ConfigFile, faults: &mut Vec<Fault>) -> Config {
    let mut config = Config {
        name: Some(name.to_owned()),
        text: Arc::from(text),
        folder: folder.to_owned(),
        fail_on: file.fail_on.unwrap_or_default(),
        require_reason: file.require_reason,
        ratchet: file.ratchet,
        ..Config::default()
    };
    config.set_rules(name, text, &file.rules);
    for asked in &file.gpus {
        match gpu(asked, folder, &config.gpus) {
            Ok(gpu) => config.gpus.push((asked.get_ref().clone(), gpu)),
            Err(fault) => faults.push(fault),
        }
    }
    for asked in &file.sources {
        match source(asked, folder) {
            Ok(path) => config.sources.push((asked.get_ref().clone(), path)),
            Err(fault) => faults.push(fault),
        }
    }
    match paths::together(&file.excluded) {
        Some(globs) => config.exclude = globs,
        None => faults.push(Fault {
            span: file.excluded.first().map_or(0..0, |first| first.span.clone()),
            message: "the patterns of `exclude` are too much together".to_owned(),
            label: String::new(),
            help: Some("use fewer of them, or shorter ones".to_owned()),
        }),
    }
    config.excluded = file.excluded;
    match file.baseline.map(|asked| baseline(&asked, folder)).transpose() {
        Ok(baseline) => config.baseline = baseline,
        Err(fault) => faults.push(fault),
    }
    match Patterns::new(file.kernels.iter().map(|kernel| &kernel.glob)) {
        Ok(patterns) => config.patterns = patterns,
        Err(_) => faults.push(Fault {
            span: file.kernels.first().map_or(0..0, |kernel| kernel.name.span()),
            message: "the names of all [[kernel]] entries are too much together".to_owned(),
            label: String::new(),
            help: Some("use fewer entries, or shorter names".to_owned()),
        }),
    }
    config.kernels = file.kernels;
    config
}

/// The baseline that is asked for: a file in the configuration's folder or below, there already or not.
fn baseline(asked: &Spanned<String>, folder: &Path) -> Result<(String, PathBuf), Fault> {
    let text = asked.get_ref();
    let path = folder.join(text);
    let fault = |message: String, label: &str, help: &str| Fault {
        span: asked.span(),
        message,
        label: label.to_owned(),
        help: Some(help.to_owned()),
    };
    if leaves(folder, text, &path) {
        let help = "a configuration reads nothing outside; `--baseline` takes a file from anywhere";
        return Err(fault(
            format!("the baseline `{text}` is out of reach"),
            "not in the configuration's folder or below",
            help,
        ));
    }
    if path.exists() && !path.is_file() {
        let help = "a configuration reads regular files; `--baseline` takes others too";
        return Err(fault(format!("the baseline `{text}` is no regular file"), "", help));
    }
    Ok((text.clone(), path))
}

/// The GPU that is asked for, which is none of those `before` it.
fn gpu(asked: &Spanned<String>, folder: &Path, before: &[(String, Gpu)]) -> Result<Gpu, Fault> {
    let text = asked.get_ref();
    let fault = |message: String, label: &str, help: Option<String>| Fault {
        span: asked.span(),
        message,
        label: label.to_owned(),
        help,
    };
    if let Some(path) = Gpu::device_file(text, folder)
        && leaves(folder, text, &path)
    {
        let help = "a configuration reads nothing outside; `--gpu` takes a file from anywhere".to_owned();
        let label = "not in the configuration's folder or below";
        return Err(fault(format!("the device file `{text}` is out of reach"), label, Some(help)));
    }
    if Gpu::device_file(text, folder).is_some_and(|path| path.exists() && !path.is_file()) {
        let help = "a configuration reads regular files; `--gpu` takes others too".to_owned();
        return Err(fault(format!("the device file `{text}` is no regular file"), "", Some(help)));
    }
    let gpu = Gpu::resolve_in(text, folder)
        .map_err(|error| fault(error.to_string(), "", error.help().map(|help| help.to_string())))?;
    if before.iter().any(|(_, other)| other.name == gpu.name) {
        return Err(fault(format!("`{text}` stands twice in `gpu`"), &format!("{} again", gpu.name), None));
    }
    Ok(gpu)
}

/// The folder of sources that is asked for.
fn source(asked: &Spanned<String>, folder: &Path) -> Result<PathBuf, Fault> {
    let text = asked.get_ref();
    let fault = |message: String, label: &str, help: &str| Fault {
        span: asked.span(),
        message,
        label: label.to_owned(),
        help: Some(help.to_owned()),
    };
    if text.is_empty() {
        return Err(fault("an empty path is no source".to_owned(), "", "`.` is the folder of the configuration"));
    }
    const GIVE: &str = "name a folder with sources, or a source; `--source` takes others, and beats this key";
    let path = folder.join(text);
    if leaves(folder, text, &path) {
        let label = "not in the configuration's folder or below";
        let help = "a configuration reads nothing outside; `--source` takes a folder from anywhere";
        return Err(fault(format!("the source `{text}` is out of reach"), label, help));
    }
    let about = path.metadata().map_err(|error| {
        let reason = reason(&error);
        fault(format!("the source `{text}` cannot be read: {reason}"), "", GIVE)
    })?;
    let is_file = |entry: &DirEntry| entry.file_type().is_file();
    match about.is_file() {
        false if !about.is_dir() => Err(fault(format!("the source `{text}` is no regular file"), "", GIVE)),
        false if !WalkDir::new(&path).into_iter().filter_map(Result::ok).any(|entry| is_file(&entry)) => {
            Err(fault(format!("the source `{text}` is a folder without a file in it"), "", GIVE))
        }
        _ => Ok(path),
    }
}

/// Whether what `text` names, which is `path`, is outside `folder`, as written or when all links are followed.
fn leaves(folder: &Path, text: &str, path: &Path) -> bool {
    let inside = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    if !Path::new(text).components().all(inside) {
        return true;
    }
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    match (folder.canonicalize(), path.canonicalize()) {
        (Ok(folder), Ok(path)) => !path.starts_with(folder),
        // What is not there is out of nobody's reach; reading it says so.
        _ => false,
    }
}
