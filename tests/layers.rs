//! The source tree keeps its direction: which module may use which, and which may touch the outside world.

use std::fs;
use std::path::{Path, PathBuf};

/// What each top-level module may use of the others. Those that are not listed here stand at the top and may use all.
const MAY_USE: [(&str, &[&str]); 18] = [
    ("model", &[]),
    ("finding", &["model"]),
    ("outcome", &[]),
    ("parse", &["model"]),
    ("gpu", &["model"]),
    ("join", &["model"]),
    ("pattern", &["model"]),
    ("filter", &["model", "pattern"]),
    ("lanes", &["model", "parse"]),
    ("suppress", &["model"]),
    ("analyse", &["model", "parse", "gpu", "lanes", "pattern", "suppress"]),
    ("baseline", &["model", "gpu", "analyse", "finding"]),
    ("rules", &["model", "gpu", "lanes", "analyse", "baseline", "finding", "suppress"]),
    ("settle", &["model", "baseline", "finding", "rules", "suppress"]),
    ("report", &["model", "gpu", "lanes", "analyse", "baseline", "finding", "rules", "settle"]),
    ("config", &["model", "gpu", "pattern", "analyse", "finding", "rules", "settle"]),
    ("discover", &["model", "parse"]),
    ("progress", &["model"]),
];

/// What may open files, and speak to streams, the environment and other processes.
const MAY_DO_IO: [&str; 6] = ["main", "run", "output", "report", "command", "discover"];

/// How the outside world is reached.
const IO: [&str; 6] = ["std::fs", "std::env", "process::Command", "io::stdin()", "io::stdout()", "io::stderr()"];

/// Files below the line that read one file that the user named, which no stage before them could, and the one that reads
/// the configuration.
const EXCEPT: [&str; 2] = ["src/gpu/names.rs", "src/config/load.rs"];

#[test]
fn no_module_uses_one_that_it_must_not_see() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let module = module(&path);
        let Some((_, allowed)) = MAY_USE.iter().find(|(name, _)| *name == module) else { continue };
        for (number, line) in (1..).zip(text.lines()) {
            let used = line.split("crate::").skip(1).map(|rest| rest.split(|c: char| !is_word(c)).next().unwrap_or(""));
            let used = used.filter(|used| *used != module && !used.is_empty() && !allowed.contains(used));
            wrong.extend(used.map(|used| format!("{}:{number}: {module} must not use {used}", path.display())));
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn only_the_ends_of_the_line_touch_the_outside_world() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        if MAY_DO_IO.contains(&module(&path).as_str()) || EXCEPT.iter().any(|except| Path::new(except) == path) {
            continue;
        }
        for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| IO.iter().any(|io| line.contains(io))) {
            wrong.push(format!("{}:{number}: {}", path.display(), line.trim()));
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

/// Every file of `src` with its code, without comments and tests: those may use what they like.
fn sources() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![root.join("src")];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder of the source tree") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = fs::read_to_string(&path).expect("a source file");
                files.push((path.strip_prefix(root).expect("below the root").to_owned(), text));
            }
        }
    }
    let tests = test_modules(&files);
    files.retain(|(path, _)| !tests.contains(path));
    files.iter_mut().for_each(|(_, text)| *text = code(text));
    files
}

/// Files that belong to a `#[cfg(test)] mod name;`.
fn test_modules(files: &[(PathBuf, String)]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for (path, text) in files {
        let declared = text.split("#[cfg(test)]\nmod ").skip(1).filter_map(|rest| rest.split_once(';'));
        let folder = path.parent().expect("a folder");
        found.extend(
            declared
                .filter(|(name, _)| name.chars().all(is_word))
                .map(|(name, _)| folder.join(name).with_extension("rs")),
        );
    }
    found
}

/// The code before the tests, which stand last in a file; comment lines are emptied so that line numbers stay.
fn code(text: &str) -> String {
    let own = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    own.lines()
        .map(|line| if line.trim_start().starts_with("//") { "\n".to_owned() } else { format!("{line}\n") })
        .collect()
}

/// The top-level module of a file: `rules` of `src/rules/page.rs`.
fn module(path: &Path) -> String {
    let below = path.components().nth(1).expect("a file below src").as_os_str();
    Path::new(below).file_stem().expect("a name").to_string_lossy().into_owned()
}

fn is_word(character: char) -> bool {
    character.is_ascii_lowercase() || character.is_ascii_digit() || character == '_'
}
