//! Source files by the names that a compiler wrote into its output: searched for in the folders that the user named.

use std::path::{Component, Path, PathBuf};

use hashbrown::HashMap;
use walkdir::WalkDir;

use super::MAX_FILES;

/// Largest source file that is read, in bytes.
const LARGEST: u64 = 16 * 1024 * 1024;

/// Files of some folders. They are walked when the first file is asked for.
#[derive(Debug)]
pub struct Sources {
    folders: Vec<PathBuf>,
    by_name: Option<HashMap<String, Vec<PathBuf>>>,
}

impl Sources {
    /// The files below `folders`; of a path that is a file, that file.
    #[must_use]
    pub fn new(folders: Vec<PathBuf>) -> Sources {
        Sources { folders, by_name: None }
    }

    /// The file that a compiler called `name`: of those with the same base name the one whose path ends most alike.
    pub fn find(&mut self, name: &Path) -> Option<PathBuf> {
        let base = name.file_name()?.to_str()?;
        let candidates = self.index().get(base)?;
        let alike = |path: &&PathBuf| {
            let (own, other) = (normal(path), normal(name));
            own.iter().rev().zip(other.iter().rev()).take_while(|(a, b)| a == b).count()
        };
        // Of several that are equally alike, the first that the walk came to.
        candidates.iter().rev().max_by_key(alike).cloned()
    }

    /// The bytes of a file that was found.
    #[must_use]
    pub fn read(&self, path: &Path) -> Option<Vec<u8>> {
        let size = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?.len();
        if size > LARGEST { None } else { std::fs::read(path).ok() }
    }

    fn index(&mut self) -> &HashMap<String, Vec<PathBuf>> {
        let folders = &self.folders;
        self.by_name.get_or_insert_with(|| {
            let mut by_name: HashMap<String, Vec<PathBuf>> = HashMap::new();
            let walks = folders.iter().flat_map(|folder| WalkDir::new(folder).follow_links(false).sort_by_file_name());
            for entry in walks.take(MAX_FILES).filter_map(Result::ok).filter(|entry| entry.file_type().is_file()) {
                if let Some(base) = entry.file_name().to_str() {
                    let path = entry.path().strip_prefix("./").unwrap_or(entry.path());
                    by_name.entry(base.to_owned()).or_default().push(path.to_owned());
                }
            }
            by_name
        })
    }
}

/// The names of a path's folders and file.
fn normal(path: &Path) -> Vec<&std::ffi::OsStr> {
    path.components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name),
            _ => None,
        })
        .collect()
}
