//! The book in `docs/` is true: its transcripts are what the program prints, its commands are commands, its configurations are
//! read, its recipes name what there is, and every rule has its page in it.
//!
//! `SNAPSHOTS=overwrite cargo test --test docs` writes transcripts, pages of rules and the list of them.
#![allow(clippy::unwrap_used, reason = "a broken book should stop the test where it is broken")]

#[path = "common/transcripts.rs"]
mod transcripts;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::error::ErrorKind;
use clap::{CommandFactory, ValueEnum as _};
use serde_json::Value;
use snapbox::IntoData as _;
use warplint::cli::Cli;
use warplint::rules::{RULES, Rule};

fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn book() -> PathBuf {
    package().join("docs/src")
}

/// The chapters, by name, without the pages of rules.
fn chapters() -> Vec<(String, String)> {
    let files = fs::read_dir(book()).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<(String, String)> = files
        .filter(|path| path.extension().is_some_and(|end| end == "md") && !path.ends_with("SUMMARY.md"))
        .map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(&path).unwrap()))
        .collect();
    found.sort();
    assert!(found.len() > 8);
    found
}

/// Compares a file with what it should be, or makes it so.
fn is_or_becomes(path: &Path, wanted: &str) {
    let is = fs::read_to_string(path).unwrap_or_default();
    if std::env::var_os("SNAPSHOTS").is_some_and(|value| value == "overwrite") {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, wanted).unwrap();
        return;
    }
    snapbox::assert_data_eq!(wanted, is.raw());
}

/// The blocks of a text: the line before, the info string, the lines.
fn blocks(text: &str) -> Vec<(&str, &str, Vec<&str>)> {
    let mut found = Vec::new();
    let mut before = "";
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(info) = line.strip_prefix("```") {
            found.push((before, info, lines.by_ref().take_while(|line| *line != "```").collect()));
        }
        before = line;
    }
    found
}

// One of them runs `cat`.
#[cfg(unix)]
#[test]
fn transcripts_are_what_the_program_prints() {
    std::env::set_current_dir(package()).unwrap();
    for (name, text) in chapters() {
        is_or_becomes(&book().join(&name), &transcripts::remade(&text, package(), "rules/"));
        for (before, info, lines) in blocks(&text) {
            // `tests/walk_through.rs` runs those of the chapters that change files.
            let is_walked = ["walk-through.md", "baseline.md"].contains(&name.as_str()) && before == "<!-- walk -->";
            let is_marked = is_walked || before == "<!-- run -->" || before.starts_with("<!-- stdin: ");
            assert_eq!(info == "console", is_marked, "{name}: {lines:?} is a transcript and marked as one, or neither");
        }
    }
}

#[test]
fn every_command_is_one_that_is_understood() {
    let readme = ("README.md".to_owned(), fs::read_to_string(package().join("README.md")).unwrap());
    let mut count = 0;
    for (name, text) in chapters().into_iter().chain([readme]) {
        let blocks = blocks(&text);
        let of_blocks = blocks.iter().filter(|(_, info, _)| ["sh", "console", "yaml"].contains(info));
        let inline =
            text.split('`').skip(1).step_by(2).filter(|code| code.starts_with("warplint ") && !code.contains('…'));
        let lines = of_blocks.flat_map(|(_, _, lines)| lines.iter().copied()).chain(inline);
        for command in lines.flat_map(commands_of) {
            let words = words_of(&command);
            // Prose about a command has words that stand for something, or the name alone.
            if words.iter().any(|word| word.chars().all(char::is_uppercase)) {
                continue;
            }
            if let Err(error) = Cli::command().try_get_matches_from(&words) {
                let is_name = words.len() == 2 && error.kind() == ErrorKind::MissingRequiredArgument;
                assert!(is_name || !error.use_stderr(), "{name}: {command}\n{error}");
            }
            count += 1;
        }
    }
    assert!(count > 40, "{count} commands were found");
}

/// What of a line of a shell is a command of warplint.
fn commands_of(line: &str) -> Vec<String> {
    let line = line.trim().trim_start_matches("- ").trim_start_matches("$ ");
    let code = line.split(" #").next().unwrap_or_default();
    let parts = code.split(['|', ';']).flat_map(|part| part.split(" && ")).map(str::trim);
    let parts = parts.map(|part| part.trim_start_matches("CLICOLOR_FORCE=1 "));
    parts.filter(|part| *part == "warplint" || part.starts_with("warplint ")).map(str::to_owned).collect()
}

