//! What a project accepted: the figures of its kernels and the findings on them, as they were when someone wrote them down.
//!
//! Plain data, keyed by what stays while lines move, files are renamed and builds run in other folders. Who reads and writes
//! the file, and what is worse than before, is decided elsewhere.

mod changes;
mod figures;
mod file;
mod merge;
mod occupancy;
mod wire;

use std::collections::BTreeMap;

use hashbrown::{Equivalent, HashMap};

use crate::finding::Level;
use crate::model::{Arch, Kernel, Report, symbol};

pub use changes::{Change, Changes, Difference, Status, compare, may_move};
pub use figures::{Figures, LaunchFigures};
pub use file::{Fault, FaultKind, MOST, looks_like_json, read, read_any, write};
pub use merge::{Counts, Seen, prune, update};
pub use occupancy::{At, AtBlock, Occupancies, Told, places};

/// What is written down.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Baseline {
    /// The figures of each kernel; more than one where several translation units have a kernel of the same key.
    pub kernels: HashMap<Key, Vec<Figures>>,
    /// How many findings of each kind are accepted.
    pub findings: BTreeMap<Accepted, u64>,
}

/// What a kernel is known by from build to build.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Its name without what differs between builds.
    pub kernel: Box<str>,
    /// The architecture, where it is known.
    pub arch: Option<Arch>,
}

/// The same, borrowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyRef<'k> {
    /// Its name.
    pub kernel: &'k str,
    /// Its architecture.
    pub arch: Option<Arch>,
}

impl Equivalent<Key> for KeyRef<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        self.arch == key.arch && self.kernel == &*key.kernel
    }
}

impl Key {
    /// The key of a kernel; `None` for one whose name is not in the log.
    #[must_use]
    pub fn of(report: &Report, kernel: &Kernel) -> Option<Key> {
        Some(Key { kernel: name_key(report.names.get(kernel.name?)).into(), arch: kernel.arch })
    }
}

/// The name without what differs between builds, as text.
#[must_use]
pub fn name_key(name: &[u8]) -> String {
    String::from_utf8_lossy(&symbol::key(name)).into_owned()
}

impl Baseline {
    /// The figures of a kernel.
    #[must_use]
    pub fn of(&self, kernel: &str, arch: Option<Arch>) -> &[Figures] {
        self.kernels.get(&KeyRef { kernel, arch }).map_or(&[], Vec::as_slice)
    }

    /// How many kernels it holds: those of one key are several.
    #[must_use]
    pub fn kernel_count(&self) -> usize {
        self.kernels.values().map(Vec::len).sum()
    }

    /// How many findings are accepted.
    #[must_use]
    pub fn finding_count(&self) -> u64 {
        self.findings.values().sum()
    }
}

/// What tells accepted findings apart.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Accepted {
    /// The kernel that it is on, by its key.
    pub kernel: Option<Box<str>>,
    /// The architecture.
    pub arch: Option<Arch>,
    /// The rule.
    pub rule: Box<str>,
    /// The GPU, where one was asked for.
    pub gpu: Option<Box<str>>,
    /// The file, for what is on no kernel.
    pub path: Option<Box<str>>,
    /// What it was read off.
    pub from: From,
    /// What else tells it from others of the same rule and kernel.
    pub fingerprint: Option<Box<str>>,
    /// The loudest that it could be when it was accepted: what became worse is not accepted.
    pub cap: Level,
    /// How bad it was, for what its figures tell and those of the kernel do not: more is worse.
    pub severity: Option<u32>,
}

/// What a finding was read off: one that is read off a log is not gone where only PTX is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum From {
    /// The compiler's output.
    Log,
    /// PTX.
    Ptx,
    /// A source.
    Source,
}

impl From {
    /// All.
    pub const ALL: [From; 3] = [From::Log, From::Ptx, From::Source];

    /// Its name in the file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            From::Log => "log",
            From::Ptx => "ptx",
            From::Source => "source",
        }
    }
}

/// A baseline that a run is held against.
#[derive(Debug, Clone, Default)]
pub struct Against {
    /// The baseline.
    pub baseline: Baseline,
    /// The file as shown.
    pub name: String,
    /// Whether an improvement fails too, until the baseline is written anew.
    pub ratchet: bool,
    /// The working folder, which paths are told from.
    pub root: String,
}

/// A path as it is written down: with `/`, without `./`, and told from `root` where it is below it.
#[must_use]
pub fn normalised(path: &str, root: &str) -> String {
    let path = path.replace('\\', "/");
    let root = root.replace('\\', "/");
    let below = path.strip_prefix(root.trim_end_matches('/')).and_then(|rest| rest.strip_prefix('/'));
    let path = below.filter(|_| !root.is_empty()).unwrap_or(&path);
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." if parts.last().is_some_and(|last| !last.is_empty() && *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    // Blanks between slashes say nothing but at the start, where they are the root.
    let absolute = path.starts_with('/');
    let joined = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
    if absolute { format!("/{joined}") } else { joined }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_told_from_the_working_folder() {
        for (path, expected) in [
            ("./src/a.cu", "src/a.cu"),
            ("src//b/../a.cu", "src/a.cu"),
            ("/repo/src/a.cu", "src/a.cu"),
            ("/repository/a.cu", "/repository/a.cu"),
            ("../other/a.cu", "../other/a.cu"),
            ("src\\a.cu", "src/a.cu"),
        ] {
            assert_eq!(normalised(path, "/repo"), expected, "{path}");
        }
        assert_eq!(normalised("/a.cu", ""), "/a.cu");
    }
}
