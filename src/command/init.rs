//! `warplint init`: writes a configuration that explains itself, or the schema of configurations.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use miette::Diagnostic;
use thiserror::Error;

use crate::config;
use crate::model::symbol;
use crate::output;

/// Write a commented warplint.toml: every key and every rule at its default
#[derive(Args, Debug)]
pub struct InitArgs {
    /// Write there instead, where no file may be yet; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print the JSON Schema of warplint.toml, for editors; with --output, write it there
    #[arg(long)]
    pub schema: bool,
}

/// A configuration that was not written.
#[derive(Debug, Error, Diagnostic)]
enum InitError {
    /// Nobody's settings are written over.
    #[error("`{path}` is there already, and is left as it is")]
    #[diagnostic(help(
        "`warplint init -o FILE` writes elsewhere, and `-o -` prints; `warplint --show-config` prints what is in force"
    ))]
    Exists { path: String },
    /// The system refused.
    #[error("cannot write `{path}`: {error}")]
    Unwritable { path: String, error: io::Error },
}

/// Runs the command; what it did is `told`, what it was asked to print goes `out`.
///
/// # Errors
/// When the file is there already, or cannot be written.
pub fn run(args: &InitArgs, out: &mut dyn Write, told: &mut dyn Write) -> miette::Result<()> {
    let named = args.output.as_deref().filter(|path| *path != Path::new("-"));
    if args.schema {
        let text = format!("{:#}\n", config::schema());
        return Ok(output::write(named, out, |out| out.write_all(text.as_bytes()))?);
    }
    let text = config::template();
    if args.output.is_some() && named.is_none() {
        return Ok(output::write(None, out, |out| out.write_all(text.as_bytes()))?);
    }
    let path = named.unwrap_or(Path::new("warplint.toml"));
    create(path, &text)?;
    let _ =
        writeln!(told, "wrote {}: every key is in it, commented out", symbol::printable(&path.display().to_string()));
    Ok(())
}

/// Writes a file that is not there yet, whole or not at all.
fn create(path: &Path, text: &str) -> Result<(), InitError> {
    let shown = || symbol::printable(&path.display().to_string()).into_owned();
    let mut file = File::create_new(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => InitError::Exists { path: shown() },
        _ => InitError::Unwritable { path: shown(), error },
    })?;
    file.write_all(text.as_bytes()).map_err(|error| {
        let _ = std::fs::remove_file(path);
        InitError::Unwritable { path: shown(), error }
    })
}