/// The words of a command, without redirections; quotes keep them together.
fn words_of(command: &str) -> Vec<String> {
    let command = command.split(" >").next().unwrap_or_default();
    let quoted = command.split(['\'', '"']).enumerate();
    let mut words: Vec<String> = Vec::new();
    let mut glued = false;
    for (at, part) in quoted {
        if at % 2 == 1 {
            match words.last_mut().filter(|_| glued) {
                Some(word) => word.push_str(part),
                None => words.push(part.to_owned()),
            }
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
        glued = at % 2 == 0 && !part.ends_with(' ');
    }
    words
}

#[test]
fn every_configuration_is_read_and_every_wrong_one_refused() {
    // What the configurations name is there.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("docs");
    for source in ["src", "include"] {
        fs::create_dir_all(folder.join(source)).unwrap();
        fs::write(folder.join(source).join("kernel.cu"), "").unwrap();
    }
    let file = folder.join("docs.toml");
    let mut count = 0;
    for (name, text) in chapters() {
        for (_, info, lines) in blocks(&text).into_iter().filter(|(_, info, _)| info.starts_with("toml")) {
            fs::write(&file, lines.join("\n")).unwrap();
            let mut command = Command::new(env!("CARGO_BIN_EXE_warplint"));
            let output = command.arg("--show-config").arg("--config").arg(&file).output().unwrap();
            let wanted = if info == "toml,wrong" { 2 } else { 0 };
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(wanted), "{name}: {lines:?}: {said}");
            count += 1;
        }
    }
    assert!(count >= 2);
}

#[test]
fn every_key_of_a_configuration_is_in_its_chapter() {
    let path = book().join("configuration.md");
    let mut text = fs::read_to_string(&path).unwrap();
    let schema = warplint::config::schema();
    for (mark, keys) in [
        ("<!-- keys -->\n", &schema["properties"]),
        ("<!-- keys of kernels -->\n", &schema["properties"]["kernel"]["items"]["properties"]),
    ] {
        let rows = keys.as_object().unwrap().iter().map(|(name, key)| {
            let about = key["description"].as_str().unwrap();
            format!("| `{name}` | {} |\n", about.replace('|', "\\|"))
        });
        let table = format!("| key | what it says |\n| --- | --- |\n{}", rows.collect::<String>());
        let (head, rest) = text.split_once(mark).unwrap_or_else(|| panic!("no {mark}"));
        let after: String =
            rest.lines().skip_while(|line| line.starts_with('|')).map(|line| format!("{line}\n")).collect();
        text = format!("{head}{mark}{table}{after}");
    }
    is_or_becomes(&path, &text);
    // Some chapter sets each of them.
    let told = text.split_once("```toml\n").unwrap().1.split("```").next().unwrap();
    for key in schema["properties"].as_object().unwrap().keys() {
        let is_set = [format!("\n{key} = "), format!("[{key}]"), format!("[[{key}]]")];
        assert!(is_set.iter().any(|set| format!("\n{told}").contains(set)), "the example lacks {key}");
    }
}

#[test]
fn every_rule_has_its_page_and_its_line_in_the_list() {
    let folder = book().join("rules");
    for rule in RULES {
        is_or_becomes(&folder.join(format!("{}.md", rule.id)), &page_of(rule));
    }
    let wanted: BTreeSet<String> = RULES.iter().map(|rule| format!("{}.md", rule.id)).collect();
    let files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(files.collect::<BTreeSet<String>>(), wanted);

    let path = book().join("SUMMARY.md");
    let summary = fs::read_to_string(&path).unwrap();
    let (head, _) = summary.split_once("- [Rules](rules.md)\n").expect("the list of rules");
    let rules: String = RULES.iter().map(|rule| format!("  - [{0}](rules/{0}.md)\n", rule.id)).collect();
    is_or_becomes(&path, &format!("{head}- [Rules](rules.md)\n{rules}"));
    for (name, _) in chapters() {
        assert!(summary.contains(&format!("]({name})")), "{name} is in no list");
    }
}

