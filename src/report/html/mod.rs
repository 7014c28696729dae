//! A report to look at: one file with a table of kernels, their occupancy curves, findings and branches.
//!
//! The page is fixed text; what was found goes into it as data, which its script shows. Nothing of an input becomes markup:
//! the data lies in a block that browsers do not read as HTML or as a program, and the script writes it as text only. Curves
//! are computed here, exactly, as the few values at which they change, and drawn there: a picture for every kernel would make
//! the file many times larger. The page loads nothing, and its own policy forbids it to.

mod curves;
mod kernel;
mod wire;

use std::io::{self, Write};

use hashbrown::HashMap;
use serde::Serialize;

use super::also::{self, also};
use super::summary::summary;
use crate::finding::Level;
use crate::model::{NameId, symbol};
use crate::settle::Verdict;

use curves::Curves;
use kernel::kernel;
use wire::{About, Head, branch, finding, gpu, head};

/// Kernels in one page at most: a browser sorts these at once. More are counted.
const MOST_KERNELS: usize = 50_000;
/// Findings in one page at most, the worst first. More are counted.
const MOST_FINDINGS: usize = 20_000;
/// Branches in one page at most. More are counted.
const MOST_BRANCHES: usize = 20_000;

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// What stands in the page where the parts go.
const PARTS: [&str; 4] = ["{{style}}", "{{summary}}", "{{data}}", "{{script}}"];

pub(super) fn render(verdict: &Verdict<'_>, out: &mut dyn Write) -> io::Result<()> {
    let head = head(verdict, MOST_KERNELS, MOST_FINDINGS, MOST_BRANCHES);
    let mut page = PAGE;
    for part in PARTS {
        let Some((before, after)) = page.split_once(part) else { continue };
        out.write_all(before.as_bytes())?;
        match part {
            "{{style}}" => out.write_all(STYLE.as_bytes())?,
            "{{summary}}" => {
                let (kernels, rest) = summary(verdict);
                out.write_all(escaped(&(kernels + &rest)).as_bytes())?;
            }
            "{{data}}" => data(verdict, &head, &mut Inert(out))?,
            _ => out.write_all(SCRIPT.as_bytes())?,
        }
        page = after;
    }
    out.write_all(page.as_bytes())
}

fn data(verdict: &Verdict<'_>, head: &Head<'_>, out: &mut dyn Write) -> io::Result<()> {
    let context = &verdict.context;
    write!(out, "{{\"head\":")?;
    serde_json::to_writer(&mut *out, head)?;
    list(out, "gpus", context.numbers.gpus.iter().map(gpu))?;
    let mut curves = Curves::default();
    let kernels = context.report.kernels.iter().enumerate().take(MOST_KERNELS);
    list(out, "kernels", kernels.clone().map(|(at, one)| kernel(context, at, one, &mut curves)))?;
    list(out, "points", curves.points.iter())?;
    list(out, "curves", curves.all.iter())?;
    let mut of_name: HashMap<NameId, Vec<usize>> = HashMap::new();
    for (at, one) in kernels {
        if let Some(name) = one.name {
            of_name.entry(name).or_default().push(at);
        }
    }
    let about = About { of_name, kernels: MOST_KERNELS.min(context.report.kernels.len()) };
    findings(verdict, &about, out)?;
    let branches = context.branches().take(MOST_BRANCHES);
    list(out, "branches", branches.map(|(_, found)| branch(context, &found, &about)))?;
    write!(out, "}}")
}

/// All findings, group by group, so that the page need not know what one cause is; those that are allowed last.
fn findings(verdict: &Verdict<'_>, about: &About, out: &mut dyn Write) -> io::Result<()> {
    let mut budget = also::MOST;
    let groups = verdict.groups().iter().enumerate().flat_map(|(number, group)| {
        let lead = &verdict.settled[group.lead];
        let said = also(verdict, group, &verdict.finding(lead), &mut budget);
        let others = verdict.others(group).map(move |one| (one, None));
        std::iter::once((lead, said)).chain(others).map(move |(one, also)| (one, Some(number), also))
    });
    let allowed = verdict.allowed.iter().map(|one| (one, None, None));
    let all = groups.chain(allowed).take(MOST_FINDINGS);
    list(out, "findings", all.map(|(one, group, also)| finding(verdict, one, group, also, about)))
}

/// `,"key":[…]`
fn list<T: Serialize>(out: &mut dyn Write, key: &str, items: impl Iterator<Item = T>) -> io::Result<()> {
    write!(out, ",\n\"{key}\":[")?;
    for (at, item) in items.enumerate() {
        out.write_all(if at == 0 { b"\n" } else { b",\n" })?;
        serde_json::to_writer(&mut *out, &item)?;
    }
    out.write_all(b"]")
}

/// Writes JSON in which no `<` stands, so that nothing in it can end the block that it is in. `<` occurs in strings of JSON
/// alone.
struct Inert<'w>(&'w mut dyn Write);

impl Write for Inert<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut rest = bytes;
        while let Some(at) = memchr::memchr(b'<', rest) {
            self.0.write_all(&rest[..at])?;
            self.0.write_all(b"\\u003c")?;
            rest = &rest[at + 1..];
        }
        self.0.write_all(rest)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in symbol::printable(text).chars() {
        match character {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            other => out.push(other),
        }
    }
    out
}

/// How loud findings of `level` are, in the words of reports.
fn word(level: Level) -> &'static str {
    match level {
        Level::Deny => "error",
        Level::Warn => "warning",
        Level::Note => "note",
        Level::Allow => "allowed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_the_data_ends_its_block() {
        let mut out = Vec::new();
        serde_json::to_writer(&mut Inert(&mut out), &["</script><script>", "<!--", "a\\<"]).expect("a vector");
        let text = String::from_utf8(out).expect("text");
        assert!(!text.contains('<'), "{text}");
        let back: Vec<String> = serde_json::from_str(&text).expect("JSON");
        assert_eq!(back, ["</script><script>", "<!--", "a\\<"]);
    }

    #[test]
    fn the_page_has_each_part_once_and_in_order() {
        let places: Vec<usize> = PARTS.iter().map(|part| PAGE.find(part).expect("the part")).collect();
        assert!(places.is_sorted());
        assert!(PARTS.iter().all(|part| PAGE.matches(part).count() == 1));
        assert!(PARTS.iter().all(|part| !STYLE.contains(part) && !SCRIPT.contains(part)));
    }

    #[test]
    fn the_script_writes_text_and_never_markup() {
        for way in
            ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "fetch(", "XMLHttpRequest"]
        {
            assert!(!SCRIPT.contains(way), "{way}");
        }
    }
}
