//! The JSON report, version 1. Its keys are wire structs of their own: what is printed does not follow what is stored.
//!
//! Written as it is made: a report of a hundred thousand kernels is never in memory.

use std::collections::BTreeMap;
use std::io::{self, Write};

use hashbrown::HashMap;
use serde::Serialize;

use super::excerpt;
use crate::analyse::{BlockSource, Judged};
use crate::finding::{Fact, Finding, Level};
use crate::gpu::Limiter;
use crate::model::{Bytes, Kernel, Kind, NameId, Names, Place, Report, Spot, symbol};
use crate::rules::Context;
use crate::settle::{Allowance, Origin, Settled, Verdict, fingerprint};

/// The version of the report's form.
pub(super) const VERSION: u32 = 1;

/// Launches that are listed of one kernel: each of many instantiations may be launched at many places.
const LAUNCHES: usize = 100;

#[derive(Serialize)]
struct WireKernel<'a> {
    name: Option<String>,
    demangled: Option<&'a str>,
    kind: &'static str,
    arch: Option<String>,
    registers: Option<u32>,
    barriers: Option<u32>,
    stack_bytes: Option<u32>,
    cumulative_stack_bytes: Option<u32>,
    spill_store_bytes: Option<u32>,
    spill_load_bytes: Option<u32>,
    static_shared_bytes: Option<u32>,
    local_bytes: Option<u32>,
    constant_bytes: Option<BTreeMap<u8, u32>>,
    textures: Option<u32>,
    surfaces: Option<u32>,
    samplers: Option<u32>,
    compile_time_ms: Option<f64>,
    unbounded_stack: bool,
    records: u32,
    ambiguous: bool,
    launch: WireLaunch,
    occupancy: Vec<WireOccupancy<'a>>,
    launches: Vec<WireSite<'a>>,
    /// How many there are, where these are not all.
    #[serde(skip_serializing_if = "Option::is_none")]
    launch_count: Option<usize>,
    declared_at: Option<WirePlace<'a>>,
    reported_at: Option<WirePlace<'a>>,
}

#[derive(Serialize)]
struct WireLaunch {
    block: Option<[u32; 3]>,
    block_source: Option<&'static str>,
    dynamic_shared_bytes: Option<u32>,
    max_threads: Option<u32>,
    min_blocks: Option<u32>,
    cluster: Option<[u32; 3]>,
}

/// A launch as a source shows it; what is no constant is `null`.
#[derive(Serialize)]
struct WireSite<'a> {
    path: &'a str,
    line: u32,
    grid: Option<[u32; 3]>,
    block: Option<[u32; 3]>,
    dynamic_shared_bytes: Option<u32>,
}

#[derive(Serialize)]
struct WireOccupancy<'a> {
    gpu: &'a str,
    block: [u32; 3],
    blocks_per_sm: u32,
    active_warps: u32,
    max_warps: u32,
    occupancy: f64,
    limiters: Vec<&'static str>,
    limits: BTreeMap<&'static str, Option<u32>>,
}

#[derive(Serialize)]
struct WirePlace<'a> {
    path: &'a str,
    line: u32,
}

#[derive(Serialize)]
struct WireLocation {
    path: String,
    line: u32,
    column: u64,
    end_line: u32,
    end_column: u64,
    byte_start: Option<u64>,
    byte_end: Option<u64>,
}

#[derive(Serialize)]
struct WireLabel {
    path: String,
    line: u32,
    column: u64,
    end_line: u32,
    end_column: u64,
    text: String,
}

#[derive(Serialize)]
struct WireFinding<'a> {
    rule: &'static str,
    level: &'static str,
    basis: &'static str,
    message: &'a str,
    help: Option<&'a str>,
    kernel: Option<String>,
    arch: Option<String>,
    gpu: Option<&'a str>,
    location: Option<WireLocation>,
    ptx_line: Option<u32>,
    confidence: Option<&'static str>,
    labels: Vec<WireLabel>,
    facts: BTreeMap<&'static str, WireFact<'a>>,
    count: u64,
    status: &'static str,
    reason: Option<&'a str>,
    allowed_by: Option<WireAllowance>,
    fingerprint: String,
}

