//! What the page is told beside kernels: its head, GPUs, findings and branches.

use hashbrown::HashMap;
use serde::Serialize;

use super::word;
use crate::analyse::Found;
use crate::finding::{Finding, Label, Level, Subject};
use crate::gpu::Gpu;
use crate::lanes::verdict::Verdict as LaneVerdict;
use crate::model::{Arch, NameId, symbol};
use crate::report::branches::{NOT_FOLLOWED, place, ptx_line, reported};
use crate::report::excerpt;
use crate::rules::Context;
use crate::settle::{Settled, Verdict};

/// Counts, and what was left out of the page.
#[derive(Serialize)]
pub(super) struct Head<'a> {
    version: &'static str,
    inputs: Vec<&'a str>,
    more_inputs: usize,
    errors: usize,
    warnings: usize,
    build_failed: bool,
    archs: Vec<String>,
    kernels_left_out: usize,
    findings_left_out: usize,
    branches_left_out: usize,
    rules: Vec<PageRule>,
}

/// A rule that found something.
#[derive(Serialize)]
struct PageRule {
    id: &'static str,
    summary: String,
    count: usize,
}

/// Inputs that are named.
const NAMED: usize = 2;

pub(super) fn head<'a>(verdict: &Verdict<'a>, kernels: usize, findings: usize, branches: usize) -> Head<'a> {
    let report = verdict.context.report;
    let mut archs: Vec<Arch> = report.kernels.iter().filter_map(|kernel| kernel.arch).collect();
    archs.sort_unstable();
    archs.dedup();
    let found = verdict.settled.len() + verdict.allowed.len();
    Head {
        version: env!("CARGO_PKG_VERSION"),
        inputs: report.inputs.iter().take(NAMED).map(|input| input.name.as_str()).collect(),
        more_inputs: report.inputs.len().saturating_sub(NAMED),
        errors: verdict.count(Level::Deny),
        warnings: verdict.count(Level::Warn),
        build_failed: report.messages.iter().any(|message| message.kind.fails_build()),
        archs: archs.iter().map(Arch::to_string).collect(),
        kernels_left_out: report.kernels.len().saturating_sub(kernels),
        findings_left_out: found.saturating_sub(findings),
        branches_left_out: verdict.context.numbers.branches.all.len().saturating_sub(branches),
        rules: rules(verdict),
    }
}

fn rules(verdict: &Verdict<'_>) -> Vec<PageRule> {
    let mut counts: HashMap<u16, usize> = HashMap::new();
    for one in verdict.settled.iter().chain(&verdict.allowed) {
        *counts.entry(one.rule).or_default() += 1;
    }
    let mut rules: Vec<PageRule> = counts
        .into_iter()
        .filter_map(|(rule, count)| {
            let rule = verdict.rules.get(usize::from(rule))?.rule;
            Some(PageRule { id: rule.id, summary: rule.page().summary, count })
        })
        .collect();
    rules.sort_unstable_by_key(|rule| rule.id);
    rules
}

/// A GPU that kernels were judged for.
#[derive(Serialize)]
pub(super) struct PageGpu {
    name: String,
    max_warps: u32,
    max_threads: u32,
    max_registers: u32,
    max_shared: u32,
}

pub(super) fn gpu(gpu: &Gpu) -> PageGpu {
    let target = &gpu.target;
    PageGpu {
        name: gpu.name.clone(),
        max_warps: target.max_warps_per_sm,
        max_threads: target.max_threads_per_block,
        max_registers: target.max_registers_per_thread,
        max_shared: target.shared_per_block_optin.max(target.shared_per_block_default),
    }
}

/// Which kernels of the page a name is of.
pub(super) struct About {
    pub(super) of_name: HashMap<NameId, Vec<usize>>,
    /// Kernels in the page.
    pub(super) kernels: usize,
}

impl About {
    fn named(&self, context: &Context<'_>, name: NameId, arch: Option<Arch>) -> Vec<usize> {
        let all = self.of_name.get(&name).map_or(&[][..], Vec::as_slice);
        let is_its =
            |at: &&usize| arch.is_none() || context.report.kernels[**at].arch.is_none_or(|own| Some(own) == arch);
        all.iter().filter(is_its).copied().collect()
    }
}

