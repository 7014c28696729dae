//! One line that says what was looked at, and what became of every finding.

use crate::finding::Level;
use crate::model::{Arch, Kind, symbol};
use crate::settle::Verdict;

/// The line in two parts: the kernels, which stand out where that can be, and the rest.
pub(super) fn summary(verdict: &Verdict<'_>) -> (String, String) {
    let report = verdict.context.report;
    let entries = report.kernels.iter().filter(|kernel| kernel.kind == Kind::Entry);
    let mut archs: Vec<Arch> = entries.clone().filter_map(|kernel| kernel.arch).collect();
    archs.sort_unstable();
    archs.dedup();
    let on = match archs.as_slice() {
        [] => String::new(),
        archs => {
            // A kernel that only a source has is on none.
            let (all, compiled) =
                (entries.clone().count(), entries.clone().filter(|kernel| kernel.arch.is_some()).count());
            let some = if compiled < all { format!(", {compiled} of them") } else { String::new() };
            format!("{some} on {}", archs.iter().map(Arch::to_string).collect::<Vec<_>>().join(", "))
        }
    };
    let (runtime, own): (Vec<_>, Vec<_>) = entries
        .partition(|kernel| kernel.name.is_some_and(|name| symbol::is_of_device_runtime(report.names.get(name))));
    // What the device runtime brings along nobody wrote.
    let runtime = match runtime.len() {
        0 => String::new(),
        count => format!(" and {count} of the device runtime"),
    };
    let parts = [(Level::Deny, "error"), (Level::Warn, "warning"), (Level::Note, "note")];
    let parts: Vec<String> =
        parts.into_iter().filter_map(|(level, word)| counted(verdict.count(level), word)).collect();
    // Findings are counted, as the exit status and the other formats do; what is drawn is one a group.
    let groups = verdict.groups().len();
    let grouped = match groups {
        1 if verdict.settled.len() > 1 => " in 1 group".to_owned(),
        several if verdict.settled.len() > several => format!(" in {several} groups"),
        _ => String::new(),
    };
    let found = if parts.is_empty() { "nothing to report".to_owned() } else { parts.join(", ") + &grouped };
    let sources = report.inputs.iter().filter(|input| input.is_source).count();
    // What only the host runs is no fault; that it was read is worth knowing.
    let nowhere = match counted(sources, "source") {
        Some(sources) if report.inputs.iter().all(|input| input.is_source) => format!("no kernels in {sources}"),
        _ => "no kernels".to_owned(),
    };
    let kernels = counted(own.len(), "kernel").unwrap_or(nowhere);
    let aside = [(verdict.allowed.len(), "allowed"), (verdict.baselined.len(), "in the baseline")];
    let aside = aside.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
    let aside = aside.collect::<Vec<_>>().join(", ");
    let aside = if aside.is_empty() { aside } else { format!("; {aside}") };
    (kernels, format!("{runtime}{on}: {found}{aside}"))
}

/// `1 kernel`, `2 kernels`; nothing for none.
pub(super) fn counted(count: usize, one: &str) -> Option<String> {
    match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        count => Some(format!("{count} {one}s")),
    }
}
