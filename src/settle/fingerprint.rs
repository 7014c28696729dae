//! What tells a finding from all others, in this run and in the next.

use crate::finding::{Cause, Fact, Finding, Hit, Subject};
use crate::model::{Report, symbol};

/// The same while lines move and numbers change, and the same for a pipe and a file: rule, kernel, architecture, GPU and
/// reason; the words where there is no kernel, or where they are what tells messages on one kernel apart.
#[must_use]
pub fn fingerprint(report: &Report, rule: &str, hit: &Hit, finding: &Finding) -> String {
    let mut hash = Fnv::default();
    hash.add(rule.as_bytes());
    if let Some(id) = finding.kernel {
        hash.add(&symbol::key(report.names.get(id)));
    }
    marks(report, hit, finding, |mark| hash.add(mark));
    hash.add(finding.arch.map(|arch| arch.to_string()).unwrap_or_default().as_bytes());
    hash.add(finding.gpu.as_deref().unwrap_or_default().as_bytes());
    format!("{:016x}", hash.0)
}

/// What tells a finding from others of its rule, kernel, architecture and GPU; `None` where nothing does.
pub(super) fn distinction(report: &Report, hit: &Hit, finding: &Finding) -> Option<String> {
    let mut hash = Fnv::default();
    let start = hash.0;
    marks(report, hit, finding, |mark| hash.add(mark));
    (hash.0 != start).then(|| format!("{:016x}", hash.0))
}

fn marks(report: &Report, hit: &Hit, finding: &Finding, mut mark: impl FnMut(&[u8])) {
    let reason = finding.facts.iter().find(|(name, _)| *name == "reason").map(|(_, fact)| fact);
    // A branch is told from another of the same kernel by its side of the source, not by its line.
    if let Some(Fact::Word(branch)) = finding.facts.iter().find(|(name, _)| *name == "branch").map(|(_, fact)| fact) {
        mark(branch.as_bytes());
    }
    let of_message = matches!(hit.subject, Subject::Message(_)) && hit.cause != Cause::Kernel;
    match reason {
        _ if finding.mark.is_some() => mark(finding.mark.as_deref().unwrap_or_default().as_bytes()),
        Some(Fact::Word(reason)) => mark(reason.as_bytes()),
        Some(_) => mark(b"unknown"),
        None if of_message || finding.kernel.is_none() => mark(words(report, hit, finding).as_bytes()),
        None => {}
    }
}

/// A message without its numbers and without the name of the input that it is about.
fn words(report: &Report, hit: &Hit, finding: &Finding) -> String {
    let input = match hit.subject {
        Subject::Input(at) => report.inputs.get(at as usize).map(|input| symbol::printable(&input.name)),
        _ => None,
    };
    let message = match input {
        Some(name) if !name.is_empty() => finding.message.replace(&*name, ""),
        _ => finding.message.clone(),
    };
    message.replace(|c: char| c.is_ascii_digit(), "")
}

/// FNV-1a, 64 bits: the same on every machine and in every release, as a fingerprint must be.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().chain(&[0]) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
