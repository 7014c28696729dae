//! The README is true: every transcript in it is what the program prints, and its rule table is what the pages say.
//!
//! `SNAPSHOTS=overwrite cargo test --test readme` writes them.
#![allow(clippy::unwrap_used, reason = "a broken README should stop the test where it is broken")]

use std::fmt::Write as _;
use std::path::Path;

use warplint::outcome::Outcome;
use warplint::rules::{Group, RULES};
use warplint::run::{Streams, Terminal, run};

/// What a person sees in a terminal of 100 columns, without the colours.
fn transcript(command: &str, stdin: &str) -> (String, Outcome) {
    let words = command.rsplit("| ").next().unwrap().split_whitespace();
    let mut args: Vec<_> = words.map(Into::into).collect();
    if args.len() == 1 || args[1] != "occupancy" {
        args.extend(["--color".into(), "never".into()]);
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
    assert_eq!(String::from_utf8(stderr).unwrap(), "", "{command}");
    (without_escapes(&String::from_utf8(stdout).unwrap()), outcome)
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

fn rule_table() -> String {
    let mut table = String::from("| rule | level | says |\n| --- | --- | --- |\n");
    let pages: Vec<_> = RULES.iter().map(|rule| (rule.id, rule.page())).collect();
    for group in Group::ALL {
        for (id, page) in pages.iter().filter(|(_, page)| page.group == group) {
            writeln!(table, "| [`{id}`](rules/{id}.md) | {} | {} |", page.level.name(), page.summary).unwrap();
        }
    }
    table
}

/// The README with every generated part made anew.
fn remade(readme: &str, root: &Path) -> String {
    let mut out = String::new();
    let mut lines = readme.lines().peekable();
    while let Some(line) = lines.next() {
        out.push_str(line);
        out.push('\n');
        if line == "<!-- rules -->" {
            while lines.peek().is_some_and(|line| line.starts_with('|')) {
                lines.next();
            }
            out.push_str(&rule_table());
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

#[test]
fn the_readme_shows_what_the_program_prints() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    std::env::set_current_dir(root).unwrap();
    let path = root.join("README.md");
    let readme = std::fs::read_to_string(&path).unwrap();
    let remade = remade(&readme, root);
    if std::env::var_os("SNAPSHOTS").is_some_and(|value| value == "overwrite") {
        std::fs::write(&path, &remade).unwrap();
    }
    snapbox::assert_data_eq!(remade, readme);
}