/// What allows a finding, and where that stands: nowhere, for a level of the command line.
#[derive(Serialize)]
struct WireAllowance {
    kind: &'static str,
    path: Option<String>,
    line: Option<u32>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum WireFact<'a> {
    Count(u64),
    Fraction(f64),
    Word(&'a str),
    Words(&'a [&'static str]),
    Unknown,
}

#[derive(Serialize)]
struct WireSummary {
    files: usize,
    kernels: usize,
    ambiguous: usize,
    denied: usize,
    warnings: usize,
    notes: usize,
    allowed: usize,
    baselined: usize,
    build_failed: bool,
    /// Functions whose branches nothing is said of.
    #[serde(skip_serializing_if = "Option::is_none")]
    functions_not_followed: Option<u32>,
}

pub(super) fn render(verdict: &Verdict<'_>, out: &mut dyn Write) -> io::Result<()> {
    let context = &verdict.context;
    writeln!(out, "{{")?;
    writeln!(out, "  \"version\": {VERSION},")?;
    writeln!(out, "  \"tool\": {{\"name\": \"warplint\", \"version\": \"{}\"}},", env!("CARGO_PKG_VERSION"))?;
    kernel_list(context, ",", out)?;
    let lists = [(&verdict.settled, "shown"), (&verdict.allowed, "allowed"), (&verdict.baselined, "baselined")];
    let all = lists.into_iter().flat_map(|(list, status)| list.iter().map(move |one| (one, status)));
    list("findings", all, ",", out, |(one, status), out| {
        let finding = verdict.finding(one);
        serde_json::to_writer(out, &wire_finding(verdict, one, &finding, status)).map_err(io::Error::from)
    })?;
    write!(out, "  \"summary\": ")?;
    serde_json::to_writer(&mut *out, &summary(verdict))?;
    writeln!(out, "\n}}")
}

/// `"kernels": […]`, and what comes `after` it.
pub(super) fn kernel_list(context: &Context<'_>, after: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut signatures = Signatures::default();
    list("kernels", context.report.kernels.iter().enumerate(), after, out, |(at, kernel), out| {
        let demangled = kernel.name.and_then(|name| signatures.of(&context.report.names, name));
        let declared = || kernel.name.and_then(|name| std::str::from_utf8(context.report.names.get(name)).ok());
        // The name of one that only sources tell of is what a person wrote.
        let demangled = if demangled.is_none() && kernel.is_declared_only() { declared() } else { demangled };
        serde_json::to_writer(out, &wire_kernel(context, at, kernel, demangled)).map_err(io::Error::from)
    })
}

/// One item a line, and `after` it all.
pub(super) fn list<T>(
    key: &str,
    items: impl Iterator<Item = T>,
    after: &str,
    out: &mut dyn Write,
    mut write: impl FnMut(T, &mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    write!(out, "  \"{key}\": [")?;
    let mut separator = "\n    ";
    for item in items {
        out.write_all(separator.as_bytes())?;
        write(item, out)?;
        separator = ",\n    ";
    }
    let end = if separator.starts_with(',') { "\n  ]" } else { "]" };
    writeln!(out, "{end}{after}")
}

fn name(names: &Names, id: Option<NameId>) -> Option<String> {
    id.map(|id| String::from_utf8_lossy(names.get(id)).into_owned())
}

fn wire_kernel<'a>(context: &'a Context<'_>, at: usize, kernel: &Kernel, demangled: Option<&'a str>) -> WireKernel<'a> {
    let report = context.report;
    let resources = &kernel.resources;
    let bytes = |size: Option<crate::model::Bytes>| size.map(crate::model::Bytes::get);
    let judged: Vec<&Judged> = context.numbers.of(at).collect();
    let launches = context.numbers.instances.launches_of(report, kernel, LAUNCHES);
    WireKernel {
        name: name(&report.names, kernel.name),
        demangled,
        kind: match kernel.kind {
            Kind::Entry => "entry",
            Kind::Function => "function",
        },
        arch: kernel.arch.map(|arch| arch.to_string()),
        registers: resources.registers,
        barriers: resources.barriers,
        stack_bytes: bytes(resources.stack),
        cumulative_stack_bytes: bytes(resources.cumulative_stack),
        spill_store_bytes: bytes(resources.spill_stores),
        spill_load_bytes: bytes(resources.spill_loads),
        static_shared_bytes: bytes(resources.static_shared),
        local_bytes: bytes(resources.local),
        constant_bytes: resources
            .constant
            .as_ref()
            .map(|banks| banks.iter().map(|(bank, size)| (*bank, size.get())).collect()),
        textures: resources.textures,
        surfaces: resources.surfaces,
        samplers: resources.samplers,
        compile_time_ms: resources.compile_time_ms,
        unbounded_stack: kernel.unbounded_stack,
        records: kernel.records,
        ambiguous: kernel.ambiguous,
        launch: launch(context, at, kernel, &judged),
        occupancy: judged.iter().map(|judged| wire_occupancy(context, kernel, judged)).collect(),
        launch_count: Some(launches.count).filter(|count| *count > launches.spots.len()),
        launches: launches.spots.into_iter().filter_map(|spot| wire_site(report, spot)).collect(),
        declared_at: report.declared(at).map(|declared| wire_place(report, declared.quote.place)),
        reported_at: kernel.evidence.first().map(|place| wire_place(report, place)),
    }
}

