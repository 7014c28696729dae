//! What the configuration leaves out of folders.

use std::path::{Component, Path, PathBuf};

use globset::GlobSet;
use walkdir::DirEntry;

/// Patterns of files and folders that walks leave out, with everything in them.
///
/// What a person names is linted, whatever the patterns say: a file, and a folder too, of which those patterns are
/// forgotten that it is itself left out by.
#[derive(Debug, Clone, Default)]
pub struct Exclude {
    /// Where patterns that name a place begin, with all links followed.
    folder: PathBuf,
    globs: GlobSet,
    /// For each pattern whether it names a place.
    placed: Vec<bool>,
    /// Whether what a person names is left out too.
    forced: bool,
}

impl Exclude {
    /// The patterns `globs` from `folder` on, for each of which `placed` tells whether it names a place; with `forced` they hold
    /// for what is named too.
    #[must_use]
    pub fn new(folder: &Path, globs: GlobSet, placed: Vec<bool>, forced: bool) -> Exclude {
        if placed.is_empty() {
            return Exclude::default();
        }
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        Exclude { folder: folder.canonicalize().unwrap_or_default(), globs, placed, forced }
    }

    /// Whether a path that was named is left out.
    #[must_use]
    pub fn leaves_out(&self, path: &Path) -> bool {
        self.forced && !self.placed.is_empty() && !self.of_root(path).is_empty()
    }

    /// What is left out of a walk that begins at `root`.
    #[must_use]
    pub fn below(&self, root: &Path) -> Below<'_> {
        if self.placed.is_empty() {
            return Below { exclude: self, root: PathBuf::new(), base: None, forgotten: Vec::new() };
        }
        Below { exclude: self, root: root.to_owned(), base: self.relative(root), forgotten: self.of_root(root) }
    }

    /// `path` from the folder of the patterns on; `None` where it is not below.
    fn relative(&self, path: &Path) -> Option<PathBuf> {
        path.canonicalize().ok()?.strip_prefix(&self.folder).ok().map(Path::to_owned)
    }

    /// The patterns that leave `path` out, or a folder that it is in, by their indices.
    fn of_root(&self, path: &Path) -> Vec<usize> {
        let Some(relative) = self.relative(path) else { return Vec::new() };
        let mut found: Vec<usize> = Vec::new();
        let mut part = PathBuf::new();
        for component in relative.components() {
            part.push(component);
            found.extend(self.globs.matches(&part));
        }
        found
    }
}

/// What is left out of one walk.
#[derive(Debug, Clone)]
pub struct Below<'e> {
    exclude: &'e Exclude,
    root: PathBuf,
    /// The root from the folder of the patterns on; `None` where it is not below.
    base: Option<PathBuf>,
    /// Patterns that the root itself is left out by.
    forgotten: Vec<usize>,
}

impl Below<'_> {
    /// Whether an entry of the walk is left out, where the folders above it are not.
    #[must_use]
    pub fn leaves_out(&self, entry: &DirEntry) -> bool {
        let exclude = self.exclude;
        if exclude.placed.is_empty() || entry.depth() == 0 {
            return false;
        }
        let below = entry.path().strip_prefix(&self.root).unwrap_or(entry.path());
        // `.` and what an odd root leaves of it are no part of a name.
        let names: PathBuf = below.components().filter(|part| matches!(part, Component::Normal(_))).collect();
        let path = self.base.as_ref().map_or_else(|| names.clone(), |base| base.join(&names));
        let holds = |at: &usize| !self.forgotten.contains(at) && (self.base.is_some() || !exclude.placed[*at]);
        exclude.globs.matches(&path).iter().any(holds)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use globset::{GlobBuilder, GlobSetBuilder};
    use walkdir::WalkDir;

    use super::*;

    /// The files that a walk of `root` comes to below a folder with `files`, leaving out what matches.
    fn walked(test: &str, root: &str, patterns: &[(&str, bool)]) -> Vec<String> {
        let folder = std::env::temp_dir().join(format!("warplint-exclude-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        for file in ["a.cu", "src/b.cu", "src/gen/c.cu", "lib/gen/d.cu", "lib/gen/deep/e.cu"] {
            let path = folder.join(file);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, "").expect("a file");
        }
        let mut globs = GlobSetBuilder::new();
        for (text, _) in patterns {
            globs.add(GlobBuilder::new(text).literal_separator(true).build().expect("a glob"));
        }
        let placed = patterns.iter().map(|(_, placed)| *placed).collect();
        let exclude = Exclude::new(&folder, globs.build().expect("a set"), placed, false);
        let root = folder.join(root);
        let below = exclude.below(&root);
        let walk = WalkDir::new(&root).sort_by_file_name().into_iter().filter_entry(|entry| !below.leaves_out(entry));
        let files = walk.filter_map(Result::ok).filter(|entry| entry.file_type().is_file());
        let names = files.map(|entry| {
            let path = entry.path().strip_prefix(&folder).expect("below").to_owned();
            path.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
        });
        let names = names.collect();
        let _ = fs::remove_dir_all(&folder);
        names
    }

    #[test]
    fn a_name_is_left_out_anywhere_and_a_path_at_its_place() {
        assert_eq!(walked("name", "", &[("**/gen", false)]), ["a.cu", "src/b.cu"]);
        assert_eq!(walked("file", "", &[("**/[bd].cu", false)]), ["a.cu", "lib/gen/deep/e.cu", "src/gen/c.cu"]);
        let placed = walked("path", "", &[("src/gen", true)]);
        assert_eq!(placed, ["a.cu", "lib/gen/d.cu", "lib/gen/deep/e.cu", "src/b.cu"]);
        assert_eq!(walked("star", "", &[("*.cu", true)]).first().map(String::as_str), Some("lib/gen/d.cu"));
        assert_eq!(walked("below", "src", &[("src/gen", true)]), ["src/b.cu"]);
    }

    #[test]
    fn a_folder_that_is_named_is_walked_though_it_is_left_out_itself() {
        assert_eq!(walked("named", "lib/gen", &[("**/gen", false)]), ["lib/gen/d.cu", "lib/gen/deep/e.cu"]);
        assert_eq!(walked("within", "lib/gen/deep", &[("**/gen", false)]), ["lib/gen/deep/e.cu"]);
        assert_eq!(walked("other", "lib/gen", &[("**/gen", false), ("**/deep", false)]), ["lib/gen/d.cu"]);
    }
}
