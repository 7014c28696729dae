//! The examples of rule pages, and what a lint says of them.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use warplint::run::{Streams, run};

/// Input, the options and the configuration to lint it with, and what comes of it.
pub(crate) struct Example<'a> {
    pub(crate) args: Vec<&'a str>,
    pub(crate) config: Option<String>,
    /// The log of an earlier build, which the input is held against.
    pub(crate) before: Option<String>,
    /// A source, which may come with a log.
    pub(crate) source: Option<String>,
    pub(crate) input: Option<String>,
    pub(crate) expected: Vec<&'a str>,
}

/// The examples of a page: blocks of `ptxas`, `ptx` or `cuda`, each followed by one of `finding` unless it is `clean`. A block
/// of `toml` is the configuration for the next one, and one of `cuda` with another input behind it the source of that. One of
/// `ptxas,before` is the build that `baseline write` is given before all that follow.
pub(crate) fn examples(body: &str) -> Result<Vec<Example<'_>>, String> {
    let mut examples: Vec<Example> = Vec::new();
    // Whether the last block of input still wants its finding.
    let mut open = false;
    let mut config = None;
    let mut source: Option<String> = None;
    let mut before: Option<String> = None;
    let mut lines = body.lines();
    while let Some(line) = lines.next() {
        let Some(info) = line.strip_prefix("~~~") else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "~~~").collect();
        let mut words = info.split_whitespace();
        match words.next() {
            Some("toml") if !open => config = Some(block.join("\n")),
            Some("ptxas,before") if !open => before = Some(block.iter().map(|line| format!("{line}\n")).collect()),
            Some(kind @ ("cuda" | "cuda,clean")) if !open && source.is_none() => {
                let text = block.iter().map(|line| format!("{line}\n")).collect();
                if kind == "cuda" && !is_followed_by_finding(lines.clone()) {
                    source = Some(text);
                    continue;
                }
                let (args, config, source) = (words.collect(), config.take(), Some(text));
                examples.push(Example { args, config, before: None, source, input: None, expected: Vec::new() });
                open = kind == "cuda";
            }
            Some(kind @ ("ptxas" | "ptxas,clean" | "ptx" | "ptx,clean")) if !open => {
                let input = Some(block.iter().map(|line| format!("{line}\n")).collect());
                let (args, config, source) = (words.collect(), config.take(), source.take());
                examples.push(Example { args, config, before: before.clone(), source, input, expected: Vec::new() });
                open = !kind.ends_with(",clean");
            }
            Some("finding") if open => {
                examples.last_mut().ok_or("a finding without input")?.expected = block;
                open = false;
            }
            Some("finding") => return Err("a `finding` block does not follow a block of input".to_owned()),
            Some("ptxas" | "ptxas,clean" | "ptx" | "ptx,clean" | "cuda" | "cuda,clean") => {
                return Err("a block of input has no `finding` block".to_owned());
            }
            _ => {}
        }
    }
    if open { Err("the last block of input has no `finding` block".to_owned()) } else { Ok(examples) }
}

/// Whether the next block is what a lint says of the one before.
fn is_followed_by_finding<'a>(mut lines: impl Iterator<Item = &'a str>) -> bool {
    lines.find_map(|line| line.strip_prefix("~~~")).is_some_and(|info| info == "finding")
}

impl Example<'_> {
    /// The report of all rules in this format, files being written to `folder`; what is said beside it follows.
    pub(crate) fn report(&self, format: &str, folder: &str) -> String {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
        fs::create_dir_all(&folder).expect("a folder for the example");
        // No kernel of an example is declared in a source that lies around.
        let fixed = ["--passthrough", "none", "--source", "Cargo.toml"];
        let mut options: Vec<OsString> = fixed.iter().chain(&self.args).map(OsString::from).collect();
        let file = |name: &str, text: &str| -> OsString {
            let path = folder.join(name);
            fs::write(&path, text).expect("a file for the example");
            path.into()
        };
        match &self.config {
            Some(text) => options.extend(["--config".into(), file("example.toml", text)]),
            None => options.push("--isolated".into()),
        }
        if let Some(log) = &self.before {
            let baseline = folder.join("example.json");
            let _ = fs::remove_file(&baseline);
            options.extend(["--baseline".into(), baseline.into()]);
            let write = ["warplint", "baseline", "write", "-q"].iter().map(OsString::from);
            assert_eq!(run_with(write.chain(options.clone()).chain(["-".into()]).collect(), log), "");
        }
        let mut args: Vec<OsString> = ["warplint", "-f", format].iter().map(OsString::from).chain(options).collect();
        args.extend(self.source.as_ref().map(|text| file("example.cu", text)));
        args.extend(self.input.as_ref().map(|_| "-".into()));
        let report = run_with(args, self.input.as_deref().unwrap_or_default());
        // A message may name the file, which lies where the tests do.
        report.replace(&format!("{}/", folder.display()), "")
    }
}

/// What a run says, on both streams.
fn run_with(args: Vec<OsString>, input: &str) -> String {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    run(
        args,
        &mut Streams {
            stdin: &mut input.as_bytes(),
            stdin_is_terminal: false,
            stderr_is_terminal: false,
            stdout: &mut stdout,
            stderr: &mut stderr,
            terminal: None,
        },
    );
    String::from_utf8_lossy(&stdout).into_owned() + &String::from_utf8_lossy(&stderr)
}