/// A line of an input with what is marked of it.
#[derive(Serialize)]
struct PageLine {
    path: String,
    line: u32,
    /// Before the mark, in it, after it; empty where the text of the line is not known.
    text: [String; 3],
    says: String,
}

#[derive(Serialize)]
pub(super) struct PageFinding<'a> {
    rule: &'static str,
    level: &'static str,
    basis: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<String>,
    /// Indices of the page's kernels.
    kernels: Vec<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<&'static str>,
    lines: Vec<PageLine>,
    #[serde(skip_serializing_if = "is_one")]
    count: u64,
    /// Findings of one cause have one number; those that are allowed have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<usize>,
    /// What the others of its group are, on the first of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    also: Option<String>,
    /// Why it is allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_one(count: &u64) -> bool {
    *count == 1
}

pub(super) fn finding<'a>(
    verdict: &'a Verdict<'_>,
    one: &Settled,
    group: Option<usize>,
    also: Option<String>,
    about: &About,
) -> PageFinding<'a> {
    let Finding { message, help, label, kernel, arch, gpu, count, ptx, beside, confidence, .. } = verdict.finding(one);
    let active = verdict.active(one);
    let kernels = match one.hit.subject {
        Subject::Kernel(at) => vec![at as usize].into_iter().filter(|at| *at < about.kernels).collect(),
        _ => kernel.map_or_else(Vec::new, |name| about.named(&verdict.context, name, arch)),
    };
    let labels = label.iter().chain(&ptx).chain(&beside);
    PageFinding {
        rule: active.rule.id,
        level: word(if group.is_none() { Level::Allow } else { one.level }),
        basis: active.basis.name(),
        message,
        help,
        kernels,
        gpu,
        confidence,
        lines: labels.map(|label| line(&verdict.context, label)).collect(),
        count,
        group,
        also,
        reason: verdict.reason(one),
    }
}

fn line(context: &Context<'_>, label: &Label) -> PageLine {
    let (position, text) = excerpt::marked(context.report, label);
    PageLine { path: position.path, line: position.line, text, says: label.text.clone() }
}

#[derive(Serialize)]
pub(super) struct PageBranch {
    kernels: Vec<usize>,
    function: String,
    path: String,
    line: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    ptx_line: Option<u32>,
    block: [u32; 3],
    verdict: Option<&'static str>,
    reason: &'static str,
    report: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<&'static str>,
    /// Share of the warps that split, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    split: Option<f64>,
    /// Instructions of the side that is taken and of the other.
    #[serde(skip_serializing_if = "Option::is_none")]
    costs: Option<[f64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idle: Option<f64>,
    /// A warp that splits: its number, the lanes that come there, and those that take the branch, a bit each.
    #[serde(skip_serializing_if = "Option::is_none")]
    lanes: Option<[u32; 3]>,
}

pub(super) fn branch(context: &Context<'_>, found: &Found<'_>, about: &About) -> PageBranch {
    let (path, line) = place(context, found);
    let one = found.branch;
    let judgement = one.judgement;
    let by_index = judgement.filter(|judgement| judgement.verdict != LaneVerdict::DivergentData);
    PageBranch {
        kernels: about.named(context, found.function.name, found.function.arch),
        function: symbol::short(context.report.names.get(found.function.name)),
        path,
        line,
        ptx_line: ptx_line(found),
        block: [one.shape.x, one.shape.y, one.shape.z],
        verdict: judgement.map(|judgement| judgement.verdict.name()),
        reason: judgement.map_or(NOT_FOLLOWED, |judgement| judgement.reason),
        report: reported(found).map_or("silent", Level::name),
        confidence: judgement.map(|judgement| judgement.confidence.name()),
        split: by_index.map(|_| one.split.of_all()),
        costs: one.sides.map(|(taken, other)| [taken.weight, other.weight]),
        idle: one.spread.filter(|spread| !spread.is_cut).map(|spread| spread.idle),
        lanes: by_index.and(one.split.witness).map(|seen| [seen.warp, seen.active, seen.taken]),
    }
}
