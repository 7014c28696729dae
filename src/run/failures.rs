//! What a run that could not do its job says.

use miette::Diagnostic;

use crate::model::{MessageKind, Report, symbol};

/// A report that would take the place of what it is about.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("the report would be written over `{path}`, which is to be read")]
#[diagnostic(help("give --output or --report a path of its own"))]
pub(super) struct OverInput {
    pub(super) path: String,
}

/// Two reports that would be one file.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("two reports would be written to `{path}`, and only the last would be left")]
#[diagnostic(help("give each of --output and --report a file of its own"))]
pub(super) struct OneFile {
    pub(super) path: String,
}

/// A list of branches that was asked of something else than code.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("there is neither PTX nor a source in the input, and a log tells nothing of branches")]
#[diagnostic(help("give warplint the .cu file; or, which tells more, the .ptx file of `nvcc -ptx -lineinfo`"))]
pub(super) struct NoPtx;

/// A table of nothing measured nothing.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub(super) enum NoKernels {
    #[error("no kernel was found in the input")]
    #[diagnostic(help(
        "compile with `-Xptxas -v` (CMake: `CMAKE_CUDA_FLAGS=\"-Xptxas=-v\"`), and anew, since what is up to date prints \
         nothing; and pass on stderr: `… 2>&1 | warplint`"
    ))]
    Silent,
    #[error("no kernel is declared in {files}")]
    #[diagnostic(help("kernels are the functions that are marked `__global__`; name the sources that hold them"))]
    Sources { files: String },
    #[error("no kernel was found in the input: the build failed, first with `{said}`")]
    #[diagnostic(help("`{lint}` shows every error"))]
    Failed { said: String, lint: String },
    #[error("the figures of no kernel are in the input")]
    #[diagnostic(help(
        "`{lint}` shows {warnings} about kernels whose figures are not in it; `-Xptxas -v` makes the compiler print figures"
    ))]
    Warned { warnings: String, lint: String },
}

impl NoKernels {
    pub(super) fn of(report: &Report) -> NoKernels {
        let lint = match report.inputs.as_slice() {
            [one] if one.name != "<stdin>" => format!("warplint {}", symbol::printable(&one.name)),
            _ => "warplint".to_owned(),
        };
        let errors = || report.messages.iter().filter(|message| message.kind.fails_build());
        // What a build tool says of a step that stopped follows from an error.
        let first = errors().find(|message| message.kind != MessageKind::BuildStopped).or_else(|| errors().next());
        if let Some(message) = first {
            let text = report.said(message);
            let text = String::from_utf8_lossy(&text);
            return NoKernels::Failed {
                said: symbol::printable(&symbol::cut_middle(text.trim(), 160)).into_owned(),
                lint,
            };
        }
        if !report.inputs.is_empty() && report.inputs.iter().all(|input| input.is_source) {
            let files = match report.inputs.as_slice() {
                [one] => format!("`{}`", symbol::printable(&one.name)),
                several => format!("the {} sources", several.len()),
            };
            return NoKernels::Sources { files };
        }
        match report.messages.iter().filter(|message| message.kernel.is_some()).count() {
            0 => NoKernels::Silent,
            1 => NoKernels::Warned { warnings: "1 message".to_owned(), lint },
            count => NoKernels::Warned { warnings: format!("{count} messages"), lint },
        }
    }
}

/// A request for the page of a group, which has none.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("`{name}` is a group of rules, and each rule has a page")]
pub(super) struct GroupPage {
    pub(super) name: String,
    #[help]
    pub(super) help: String,
}

/// A command that stands behind an option, where paths are read.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("the command `{command}` stands behind an option, where paths are read")]
#[diagnostic(help("write the command first: `warplint {command} …`; its options follow it"))]
pub(super) struct LateCommand {
    /// Its name.
    pub(super) command: String,
}
