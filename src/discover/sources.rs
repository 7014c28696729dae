//! Source files by the names that a compiler wrote into its output: searched for in the folders that the user named.

use std::io;
use std::path::{Component, Path, PathBuf};

use hashbrown::HashMap;
use walkdir::{DirEntry, WalkDir};

use super::exclude::Exclude;
use super::{InputError, MAX_FILES, SourceFile, SourceKind, hidden, reason, source_kind};
use crate::model::symbol;
use crate::parse::plain;

/// Largest source file that is read, in bytes.
pub const LARGEST: u64 = 16 * 1024 * 1024;

/// Fails on a place for sources that is not there, or holds no file at all.
///
/// # Errors
/// The first such place.
pub fn check_sources(places: &[PathBuf]) -> Result<(), InputError> {
    for path in places {
        let shown = || symbol::printable(&path.display().to_string()).into_owned();
        let unreadable = |error: io::Error| InputError::NoSource { path: shown(), reason: reason(&error) };
        if std::fs::metadata(path).map_err(unreadable)?.is_file() {
            continue;
        }
        std::fs::read_dir(path).map_err(unreadable)?;
        if !WalkDir::new(path).into_iter().filter_map(Result::ok).any(|entry| entry.file_type().is_file()) {
            return Err(InputError::EmptySource { path: shown() });
        }
    }
    Ok(())
}

/// Sources that were searched for.
#[derive(Debug, Default)]
pub struct Searched {
    /// In order.
    pub files: Vec<SourceFile>,
    /// What could not be looked at.
    pub problems: Vec<InputError>,
}

/// The sources below `places`, in order, of the first files that a walk comes to, without what `exclude` leaves out. With
/// `skips`, those of hidden folders, of builds and of packages are left out too.
#[must_use]
pub fn source_files(places: &[PathBuf], skips: bool, exclude: &Exclude) -> Searched {
    let walks = places.iter().flat_map(|place| {
        let walk = WalkDir::new(place).follow_links(false).sort_by_file_name().into_iter();
        let below = exclude.below(place);
        walk.filter_entry(move |entry| !(skips && is_foreign(entry) || below.leaves_out(entry)))
    });
    let mut all = Searched::default();
    for (count, entry) in walks.enumerate() {
        if count == MAX_FILES {
            all.problems.push(InputError::TooMany { most: MAX_FILES });
            break;
        }
        match entry {
            Ok(entry) if is_file(&entry) => all.files.extend(source(&entry)),
            Ok(_) => {}
            Err(error) => all.problems.push(hidden(Path::new("."), &error)),
        }
    }
    all
}

fn source(entry: &DirEntry) -> Option<SourceFile> {
    let is_sure = source_kind(entry.path())? == SourceKind::Cuda;
    let path = entry.path().strip_prefix("./").unwrap_or(entry.path()).to_owned();
    Some(SourceFile { path, is_sure })
}

/// Whether a folder between `root` and the file at `path` holds nothing of the user's own.
pub(super) fn is_below_foreign(root: &Path, path: &Path) -> bool {
    let below = path.strip_prefix(root).unwrap_or(path);
    let mut folders: Vec<&std::ffi::OsStr> = normal(below);
    folders.pop();
    folders.into_iter().any(|folder| is_foreign_name(&folder.to_string_lossy()))
}

/// Files of some folders. They are walked when the first file is asked for.
///
/// What a compiler calls a file may be anything: it is only ever compared with the names of files that were found, so that
/// none outside of the folders is opened. Links are not followed, other than those that the user named.
#[derive(Debug)]
pub struct Sources {
    places: Vec<PathBuf>,
    /// Whether folders that hold no sources of the user's own are left out.
    skips: bool,
    exclude: Exclude,
    by_name: Option<HashMap<String, Vec<PathBuf>>>,
}

impl Sources {
    /// The files below `places`, which the user named for it; of a path that is a file, that file.
    #[must_use]
    pub fn named(places: Vec<PathBuf>) -> Sources {
        Sources { places, skips: false, exclude: Exclude::default(), by_name: None }
    }

    /// The files below `folders`, without those of hidden folders, of builds and of packages.
    #[must_use]
    pub fn around(folders: Vec<PathBuf>) -> Sources {
        Sources { places: folders, skips: true, exclude: Exclude::default(), by_name: None }
    }

    /// The same without what `exclude` leaves out.
    #[must_use]
    pub fn without(self, exclude: Exclude) -> Sources {
        Sources { exclude, ..self }
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
        if size > LARGEST { None } else { std::fs::read(path).ok().map(plain) }
    }

    fn index(&mut self) -> &HashMap<String, Vec<PathBuf>> {
        let (places, skips, exclude) = (&self.places, self.skips, &self.exclude);
        self.by_name.get_or_insert_with(|| {
            let mut by_name: HashMap<String, Vec<PathBuf>> = HashMap::new();
            let walks = places.iter().flat_map(|place| {
                let walk = WalkDir::new(place).follow_links(false).sort_by_file_name().into_iter();
                let below = exclude.below(place);
                walk.filter_entry(move |entry| !(skips && is_foreign(entry) || below.leaves_out(entry)))
            });
            for entry in walks.take(MAX_FILES).filter_map(Result::ok).filter(is_file) {
                if let Some(base) = entry.file_name().to_str() {
                    let path = entry.path().strip_prefix("./").unwrap_or(entry.path());
                    by_name.entry(base.to_owned()).or_default().push(path.to_owned());
                }
            }
            by_name
        })
    }
}