fn wire_place(report: &Report, place: Place) -> WirePlace<'_> {
    WirePlace { path: report.file_of(place), line: place.line }
}

fn wire_site(report: &Report, spot: Spot) -> Option<WireSite<'_>> {
    let site = report.launch(spot)?;
    let whole = |sizes: [Option<u32>; 3]| Some([sizes[0]?, sizes[1]?, sizes[2]?]);
    Some(WireSite {
        path: report.file_of(site.quote.place),
        line: site.quote.place.line,
        grid: whole(site.grid),
        block: whole(site.block),
        dynamic_shared_bytes: site.dynamic_shared.map(Bytes::get),
    })
}

/// Demangled names that were lately needed: one kernel has a record for each architecture and each set of figures, and
/// demangling is the slowest part of a report.
#[derive(Default)]
struct Signatures {
    known: HashMap<NameId, Option<String>>,
    bytes: usize,
}

impl Signatures {
    /// Bytes kept at most; then all are forgotten.
    const MOST: usize = 16 * 1024 * 1024;

    fn of(&mut self, names: &Names, id: NameId) -> Option<&str> {
        if self.bytes > Signatures::MOST {
            *self = Signatures::default();
        }
        let bytes = &mut self.bytes;
        let signature = self.known.entry(id).or_insert_with(|| {
            let signature = symbol::demangle(names.get(id));
            *bytes += signature.as_ref().map_or(0, String::len);
            signature
        });
        signature.as_deref()
    }
}

fn launch(context: &Context<'_>, at: usize, kernel: &Kernel, judged: &[&Judged]) -> WireLaunch {
    let told = context.numbers.told(at).filter(|_| kernel.kind == Kind::Entry);
    let block = told.and_then(|told| told.block);
    let bounds = told.and_then(|told| told.bounds);
    let source = block.map(|(_, source)| source).or_else(|| judged.first().map(|judged| judged.source));
    WireLaunch {
        block: block.map(|(block, _)| block.dimensions()),
        block_source: source.map(BlockSource::name),
        dynamic_shared_bytes: told.and_then(|told| told.dynamic_shared).map(|(size, _)| size.get()),
        max_threads: bounds.and_then(|bounds| bounds.max_threads),
        min_blocks: bounds.and_then(|bounds| bounds.min_blocks),
        cluster: bounds.and_then(|bounds| bounds.cluster),
    }
}

fn wire_occupancy<'a>(context: &Context<'a>, kernel: &Kernel, judged: &Judged) -> WireOccupancy<'a> {
    let gpu = &context.numbers.gpus[judged.gpu as usize];
    let occupancy = &judged.occupancy;
    let mut limits: BTreeMap<&'static str, Option<u32>> =
        [Limiter::Warps, Limiter::Registers, Limiter::SharedMemory, Limiter::Blocks]
            .into_iter()
            .map(|limiter| (limiter.name(), occupancy.limits.get(limiter)))
            .collect();
    let counted = kernel.resources.barriers.is_some_and(|count| count < 16);
    if counted && gpu.arch.is_some_and(|arch| arch.at_least(9, 0)) {
        limits.insert(Limiter::Barriers.name(), occupancy.limits.get(Limiter::Barriers));
    }
    WireOccupancy {
        gpu: &gpu.name,
        block: judged.block.dimensions(),
        blocks_per_sm: occupancy.blocks_per_sm,
        active_warps: occupancy.active_warps,
        max_warps: occupancy.max_warps,
        occupancy: occupancy.fraction(),
        limiters: occupancy.limiters.iter().map(Limiter::name).collect(),
        limits,
    }
}

