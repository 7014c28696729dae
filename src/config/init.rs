//! The file that `init` writes: every key and every rule at its default, each commented out.

use std::fmt::Write as _;

use super::keys::{self, Key};
use super::show::rule_value;
use crate::rules::{Group, Page, RULES, Rule};

const HEAD: &str = "\
# What this project says of its GPUs, its rules and its kernels; paths begin at the folder of this file.
#
# A `#` with a blank behind it begins a sentence, and one without comments out a key: take it away to set the key. What
# stands here is the default. `warplint --show-config` prints what is in force, `warplint explain RULE` the page of a rule.
# For editors that know JSON Schema: `warplint init --schema -o warplint.schema.json`, and the line
# `#:schema ./warplint.schema.json` at the top of this file.
";

/// The text of the file.
#[must_use]
pub fn template() -> String {
    let mut out = HEAD.to_owned();
    for key in keys::TOP.iter().filter(|key| !key.shown.is_empty()) {
        let _ = write!(out, "\n# {}\n#{} = {}\n", key.about, key.name, key.shown);
    }
    out.push_str("\n# Levels are allow, note, warn and deny. A group sets those of all its rules, and a rule alone beats its group.\n");
    out.push_str("[rules]\n");
    for group in Group::ALL {
        put_group(&mut out, group);
    }
    let about = keys::TOP.iter().find(|key| key.name == "kernel").map_or("", |key| key.about);
    let _ = write!(
        out,
        "\n# {about}: one entry for each\n# name, as many as there are. These are examples.\n#[[kernel]]\n"
    );
    let width = keys::KERNEL.iter().map(|key| assignment(key).len()).max().unwrap_or_default();
    for key in keys::KERNEL {
        let _ = writeln!(out, "#{:width$}  # {}", assignment(key), key.about);
    }
    out
}

fn assignment(key: &Key) -> String {
    format!("{} = {}", key.name, key.shown)
}

fn put_group(out: &mut String, group: Group) {
    let pages = RULES.iter().map(|rule| (rule, rule.page()));
    let rules: Vec<(&Rule, Page)> = pages.filter(|(_, page)| page.group == group).collect();
    if rules.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n# The group `{}`", group.name());
    for (rule, page) in rules {
        let _ = writeln!(out, "# {}", page.summary);
        for (name, setting) in &page.options {
            let _ = writeln!(out, "#   {name}: {}", setting.about);
        }
        let _ = writeln!(out, "#{} = {}", rule.id, rule_value(Some(page.level), &page.defaults()));
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::{Config, read, show};

    fn read_as(text: &str) -> Config {
        match read("warplint.toml", Path::new(""), text.as_bytes()) {
            Ok(config) => config,
            Err(error) => panic!("{error:?}\n{text}"),
        }
    }

    /// The keys that are commented out, without the sign, in order.
    fn keys(text: &str) -> Vec<&str> {
        text.lines()
            .filter_map(|line| line.strip_prefix('#'))
            .filter(|line| !line.is_empty() && !line.starts_with(' '))
            .collect()
    }

    #[test]
    fn the_file_as_it_is_written_changes_nothing() {
        assert_eq!(show(&read_as(&template())), show(&Config::default()));
    }

    #[test]
    fn each_key_that_is_commented_out_is_one() {
        let text = template();
        let commented = keys(&text);
        let at = commented.iter().position(|line| *line == "[[kernel]]").expect("entries");
        let (plain, entry) = commented.split_at(at);
        for line in plain {
            read_as(&text.replacen(&format!("\n#{line}\n"), &format!("\n{line}\n"), 1));
        }
        for line in &entry[1..] {
            let name = if line.starts_with("name ") { "" } else { "name = \"k\"\n" };
            read_as(&format!("[[kernel]]\n{name}{line}\n"));
        }
        assert_eq!(entry.len(), 1 + keys::KERNEL.len());
        assert_eq!(plain.len(), keys::TOP.len() - 2 + RULES.len());
    }

    #[test]
    fn all_keys_together_are_a_configuration_that_says_the_defaults() {
        let whole: String = template()
            .lines()
            .map(|line| {
                let is_key = line.starts_with('#') && line.len() > 1 && !line.starts_with("# ");
                format!("{}\n", if is_key { &line[1..] } else { line })
            })
            .collect();
        let config = read_as(&whole);
        assert!(config.excluded().1.is_empty() && config.sources().is_empty() && config.gpus.is_empty());
        for rule in RULES {
            let page = rule.page();
            assert_eq!(
                config.settings.level(rule, page.group).map(|(level, _)| level),
                Some(page.level),
                "{}",
                rule.id
            );
            assert_eq!(config.settings.options(rule, page.defaults()), page.defaults(), "{}", rule.id);
        }
    }

    #[test]
    fn no_line_is_wider_than_an_editor() {
        for line in template().lines() {
            assert!(line.chars().count() <= 150, "{line}");
        }
    }
}