/// A file; of links, only one that the user named.
fn is_file(entry: &DirEntry) -> bool {
    entry.file_type().is_file() || (entry.depth() == 0 && entry.path().is_file())
}

/// A folder below a named one that holds nothing of the user's own: hidden, of builds, or of packages.
fn is_foreign(entry: &DirEntry) -> bool {
    let is_folder = entry.depth() > 0 && entry.file_type().is_dir();
    is_folder && is_foreign_name(&entry.file_name().to_string_lossy())
}

fn is_foreign_name(name: &str) -> bool {
    name.starts_with('.') || FOREIGN.contains(&name)
}

/// Folders that the search for sources leaves out, beside hidden ones.
const FOREIGN: [&str; 2] = ["target", "node_modules"];

/// The names of a path's folders and file.
fn normal(path: &Path) -> Vec<&std::ffi::OsStr> {
    path.components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A folder with these files, each holding its own name; gone at the end.
    struct Tree(PathBuf);

    impl Tree {
        fn new(name: &str, files: &[&str]) -> Tree {
            let root = std::env::temp_dir().join(format!("warplint-sources-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&root);
            fs::create_dir_all(&root).expect("a folder");
            for file in files {
                let path = root.join(file);
                fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
                fs::write(path, file).expect("a file");
            }
            Tree(root)
        }

        fn at(&self, path: &str) -> PathBuf {
            self.0.join(path)
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn of_files_of_one_name_the_one_whose_path_ends_alike_is_found() {
        let tree = Tree::new("alike", &["a/k.cu", "b/k.cu", "b/c/k.cu"]);
        let mut sources = Sources::named(vec![tree.at("")]);
        assert_eq!(sources.find(Path::new("/build/b/k.cu")), Some(tree.at("b/k.cu")));
        assert_eq!(sources.find(Path::new("k.cu")), Some(tree.at("a/k.cu")));
        assert_eq!(sources.find(Path::new("other.cu")), None);
    }

    #[test]
    fn a_hostile_name_opens_nothing_outside_of_the_folders() {
        let tree = Tree::new("hostile", &["in/k.cu", "out/secret.cu", "passwd"]);
        let mut sources = Sources::named(vec![tree.at("in")]);
        let outside = tree.at("out/secret.cu");
        let names =
            ["", "/", ".", "..", "../out/secret.cu", "../../etc/passwd", "/etc/passwd", "in/..", "\0", "k.cu\0", "~"];
        for name in names.map(Path::new).into_iter().chain([outside.as_path()]) {
            assert_eq!(sources.find(name), None, "{}", name.display());
        }
        // Of a path that leads anywhere, the last name is all that is searched for.
        assert_eq!(sources.find(Path::new("../../../k.cu")), Some(tree.at("in/k.cu")));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_followed_only_where_it_was_named() {
        use std::os::unix::ffi::OsStrExt;
        let tree = Tree::new("links", &["in/own.cu", "out/secret.cu"]);
        std::os::unix::fs::symlink(tree.at("out/secret.cu"), tree.at("in/secret.cu")).expect("a link");
        std::os::unix::fs::symlink(tree.at("out"), tree.at("in/folder")).expect("a link");
        let mut sources = Sources::named(vec![tree.at("in")]);
        assert_eq!(sources.find(Path::new("secret.cu")), None);
        assert_eq!(sources.find(Path::new(std::ffi::OsStr::from_bytes(b"\xff/secret.cu\xff"))), None);
        let mut named = Sources::named(vec![tree.at("in/secret.cu")]);
        assert_eq!(named.find(Path::new("secret.cu")), Some(tree.at("in/secret.cu")));
    }

    #[test]
    fn what_is_not_named_is_searched_without_hidden_folders_and_those_of_builds() {
        let files = [".git/k.cu", ".hidden/k.cu", "target/k.cu", "node_modules/k.cu", "src/target.cu"];
        let tree = Tree::new("foreign", &files);
        let mut around = Sources::around(vec![tree.at("")]);
        assert_eq!(around.find(Path::new("k.cu")), None);
        assert_eq!(around.find(Path::new("target.cu")), Some(tree.at("src/target.cu")));
        // A folder that was named itself is searched, whatever it is called.
        assert_eq!(Sources::around(vec![tree.at(".git")]).find(Path::new("k.cu")), Some(tree.at(".git/k.cu")));
        assert_eq!(Sources::named(vec![tree.at("")]).find(Path::new("k.cu")), Some(tree.at(".git/k.cu")));
    }

    #[test]
    fn a_place_for_sources_has_to_hold_a_file() {
        let tree = Tree::new("check", &["some/deep/k.cu"]);
        fs::create_dir_all(tree.at("none/deep")).expect("a folder");
        assert!(check_sources(&[tree.at("some"), tree.at("some/deep/k.cu")]).is_ok());
        assert!(matches!(check_sources(&[tree.at("none")]), Err(InputError::EmptySource { .. })));
        assert!(matches!(check_sources(&[tree.at("nowhere")]), Err(InputError::NoSource { .. })));
    }
}
