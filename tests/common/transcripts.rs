//! Text with transcripts, made anew: what stands below a marked command is what the program prints.
//!
//! `<!-- run -->` marks a transcript, `<!-- stdin: FILE -->` one that gets a file piped in, and `<!-- rules -->` the table of
//! rules.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;

use warplint::outcome::Outcome;
use warplint::rules::{Group, RULES};
use warplint::run::{Streams, Terminal, run};

/// What a person sees in a terminal of 100 columns, without the colours, where nothing goes wrong.
fn transcript(command: &str, stdin: &str) -> (String, Outcome) {
    let (stdout, stderr, outcome) = printed(command, stdin);
    assert_eq!(stderr, "", "{command}");
    (stdout, outcome)
}

/// What goes to standard output and to standard error in a terminal of 100 columns, without the colours.
pub(crate) fn printed(command: &str, stdin: &str) -> (String, String, Outcome) {
    let words = command.rsplit("| ").next().unwrap().split_whitespace();
    let mut args: Vec<OsString> = words.map(Into::into).collect();
    let is_colourless = |command: &str| ["occupancy", "gpus", "launch", "man", "completions"].contains(&command);
    if args.get(1).is_none_or(|first| !first.to_str().is_some_and(is_colourless)) {
        // Before what a build is run with.
        let at = args.iter().position(|arg| arg == "--").unwrap_or(args.len());
        args.splice(at..at, ["--color".into(), "never".into()]);
    }
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let outcome = run(
        args,
        &mut Streams {
            stdin: &mut stdin.as_bytes(),
            stdin_is_terminal: false,
            stderr_is_terminal: false,
            stdout: &mut stdout,
            stderr: &mut stderr,
            terminal: Some(Terminal { width: 100, unicode: true }),
        },
    );
    let text = |bytes| without_escapes(&String::from_utf8(bytes).unwrap());
    (text(stdout), text(stderr), outcome)
}

fn without_escapes(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("\u{1b}[") {
        plain.push_str(&rest[..at]);
        let end = rest[at..].find('m').unwrap();
        rest = &rest[at + end + 1..];
    }
    plain + rest
}

fn rule_table(pages_in: &str) -> String {
    let mut table = String::from("| rule | level | says |\n| --- | --- | --- |\n");
    let pages: Vec<_> = RULES.iter().map(|rule| (rule.id, rule.page())).collect();
    for group in Group::ALL {
        for (id, page) in pages.iter().filter(|(_, page)| page.group == group) {
            writeln!(table, "| [`{id}`]({pages_in}{id}.md) | {} | {} |", page.level.name(), page.summary).unwrap();
        }
    }
    table
}

/// `text` with every generated part made anew. The pages of rules are in the folder `pages_in`, as its links have it.
pub(crate) fn remade(text: &str, root: &Path, pages_in: &str) -> String {
    let mut out = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        out.push_str(line);
        out.push('\n');
        if line == "<!-- rules -->" {
            while lines.peek().is_some_and(|line| line.starts_with('|')) {
                lines.next();
            }
            out.push_str(&rule_table(pages_in));
            continue;
        }
        let stdin = line.strip_prefix("<!-- stdin: ").and_then(|rest| rest.strip_suffix(" -->"));
        if stdin.is_none() && line != "<!-- run -->" {
            continue;
        }
        let fence = lines.next().unwrap();
        let command = lines.next().unwrap();
        assert_eq!(fence, "```console");
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let log = stdin.map(|path| std::fs::read_to_string(root.join(path)).unwrap()).unwrap_or_default();
        let (printed, outcome) = transcript(command.strip_prefix("$ ").unwrap(), &log);
        writeln!(out, "{fence}\n{command}\n{}", printed.trim_end()).unwrap();
        if block.contains(&"$ echo $?") {
            writeln!(out, "$ echo $?\n{}", outcome.status()).unwrap();
        }
        out.push_str("```\n");
    }
    out
}
