//! Starts a rule: `cargo run --example new-rule -- my-rule` writes its page and its module from the templates, and says
//! what is left to do.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Words that cannot name a module.
const KEYWORDS: &str = " abstract as async await become box break const continue crate do dyn else enum extern false final \
    fn for gen if impl in let loop macro match mod move mut override priv pub ref return self static struct super trait \
    true try type typeof unsafe unsized use virtual where while yield ";

#[allow(dead_code, reason = "the test of this file uses the rest of it")]
fn main() -> ExitCode {
    let ids: Vec<String> = std::env::args().skip(1).collect();
    let [id] = ids.as_slice() else {
        return said(&mut io::stderr(), "usage: cargo run --example new-rule -- my-rule", ExitCode::from(2));
    };
    match create(Path::new(env!("CARGO_MANIFEST_DIR")), id) {
        Ok(next) => said(&mut io::stdout(), &next, ExitCode::SUCCESS),
        Err(error) => said(&mut io::stderr(), &error, ExitCode::FAILURE),
    }
}

fn said(out: &mut dyn Write, text: &str, code: ExitCode) -> ExitCode {
    // Whoever closed the stream does not want to hear of it.
    let _ = writeln!(out, "{text}");
    code
}

/// Writes the page and the module of the rule `id` into the source tree at `root`; tells what is left to do.
pub(crate) fn create(root: &Path, id: &str) -> Result<String, String> {
    check_id(id)?;
    let module = id.replace('-', "_");
    let page = root.join("rules").join(format!("{id}.md"));
    let code = root.join("src").join("rules").join(format!("{module}.rs"));
    if let Some(taken) = [&page, &code].into_iter().find(|path| path.exists()) {
        return Err(format!("{} exists already", taken.display()));
    }
    let filled = |template: PathBuf| {
        let text = fs::read_to_string(&template).map_err(|error| format!("{}: {error}", template.display()))?;
        Ok::<_, String>(text.replace("_template", id))
    };
    let texts =
        [(&page, filled(root.join("rules/_template.md"))?), (&code, filled(root.join("src/rules/template.rs"))?)];
    for (path, text) in texts {
        fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(next_steps(id, &module))
}

/// Lower-case words joined by hyphens, which read well after "allow".
fn check_id(id: &str) -> Result<(), String> {
    let is_word = |word: &str| {
        word.starts_with(|first: char| first.is_ascii_lowercase())
            && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    if !id.split('-').all(is_word) {
        return Err(format!("`{id}` is no rule id: they are lower-case words joined by hyphens, as in register-spill"));
    }
    if KEYWORDS.contains(&format!(" {id} ")) {
        return Err(format!("`{id}` cannot name a module of Rust"));
    }
    Ok(())
}

fn next_steps(id: &str, module: &str) -> String {
    format!(
        "wrote rules/{id}.md and src/rules/{module}.rs\n\n\
         next:\n\
         1. in src/rules/mod.rs add the module, and the row of RULES in alphabetical order:\n\n    \
         mod {module};\n    \
         rule!(\"{id}\", {module}),\n\n\
         2. write the page, example first: input that triggers the rule, the finding, the same code after the fix\n\
         3. write `check` and `tell` in src/rules/{module}.rs until `cargo test` says that the example holds\n\
         4. run `SNAPSHOTS=overwrite cargo test`, read the diff, and add a line to CHANGELOG.md"
    )
}
