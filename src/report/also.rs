//! What a group of findings holds besides the one that is shown: where else, and with which figures.

use hashbrown::HashMap;

use super::excerpt;
use crate::finding::{Fact, Finding, Label};
use crate::model::{Bytes, base, percent, symbol};
use crate::settle::{CauseGroup, Verdict};

/// Labels that are named; more are counted.
const NAMED: usize = 3;

/// Findings of groups that are put into words for one report, beyond those that are shown; past it they are counted.
pub(super) const MOST: usize = 5_000;

/// The others of a group in words, as `` `pressure<24>` on sm_86 (16 B) `` or `23 more instances, 16 to 864 B`; `budget`
/// is what is left of [`MOST`]. Nothing where there are no others.
pub(super) fn also(verdict: &Verdict<'_>, group: &CauseGroup, lead: &Finding, budget: &mut usize) -> Option<String> {
    let count = group.others;
    if count == 0 {
        return None;
    }
    if count > *budget {
        return Some(format!("{count} more, with figures of their own"));
    }
    *budget -= count;
    let others: Vec<Finding> = verdict.others(group).map(|one| verdict.finding(one)).collect();
    let told = Told::new(lead, &others);
    let mut labels: Vec<(String, Vec<&Finding>)> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    for other in &others {
        let label = difference(verdict, lead, other);
        let at = *known.entry(label.clone()).or_insert(labels.len());
        match labels.get_mut(at) {
            Some((_, of_label)) => of_label.push(other),
            None => labels.push((label, vec![other])),
        }
    }
    // A shortened name that several have tells nobody which is meant.
    let short = |finding: &Finding| finding.kernel.map(|name| symbol::short(verdict.context.report.names.get(name)));
    let own = short(lead);
    let unclear = |of_label: &[&Finding]| {
        let first = of_label.first().and_then(|other| other.kernel);
        first.is_some_and(|name| {
            of_label.iter().any(|other| other.kernel != Some(name))
                || (Some(name) != lead.kernel && of_label.first().and_then(|other| short(other)) == own)
        })
    };
    if labels.len() > NAMED || labels.iter().any(|(_, of_label)| unclear(of_label)) {
        return Some(counted(verdict, lead, &others, &told));
    }
    let parts = labels.iter().map(|(label, of_label)| {
        let count = of_label.len();
        // The line that is shown is not named again.
        let (label, times) = match label.as_str() {
            SAME_LINE if count > 1 => (format!("{count} more on this line"), None),
            SAME_LINE => ("once more on this line".to_owned(), None),
            label => (label.to_owned(), (count > 1).then(|| format!("{count} times"))),
        };
        let remarks: Vec<String> = times.into_iter().chain(told.remark(of_label)).collect();
        if remarks.is_empty() { label } else { format!("{label} ({})", remarks.join(", ")) }
    });
    Some(listed(&parts.collect::<Vec<_>>()))
}

/// `23 more instances, on sm_75 and sm_86 too, 16 to 864 B`
fn counted(verdict: &Verdict<'_>, lead: &Finding, others: &[Finding], told: &Told) -> String {
    let names = &verdict.context.report.names;
    let own = lead.kernel.map(|name| base(names.get(name)));
    let instances = own.is_some() && others.iter().all(|other| other.kernel.map(|name| base(names.get(name))) == own);
    let mut places: Vec<String> = Vec::new();
    for other in others {
        if let Some(place) = elsewhere(lead, other)
            && !places.contains(&place)
        {
            places.push(place);
        }
    }
    let plural = if others.len() == 1 { "" } else { "s" };
    let what = if instances && others.iter().any(|other| other.kernel != lead.kernel) {
        format!("{} more instance{plural}", others.len())
    } else if lead.kernel.is_none() && others.iter().all(|other| other.kernel.is_none() && other.label.is_some()) {
        format!("in {} more line{plural}", others.len())
    } else {
        format!("{} more", others.len())
    };
    let places = match places.len() {
        0 => String::new(),
        1..=6 => format!(", on {} too", listed(&places)),
        many => format!(", on {many} others too"),
    };
    let remark = told.remark(&others.iter().collect::<Vec<_>>()).map(|remark| format!(", {remark}"));
    format!("{what}{places}{}", remark.unwrap_or_default())
}

