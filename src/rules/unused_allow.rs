//! `unused-allow`: a comment that silences nothing, or that cannot be understood.

use serde::Deserialize;

use super::limits::and;
use super::{Context, Group, RULES, Rule};
use crate::finding::{Finding, Hit, Label, Level, Subject};
use crate::model::{NameId, nearest, symbol};
use crate::suppress::{Remark, Scope, What};

/// The rule has no options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {}

pub(super) fn check(context: &Context<'_>, _: &Options, hits: &mut Vec<Hit>) {
    hits.extend(context.unused.iter().map(|at| Hit::remark(*at as usize)));
    // A configuration speaks for builds that this run is not.
    hits.extend(context.idle_entries.iter().map(|one| Hit::entry(one.entry).at_most(Level::Note)));
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    let Some(remark) = context.remark_of(hit) else {
        return tell_entry(context, hit).unwrap_or_else(|| Finding::new("a comment silences nothing"));
    };
    let (message, help, label) = match &remark.what {
        What::Fault(fault) => (fault.message.clone(), fault.help.clone(), "not understood"),
        What::Allow { name, .. } if !is_known(name) => {
            let message = format!("no rule or group is called `{}`, so nothing is allowed by that", shown(name));
            (message, instead(name), "not the name of a rule")
        }
        What::Allow { name, .. } => {
            let message = format!("`{}` is allowed {}, which has no such finding", shown(name), place(context, remark));
            (message, REMOVE.to_owned(), "silences nothing")
        }
        What::Block(_) => return Finding::new("a comment tells a block size"),
    };
    let (start, end) = remark.span;
    let label = Label { quote: remark.quote, lead: None, name: None, start, end, text: label.to_owned() };
    let mut finding = Finding::new(message).help(help).label(Some(label));
    finding.kernel = kernel_of(context, remark);
    let name = match &remark.what {
        What::Allow { name, .. } => Some(name.clone()),
        _ => None,
    };
    match name {
        Some(name) => finding.mark(name.clone()).fact("allowed", name),
        None => finding.mark("fault"),
    }
}

/// An entry of the configuration that allows something in vain.
fn tell_entry(context: &Context<'_>, hit: &Hit) -> Option<Finding> {
    let entry = context.entry_of(hit)?;
    let idle = context.idle_entries.iter().find(|one| Subject::Entry(narrow(one.entry)) == hit.subject)?;
    let names: Vec<String> = idle.names.iter().map(|name| format!("`{name}`")).collect();
    let (is, finding) = if names.len() == 1 { ("is", "finding") } else { ("are", "findings") };
    let glob = symbol::printable(&entry.glob);
    let message = format!("{} {is} allowed for `{glob}`, which has no such {finding}", and(&names));
    let allowed = entry.allowed?;
    let label = context.span_label(allowed.quote, allowed.span, "silences nothing");
    let finding = Finding::new(message).help(DROP).label(Some(label));
    Some(finding.mark(format!("{glob} {}", idle.names.join(" "))).fact("allowed", idle.names.join(" ")))
}