/// A page that shows what stands in the head of a rule's page, and takes in the rest of it.
fn page_of(rule: &Rule) -> String {
    let page = rule.page();
    let (level, basis, group) = (page.level.name(), page.basis.name(), page.group.name());
    let mut text = format!("# {}\n\n{}.\n\n", rule.id, page.summary);
    text += &format!("Level `{level}` · {basis} · group `{group}` · since {}\n\n", page.since);
    if !page.options.is_empty() {
        text += "| option | default | what it does |\n| --- | --- | --- |\n";
        for (name, setting) in &page.options {
            text += &format!("| `{name}` | `{}` | {} |\n", setting.default, setting.about);
        }
        text.push('\n');
    }
    let whole = fs::read_to_string(package().join(format!("rules/{}.md", rule.id))).unwrap();
    let first = whole.lines().position(|line| line.starts_with("## ")).expect("a heading") + 1;
    text + &format!("{{{{#include ../../../rules/{}.md:{first}:}}}}\n", rule.id)
}

#[test]
fn links_lead_somewhere() {
    for (name, text) in chapters() {
        for link in text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            if file.starts_with("http") {
                continue;
            }
            let target = fs::read_to_string(book().join(if file.is_empty() { &name } else { file }));
            let target = target.unwrap_or_else(|_| panic!("{name}: {link} leads nowhere"));
            let headings = target.lines().filter_map(|line| line.strip_prefix("## "));
            let is_there = heading.is_empty()
                || headings.map(|words| words.to_lowercase().replace(' ', "-")).any(|words| words == heading);
            assert!(is_there, "{name}: {link} leads nowhere");
        }
    }
}

#[test]
fn recipes_name_hooks_and_inputs_that_there_are() {
    let text = fs::read_to_string(book().join("ci.md")).unwrap();
    let block = |mark: &str| blocks(&text).into_iter().find(|(before, ..)| *before == mark).unwrap().2;
    let action = fs::read_to_string(package().join("action.yml")).unwrap();
    let known = action.split("\ninputs:\n").nth(1).unwrap().split("\noutputs:\n").next().unwrap();
    let lines = block("<!-- action -->");
    let uses = lines.iter().position(|line| line.contains("uses: OWNER/warplint@")).unwrap();
    let with = lines[uses..].iter().position(|line| line.trim() == "with:").unwrap() + uses + 1;
    let inputs: Vec<&str> = lines[with..]
        .iter()
        .take_while(|line| line.starts_with("      "))
        .filter(|line| !line.starts_with("       "))
        .filter_map(|line| line.trim().split_once(':').map(|(input, _)| input))
        .collect();
    assert_eq!(inputs, ["paths", "args"]);
    for input in inputs {
        assert!(known.contains(&format!("\n  {input}:\n")) || known.starts_with(&format!("  {input}:\n")), "{input}");
    }
    let outputs = action.split("\noutputs:\n").nth(1).unwrap();
    for output in text.split("steps.warplint.outputs.").skip(1).map(|rest| rest.split(' ').next().unwrap()) {
        assert!(outputs.contains(&format!("  {output}:\n")), "{output}");
    }
    let hooks = fs::read_to_string(package().join(".pre-commit-hooks.yaml")).unwrap();
    let id = block("<!-- pre-commit -->").iter().find_map(|line| line.trim().strip_prefix("- id: ")).unwrap();
    for id in [id.split_whitespace().next().unwrap(), "warplint-wheel", "warplint-system"] {
        assert!(hooks.lines().any(|line| line == format!("- id: {id}")), "{id}");
        assert!(text.contains(id), "{id}");
    }
}

/// Every key of a JSON report as the chapter on it writes it, as far as `prefixes` of objects are told.
fn keys_of(value: &Value, prefix: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
                let is_open = ["facts", "constant_bytes", "limits"].contains(&key.as_str());
                match value {
                    Value::Object(_) if !is_open => keys_of(value, &path, found),
                    Value::Array(items) if items.iter().any(Value::is_object) => {
                        items.iter().for_each(|item| keys_of(item, &format!("{path}[]"), found));
                    }
                    // What is empty or null here may be more elsewhere.
                    Value::Array(items) if items.is_empty() => drop(found.insert(format!("{path}?"))),
                    Value::Null => drop(found.insert(format!("{path}?"))),
                    _ => drop(found.insert(path)),
                }
            }
        }
        _ => drop(found.insert(prefix.to_owned())),
    }
}