/// `a, b and c`
fn listed(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The GPU or the architecture of a finding, where it is not the lead's.
fn elsewhere(lead: &Finding, other: &Finding) -> Option<String> {
    match (&other.gpu, other.arch) {
        (Some(gpu), _) if other.gpu != lead.gpu => Some(gpu.clone()),
        (_, Some(arch)) if other.arch != lead.arch => Some(arch.to_string()),
        _ => None,
    }
}

/// What is other about a finding at the line of the one that is shown: nothing that has a name.
const SAME_LINE: &str = "";

/// What is other about a finding of the same group: its kernel, its architecture, else its line.
fn difference(verdict: &Verdict<'_>, lead: &Finding, other: &Finding) -> String {
    let report = verdict.context.report;
    let name = other.kernel.filter(|_| other.kernel != lead.kernel);
    let name = name.map(|name| format!("`{}`", symbol::short(report.names.get(name))));
    match (name, elsewhere(lead, other), &other.label) {
        (Some(name), Some(on), _) => format!("{name} on {on}"),
        (Some(name), None, _) => name,
        (None, Some(on), _) => format!("on {on}"),
        (None, None, Some(label)) => {
            let place = |label: &Label| (excerpt::input_name(report, label.quote), label.quote.place.line);
            let (own, (path, line)) = (lead.label.as_ref().map(place), place(label));
            match own {
                Some((own, shown)) if own == path && shown == line => SAME_LINE.to_owned(),
                Some((own, _)) if own == path => format!("in line {line}"),
                _ => format!("in {path}:{line}"),
            }
        }
        (None, None, None) => "once more".to_owned(),
    }
}

/// Which figure of the lead's message is other in other findings.
struct Told {
    figures: Vec<String>,
    main: Option<&'static str>,
}

impl Told {
    fn new(lead: &Finding, others: &[Finding]) -> Told {
        // Only a figure that the message shows can be compared with by its reader.
        let shown = |(name, fact): &&(&'static str, Fact)| {
            written(name, fact).is_some_and(|text| has_figure(&lead.message, &text))
                && others.iter().all(|other| value(other, name).is_some())
                && others.iter().any(|other| value(other, name) != Some(fact))
        };
        let counts = |name: &str, fact: &Fact| matches!(fact, Fact::Count(_)) && !name.ends_with("bytes");
        let main = lead.facts.iter().filter(|(name, fact)| !counts(name, fact)).find(shown);
        let main = main.or_else(|| lead.facts.iter().find(shown)).map(|(name, _)| *name);
        Told { figures: figures(lead), main }
    }

    /// `16 to 864 B`; `with other figures` where there are some and no range says which.
    fn remark(&self, others: &[&Finding]) -> Option<String> {
        if let Some(name) = self.main {
            let facts = others.iter().filter_map(|other| value(other, name));
            let least = facts.clone().min_by(|a, b| order(a, b)).and_then(|fact| written(name, fact))?;
            let most = facts.max_by(|a, b| order(a, b)).and_then(|fact| written(name, fact))?;
            return Some(range(&least, &most));
        }
        others.iter().any(|other| figures(other) != self.figures).then(|| "with other figures".to_owned())
    }
}

fn value<'a>(finding: &'a Finding, name: &str) -> Option<&'a Fact> {
    finding.facts.iter().find(|(known, fact)| *known == name && !matches!(fact, Fact::Unknown)).map(|(_, fact)| fact)
}