fn wire_finding<'a>(
    verdict: &'a Verdict<'_>,
    one: &Settled,
    finding: &'a Finding,
    status: &'static str,
) -> WireFinding<'a> {
    let report = verdict.context.report;
    let active = verdict.active(one);
    let position = finding.label.as_ref().map(|label| (excerpt::position(report, label), label));
    let location = position.as_ref().map(|(at, _)| WireLocation {
        path: at.path.clone(),
        line: at.line,
        column: at.column,
        end_line: at.line,
        end_column: at.end_column,
        byte_start: at.byte_start,
        byte_end: at.byte_end,
    });
    let others = finding.ptx.iter().chain(&finding.beside).map(|label| (excerpt::position(report, label), label));
    let labels = position.into_iter().chain(others).map(|(at, label)| WireLabel {
        path: at.path,
        line: at.line,
        column: at.column,
        end_line: at.line,
        end_column: at.end_column,
        text: label.text.clone(),
    });
    let facts = finding.facts.iter().map(|(key, fact)| (*key, wire_fact(fact))).collect();
    WireFinding {
        rule: active.rule.id,
        level: if status == "allowed" { Level::Allow.name() } else { one.level.name() },
        basis: active.basis.name(),
        message: &finding.message,
        help: finding.help.as_deref(),
        kernel: name(&report.names, finding.kernel),
        arch: finding.arch.map(|arch| arch.to_string()),
        gpu: finding.gpu.as_deref(),
        location,
        ptx_line: finding.ptx.as_ref().map(|label| label.quote.place.line),
        confidence: finding.confidence,
        labels: labels.collect(),
        facts,
        count: finding.count,
        status,
        reason: verdict.reason(one),
        allowed_by: verdict.allowance(one).map(|allowance| wire_allowance(report, allowance)),
        fingerprint: fingerprint(report, active.rule.id, &one.hit, finding),
    }
}

fn wire_allowance(report: &Report, allowance: Allowance<'_>) -> WireAllowance {
    let kind = allowance.kind();
    match allowance {
        Allowance::Comment(quote, _) | Allowance::Entry(quote, _) => {
            WireAllowance { kind, path: Some(excerpt::input_name(report, quote)), line: Some(quote.place.line) }
        }
        Allowance::Level(Origin::Config { file, line }) => {
            WireAllowance { kind, path: Some(file.to_string()), line: Some(*line) }
        }
        Allowance::Level(Origin::Option) => WireAllowance { kind, path: None, line: None },
    }
}

fn wire_fact(fact: &Fact) -> WireFact<'_> {
    match fact {
        Fact::Count(count) => WireFact::Count(*count),
        Fact::Fraction(fraction) => WireFact::Fraction(*fraction),
        Fact::Word(word) => WireFact::Word(word),
        Fact::Words(words) => WireFact::Words(words),
        Fact::Unknown => WireFact::Unknown,
    }
}

fn summary(verdict: &Verdict<'_>) -> WireSummary {
    let report = verdict.context.report;
    WireSummary {
        files: report.inputs.len(),
        kernels: report.kernels.iter().filter(|kernel| kernel.kind == Kind::Entry).count(),
        ambiguous: report.kernels.iter().filter(|kernel| kernel.ambiguous).count(),
        denied: verdict.count(Level::Deny),
        warnings: verdict.count(Level::Warn),
        notes: verdict.count(Level::Note),
        allowed: verdict.allowed.len(),
        baselined: verdict.baselined.len(),
        build_failed: report.messages.iter().any(|message| message.kind.fails_build()),
        functions_not_followed: verdict.context.numbers.branches.not_followed(report).map(|found| found.count),
    }
}