#[test]
fn other_commands_print_the_lists_that_the_chapter_on_json_names() {
    let text = fs::read_to_string(book().join("json.md")).unwrap();
    let log = "fixtures/ptxas/13.5/tile-in-one-folder/input.log";
    let changed = "fixtures/ptxas/13.5/tile-one-register-more/input.log";
    for (list, args) in [
        ("kernels", vec!["kernels", log]),
        ("branches", vec!["branches", "fixtures/ptx/13.5/parity-branch/input.ptx"]),
        ("changes", vec!["diff", log, changed]),
        ("occupancy", vec!["occupancy", "--gpu", "a100", "--block", "256", "--registers", "40"]),
        ("launch", vec!["launch", "--gpu", "a100", "--block", "256", "--grid", "40"]),
        ("gpus", vec!["gpus"]),
        ("rules", vec!["rules"]),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_warplint"));
        let output = command.current_dir(package()).args(&args).args(["-f", "json"]).output().unwrap();
        let object: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(object["version"], 1, "{args:?}");
        let first = &object[list][0];
        assert!(first.is_object(), "{list} of {args:?}");
        let line = text.lines().find(|line| line.starts_with(&format!("- `{list}` of `warplint {}`: ", args[0])));
        let keys = line.unwrap_or_else(|| panic!("no line of {list}")).split('`').skip(5).step_by(2);
        for key in keys {
            assert!(
                !first[key].is_null() || !object[key].is_null() || object.to_string().contains(key),
                "{list}: {key}"
            );
        }
    }
}

#[test]
fn a_build_is_told_which_reports_have_standard_output_to_themselves() {
    let help = Cli::command().find_subcommand("run").unwrap().get_after_help().unwrap().to_string();
    let told = help.split_once("one document (").unwrap().1.split(')').next().unwrap().to_owned();
    let formats = warplint::report::Format::value_variants().iter().map(|one| one.to_possible_value().unwrap());
    let names: Vec<String> = formats.map(|one| one.get_name().to_owned()).collect();
    let lines = ["human", "short", "github"];
    let documents: Vec<&str> = names.iter().map(String::as_str).filter(|name| !lines.contains(name)).collect();
    assert_eq!(told, documents.join(", "));
    let chapter = fs::read_to_string(book().join("run.md")).unwrap();
    let told = chapter.split_once("one document (").unwrap().1.split(')').next().unwrap().replace(['`', '\n'], " ");
    assert_eq!(told.split([',', ' ']).filter(|word| !word.is_empty()).collect::<Vec<_>>(), documents);
    // And so says the option itself.
    let lint = Cli::command();
    let option = lint.get_arguments().find(|arg| arg.get_id() == "format").unwrap().get_help().unwrap().to_string();
    assert_eq!(option, format!("Report format: {}", names.join(", ")));
}

#[test]
fn the_keys_of_the_json_report_are_those_of_its_chapter() {
    let mut printed = BTreeSet::new();
    for inputs in [
        &["fixtures/ptxas/13.5/spill-sm90/input.log", "--block", "256"][..],
        &["fixtures/ptx/13.5/parity-branch/input.ptx"],
        &["fixtures/hooks/block33.cu", "--gpu", "h100-sxm5"],
        &["fixtures/ptxas/13.5/interleaved-four-processes/input.log"],
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_warplint"));
        let output = command.current_dir(package()).args(["--isolated", "-f", "json"]).args(inputs).output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        keys_of(&report, "", &mut printed);
    }
    let text = fs::read_to_string(book().join("json.md")).unwrap();
    let mut told = BTreeSet::new();
    let mut section = String::new();
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            section = format!("{}.", heading.trim_matches('`'));
        }
        let Some(first) = line.strip_prefix("| `").and_then(|rest| rest.split(" | ").next()) else { continue };
        told.extend(format!("`{first}").split('`').skip(1).step_by(2).map(|key| format!("{section}{key}")));
    }
    // Lists and objects that a section is about, or that are told key by key.
    let is_told = |key: &str| {
        let key = key.trim_end_matches('?');
        let below = |one: &String| one.strip_prefix(key).is_some_and(|rest| rest.starts_with(['.', '[']));
        told.contains(key) || told.iter().any(below)
    };
    let untold: Vec<&String> = printed.iter().filter(|key| !is_told(key)).collect();
    assert!(untold.is_empty(), "not told: {untold:?}");
    let is_printed = |key: &String| {
        let key = key.trim_end_matches("[]");
        printed.iter().any(|one| {
            let one = one.trim_end_matches('?');
            one == key || one.strip_prefix(key).is_some_and(|rest| rest.starts_with(['.', '[']))
        })
    };
    let wrong: Vec<&String> = told.iter().filter(|key| !is_printed(key)).collect();
    assert!(wrong.is_empty(), "told and not printed: {wrong:?}");
}
