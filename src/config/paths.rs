//! `source` and `exclude`: paths below the configuration's folder, and patterns of such paths.

use std::ops::Range;

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use toml::Spanned;

use super::walk::{Value, Walk};

/// A pattern of what is left out of folders.
#[derive(Debug, Clone)]
pub(super) struct Excluded {
    pub(super) text: String,
    /// It is held against paths from the folder of the configuration on.
    pub(super) glob: Glob,
    /// Whether it names a place below that folder, and no name that may stand anywhere.
    pub(super) is_placed: bool,
    /// Where it is written.
    pub(super) span: Range<usize>,
}

/// All patterns as one; `None` where that is too much.
pub(super) fn together(patterns: &[Excluded]) -> Option<GlobSet> {
    let mut globs = GlobSetBuilder::new();
    for pattern in patterns {
        globs.add(pattern.glob.clone());
    }
    globs.build().ok()
}

/// Reads all patterns.
pub(super) fn excluded(walk: &mut Walk<'_>, value: &Value<'_>) -> Vec<Excluded> {
    let asked = walk.strings("`exclude`", "a pattern of paths", value);
    asked.iter().filter_map(|asked| pattern(walk, asked)).collect()
}

/// As in `.gitignore`: a name alone stands for itself anywhere, and with a slash in it the pattern begins at the folder of
/// the configuration. What is left out is left out with everything in it, so that `a`, `a/` and `a/**` are one.
fn pattern(walk: &mut Walk<'_>, asked: &Spanned<String>) -> Option<Excluded> {
    let text = asked.get_ref();
    let mut refuse = |message: String, label: &str, help: &str| {
        walk.fault(asked.span(), message, label, help.to_owned());
        None
    };
    if text.is_empty() {
        return refuse("an empty pattern leaves nothing out".to_owned(), "", "remove it");
    }
    if text.starts_with('!') {
        let message = format!("`{text}` does not take back what another pattern leaves out");
        return refuse(
            message,
            "",
            "make the other pattern leave out less; a file that is named is linted in any case",
        );
    }
    if text.split(['/', '\\']).any(|part| part == "..") {
        let message = format!("`{text}` leaves the folder of the configuration");
        return refuse(message, "patterns begin there", "write it from the folder of the configuration on");
    }
    let placed = text.trim_start_matches("./");
    let mut core = placed;
    while let Some(shorter) = core.strip_suffix("/**").or_else(|| core.strip_suffix('/')) {
        core = shorter;
    }
    let is_placed = core.contains('/');
    let core = core.trim_start_matches('/');
    if core.is_empty() || core.bytes().all(|byte| matches!(byte, b'*' | b'/')) {
        let help = "name what is to be left out: \"third_party\", \"src/gen/*.cu\"";
        return refuse(format!("`{text}` would leave everything out"), "", help);
    }
    let rooted = if is_placed { core.to_owned() } else { format!("**/{core}") };
    match GlobBuilder::new(&rooted).literal_separator(true).backslash_escape(true).build() {
        Ok(glob) => Some(Excluded { text: text.clone(), glob, is_placed, span: asked.span() }),
        Err(error) => {
            let help =
                "`*` stands for anything within a name, `**` for folders, `?` for one character, `[[]` for a bracket";
            let label = error.kind().to_string();
            refuse(format!("`{text}` is no pattern"), &label, help)
        }
    }
}