fn order(a: &Fact, b: &Fact) -> std::cmp::Ordering {
    match (a, b) {
        (Fact::Count(a), Fact::Count(b)) => a.cmp(b),
        (Fact::Fraction(a), Fact::Fraction(b)) => a.total_cmp(b),
        _ => std::cmp::Ordering::Equal,
    }
}

/// A fact as messages have it; only of what has a unit.
fn written(name: &str, fact: &Fact) -> Option<String> {
    match fact {
        Fact::Count(bytes) if name.ends_with("bytes") => Some(Bytes(u32::try_from(*bytes).ok()?).to_string()),
        Fact::Count(count) => {
            // A block size that was assumed is no figure of the kernel.
            let unit = name.rsplit('_').next().filter(|unit| unit.ends_with('s') && *unit != "threads")?;
            Some(if *count == 1 { format!("1 {}", unit.trim_end_matches('s')) } else { format!("{count} {unit}") })
        }
        Fact::Fraction(fraction) => Some(percent(*fraction)),
        Fact::Word(_) | Fact::Words(_) | Fact::Unknown => None,
    }
}

/// Whether `message` has `figure`, and not as the end of a longer number.
fn has_figure(message: &str, figure: &str) -> bool {
    message.match_indices(figure).any(|(at, _)| !message[..at].ends_with(|c: char| c.is_ascii_digit() || c == '.'))
}

/// `16 to 864 B`, `512 B to 48 KiB`, `16 B`.
fn range(least: &str, most: &str) -> String {
    if least == most {
        return most.to_owned();
    }
    match (least.split_once(' '), most.split_once(' ')) {
        (Some((number, unit)), Some((_, other))) if unit == other => format!("{number} to {most}"),
        _ => format!("{least} to {most}"),
    }
}

/// The numbers of a message, those in names and architectures left out.
fn figures(finding: &Finding) -> Vec<String> {
    let gpu = finding.gpu.as_deref().unwrap_or("\0");
    let mut figures = Vec::new();
    for (at, part) in finding.message.split('`').enumerate() {
        // What stands in back quotes is a name.
        if at % 2 == 1 {
            continue;
        }
        for word in part.replace(gpu, "").split([' ', ',', ';', ':', '(', ')']) {
            if word.starts_with(|c: char| c.is_ascii_digit()) {
                figures.push(word.to_owned());
            }
        }
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spill(bytes: u64) -> Finding {
        Finding::new(format!("`k` spills {bytes} B on sm_80")).fact("store_bytes", bytes)
    }

    #[test]
    fn others_have_their_own_figures() {
        let (lead, others) = (spill(864), [spill(16), spill(640)]);
        let told = Told::new(&lead, &others);
        assert_eq!(told.remark(&[&others[0], &others[1]]).as_deref(), Some("16 to 640 B"));
        assert_eq!(told.remark(&[&others[0]]).as_deref(), Some("16 B"));
        let alike = Told::new(&lead, &[spill(864)]);
        assert_eq!(alike.remark(&[&spill(864)]), None);
    }

    #[test]
    fn figures_that_no_fact_tells_are_not_taken_for_the_same() {
        let of = |text: &str| Finding::new(text);
        let (lead, other) = (of("`k<1>` needs 3 blocks on sm_80"), of("`k<2>` needs 4 blocks on sm_86"));
        let told = Told::new(&lead, std::slice::from_ref(&other));
        assert_eq!(told.remark(&[&other]).as_deref(), Some("with other figures"));
        assert_eq!(told.remark(&[&of("`k<2>` needs 3 blocks on sm_86")]), None);
    }

    #[test]
    fn a_range_says_its_unit_once() {
        assert_eq!(range("16 B", "864 B"), "16 to 864 B");
        assert_eq!(range("512 B", "48 KiB"), "512 B to 48 KiB");
        assert_eq!(range("50 %", "50 %"), "50 %");
        assert!(has_figure("uses 16 B", "16 B") && !has_figure("uses 116 B", "16 B"));
    }
}