fn narrow(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

const DROP: &str = "remove it, so that it does not hide what comes later; where another build has the finding, allow \
                    `unused-allow` there";

/// The kernel that a comment speaks for.
pub(super) fn kernel_of(context: &Context<'_>, remark: &Remark) -> Option<NameId> {
    match remark.scope {
        Scope::Kernel(at) => context.report.kernels.get(at as usize)?.name,
        Scope::Family(number) => context.name_of_family(context.report.families.get(number as usize)?),
        Scope::File(_) | Scope::Line(..) | Scope::Nothing => None,
    }
}

const REMOVE: &str = "remove it, so that it does not hide what comes later; where the finding depends on options or on a log \
                      that this run was not given, allow `unused-allow` there";

/// What a comment has effect on, in words.
pub(super) fn place(context: &Context<'_>, remark: &Remark) -> String {
    match remark.scope {
        Scope::Kernel(at) => {
            let name = context.report.kernels.get(at as usize).and_then(|kernel| kernel.name);
            format!("for {}", context.called(name))
        }
        Scope::Family(number) => {
            let family = context.report.families.get(number as usize);
            format!("for {}", context.called(family.and_then(|family| context.name_of_family(family))))
        }
        Scope::Line(_, line) if line == remark.quote.place.line => "on this line".to_owned(),
        Scope::Line(_, line) => format!("for line {line}"),
        Scope::File(_) | Scope::Nothing => "in this file".to_owned(),
    }
}

fn is_known(name: &str) -> bool {
    Rule::named(name).is_some() || Group::ALL.iter().any(|group| group.name() == name)
}

pub(super) fn shown(name: &str) -> String {
    symbol::printable(&symbol::cut_middle(name, LONGEST)).into_owned()
}

/// Longest name that a message holds, in characters.
const LONGEST: usize = 60;

/// What to do about a name that no rule has.
fn instead(name: &str) -> String {
    const ELSE: &str = "`warplint rules` lists every rule";
    let cut = shown(name);
    let known = RULES.iter().map(|rule| rule.id).chain(Group::ALL.map(Group::name));
    match nearest(&cut, known) {
        Some(id) => format!("did you mean `{id}`? {ELSE}"),
        None => ELSE.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{PARTING, divergent, json, lint};

    fn ids(ptx: &str, args: &[&str]) -> Vec<String> {
        let id = |line: String| line.split(['[', ']']).nth(1).unwrap_or_default().to_owned();
        lint(ptx, args).into_iter().map(id).collect()
    }

    const ALLOW: &str = "// warplint: allow(index-divergent-branch) both sides are needed";

    #[test]
    fn a_comment_at_the_declaration_holds_for_the_kernel() {
        assert_eq!(ids(&divergent("", "", PARTING), &[]), ["index-divergent-branch"]);
        for (above, head) in [
            (format!("{ALLOW}\n"), String::new()),
            (format!("{ALLOW}\n\n\t// .globl k\n"), String::new()),
            (String::new(), format!(" {ALLOW}")),
            (String::new(), format!("\n{ALLOW}")),
            ("/* warplint: allow(divergence) */ ".to_owned(), String::new()),
        ] {
            assert!(ids(&divergent(&above, &head, PARTING), &[]).is_empty(), "{above:?} {head:?}");
        }
    }

    #[test]
    fn elsewhere_a_comment_holds_for_its_line_or_the_next_line_of_code() {
        for line in [format!("{PARTING} {ALLOW}"), format!("{ALLOW}\n// why\n\n{PARTING}")] {
            assert!(ids(&divergent("", "", &line), &[]).is_empty(), "{line}");
        }
        // Above a line that is not the branch's, and on the line before it.
        for line in [format!("{ALLOW}\n\tmov.u32 %r1, 1;\n{PARTING}"), format!("\tmov.u32 %r1, 1; {ALLOW}\n{PARTING}")]
        {
            assert_eq!(ids(&divergent("", "", &line), &[]), ["index-divergent-branch", "unused-allow"], "{line}");
        }
    }

    #[test]
    fn a_comment_may_hold_for_the_file() {
        let file = "// warplint: allow-file(index-divergent-branch)\n";
        assert!(ids(&divergent(&format!("{file}.extern .shared .b32 s[];\n"), "", PARTING), &[]).is_empty());
        assert!(ids(&(divergent("", "", PARTING) + file), &[]).is_empty());
    }

    #[test]
    fn what_is_silenced_is_counted_and_stands_in_the_report_with_its_reason() {
        let report = json(&divergent(&format!("{ALLOW}\n"), "", PARTING), &[]);
        let finding = &report["findings"][0];
        assert_eq!((&finding["status"], &finding["level"]), (&"allowed".into(), &"allow".into()));
        assert_eq!(finding["reason"], "both sides are needed");
        assert_eq!((&report["summary"]["allowed"], &report["summary"]["warnings"]), (&1.into(), &0.into()));
    }

    #[test]
    fn a_comment_that_silences_nothing_is_told_where_the_run_could_know() {
        let with = |rule: &str| divergent(&format!("// warplint: allow({rule})\n"), "", "");
        assert_eq!(
            lint(&with("index-divergent-branch"), &[]),
            ["warning[unused-allow] `index-divergent-branch` is allowed for `k`, which has no such finding"]
        );
        assert_eq!(ids(&with("divergent-switch, index-divergent-loop"), &[]), ["unused-allow", "unused-allow"]);
        // Rules that need a log, that are off, and kernels that are left out.
        assert!(ids(&with("register-spill, occupancy, data-divergent-branch"), &[]).is_empty());
        assert_eq!(ids(&with("divergent-switch"), &["--allow", "divergent-switch"]), ["unused-allow"]);
        let two = with("divergent-switch") + "\n.visible .entry other()\n{\n\tret;\n}\n";
        assert!(ids(&two, &["--kernel", "other"]).is_empty());
        assert!(ids(&with("divergent-switch, unused-allow"), &[]).is_empty());
    }

    #[test]
    fn an_unknown_rule_and_broken_words_are_told_at_their_place() {
        let with = |comment: &str| {
            let report = json(&divergent(&format!("// warplint: {comment}\n"), "", ""), &[]);
            let finding = &report["findings"][0];
            let text = |key: &str| finding[key].as_str().unwrap_or_default().to_owned();
            assert_eq!((&finding["rule"], &finding["location"]["line"]), (&"unused-allow".into(), &4.into()));
            (text("message"), text("help"), finding["location"]["column"].as_u64().unwrap_or_default())
        };
        let (message, help, column) = with("allow(index-divergent-brunch)");
        assert_eq!(message, "no rule or group is called `index-divergent-brunch`, so nothing is allowed by that");
        assert!(help.starts_with("did you mean `index-divergent-branch`? "), "{help}");
        assert_eq!(column, 20);
        assert_eq!(with("allow index-divergent-branch").0, "the rules that this comment allows are not in brackets");
        assert_eq!(with("block=0").0, "a block of 0 has no threads; every dimension is at least 1");
    }

    #[test]
    fn a_block_size_in_a_comment_comes_first_and_stands_at_a_kernel() {
        let ptx = divergent("// warplint: block=16x16\n", " .reqntid 128, 1, 1", PARTING);
        let launch = &json(&ptx, &["--block", "64"])["kernels"][0]["launch"];
        assert_eq!((&launch["block"], &launch["block_source"]), (&[16, 16, 1][..].into(), &"comment".into()));
        let stray = divergent("", "", "\t// warplint: block=32");
        assert_eq!(lint(&stray, &[]), ["warning[unused-allow] this block size stands at no kernel, so it is nobody's"]);
        let twice = divergent("// warplint: block=32\n// warplint: block=64\n", "", "");
        assert_eq!(lint(&twice, &[]), ["warning[unused-allow] a block of 64 is told here, and one of 32 before"]);
    }
}
