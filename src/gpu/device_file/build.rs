//! Turns the facts of a device file into a GPU: chooses the table that its granularities come from and lays the
//! file's own limits over it.

use std::borrow::Cow;
use std::path::Path;

use super::Problem;
use super::facts::{Facts, Key, Value};
use crate::gpu::names::{Gpu, product_called};
use crate::gpu::product::{Device, Product};
use crate::gpu::target::{FigureValue, Target};
use crate::model::Arch;
use crate::model::symbol::{cut_middle, printable};

/// What is assumed of a device that tells neither its compute capability nor a known name: the granularities of 8.0,
/// which every data-centre device since has kept (registers in units of 256 a warp, four sub-partitions, shared memory
/// in units of 128 bytes, 1 KiB of it reserved a block).
const ASSUMED: Arch = Arch::new(8, 0);

/// Longest name that is shown, in characters.
const LONGEST_NAME: usize = 200;

/// Further devices of a file that are named at most.
const OTHERS: usize = 8;

/// Names of the two sources that a device file adds to those of its table.
const FILE_SOURCE: &str = "device-file";
const ASSUMED_SOURCE: &str = "assumed";

/// Counts above this are no figures of one device, and keep all arithmetic far from overflow.
const MOST: f64 = (1_u32 << 30) as f64;

/// The limits that a file can tell, with the figure that each one is.
const LIMITS: [(Key, &str); 10] = [
    (Key::ThreadsPerSm, "max-threads-per-sm"),
    (Key::ThreadsPerSm, "max-warps-per-sm"),
    (Key::BlocksPerSm, "max-blocks-per-sm"),
    (Key::ThreadsPerBlock, "max-threads-per-block"),
    (Key::RegistersPerSm, "registers-per-sm"),
    (Key::RegistersPerBlock, "registers-per-block"),
    (Key::SharedPerSm, "shared-per-sm"),
    (Key::SharedPerBlock, "shared-per-block-default"),
    (Key::SharedOptin, "shared-per-block-optin"),
    (Key::SharedReserved, "shared-reserved-per-block"),
];

/// The GPU that the file called `file` describes.
pub(super) fn gpu(file: &str, text: &str, facts: Facts) -> Result<Gpu, Problem> {
    if !facts.has_numbers() && facts.name.is_none() {
        return Err(nothing_found(text));
    }
    check(&facts)?;
    let product = facts.name.as_deref().and_then(product_called);
    let base = base(&facts, product, text)?;
    let mut gpu = Gpu {
        name: shown(&facts.name.clone().unwrap_or_else(|| stem(file))),
        arch: base.arch,
        target: Cow::Borrowed(base.target),
        product: product.filter(|product| Some(product.arch) == base.arch),
        device: device(&facts),
        assumed: Vec::new(),
        notes: base.note.into_iter().collect(),
    };
    let given = lay_over(&mut gpu, file, &facts)?;
    if base.is_assumed {
        mark_assumed(&mut gpu, &given);
    }
    fill_in(&mut gpu);
    if !facts.others.is_empty() {
        gpu.notes.push(more_devices(file, &facts.others));
    }
    Ok(gpu)
}

/// A name as reports show it, safe to print.
fn shown(name: &str) -> String {
    printable(&cut_middle(name, LONGEST_NAME)).into_owned()
}

fn more_devices(file: &str, others: &[String]) -> String {
    let more = others.len().saturating_sub(OTHERS);
    let mut names: Vec<String> = others.iter().take(OTHERS).map(|name| shown(name)).collect();
    if more > 0 {
        names.push(format!("{more} more"));
    }
    let count = others.len() + 1;
    format!("{} holds {count} devices, of which the first is used; not used: {}", shown(file), names.join(", "))
}

fn stem(file: &str) -> String {
    Path::new(file).file_stem().map_or_else(|| file.to_owned(), |stem| stem.to_string_lossy().into_owned())
}

/// The table to start from.
struct Base {
    target: &'static Target,
    arch: Option<Arch>,
    is_assumed: bool,
    note: Option<String>,
}

impl Base {
    fn known(target: &'static Target, note: Option<String>) -> Base {
        Base { target, arch: Some(target.arch), is_assumed: false, note }
    }
}

/// The compute capability as told; else that of the product of this name; else the only one with these limits; else
/// an assumption, for which the file must tell the limits itself.
fn base(facts: &Facts, product: Option<&Product>, text: &str) -> Result<Base, Problem> {
    let told = told_arch(facts, text)?;
    if let Some(target) = told.and_then(Target::of) {
        return Ok(Base::known(target, None));
    }
    if told.is_none() {
        if let Some((product, target)) = product.and_then(|product| Some((product, Target::of(product.arch)?))) {
            let capability = target.compute_capability();
            let note = format!("the file tells no compute capability; that of {} is {capability}", product.name);
            return Ok(Base::known(target, Some(note)));
        }
        if let Some(target) = only_target_with(facts) {
            let capability = target.compute_capability();
            let note = format!("the file tells no compute capability; only {capability} has these limits");
            return Ok(Base::known(target, Some(note)));
        }
    }
    for (key, line) in [
        (Key::ThreadsPerSm, "max threads per SM"),
        (Key::BlocksPerSm, "max blocks per SM"),
        (Key::RegistersPerSm, "registers per SM"),
    ] {
        if facts.get(key).is_none() {
            return Err(missing(line, text));
        }
    }
    let target = Target::of(ASSUMED).expect("bug: the table of 8.0 is missing");
    let note = match told {
        Some(arch) => format!("nothing is published about {arch}; granularities are assumed to be those of 8.0"),
        None => "the file tells no compute capability; granularities are assumed to be those of 8.0".to_owned(),
    };
    Ok(Base { target, arch: told, is_assumed: true, note: Some(note) })
}

fn told_arch(facts: &Facts, text: &str) -> Result<Option<Arch>, Problem> {
    match (facts.get(Key::Major), facts.get(Key::Minor)) {
        (None, None) => Ok(None),
        (Some(_), None) => Err(missing("minor", text)),
        (None, Some(_)) => Err(missing("major", text)),
        (Some(major), Some(minor)) => Ok(Some(Arch::new(small(major)?, small(minor)?))),
    }
}

fn small(value: &Value) -> Result<u8, Problem> {
    // A conversion from f64 saturates, so the comparison refuses whatever does not fit.
    let number = value.number as u8;
    if f64::from(number) == value.number && number < 100 {
        return Ok(number);
    }
    Err(Problem {
        message: "the compute capability cannot be read".to_owned(),
        label: "expected a small whole number".to_owned(),
        help: "write it as in `compute capability 8.0`, or as `major 8` and `minor 0`".to_owned(),
        span: value.span.clone(),
    })
}

/// The one known target that agrees with every limit told, where enough are told to tell targets apart.
fn only_target_with(facts: &Facts) -> Option<&'static Target> {
    for key in [Key::ThreadsPerSm, Key::BlocksPerSm, Key::SharedPerSm] {
        facts.get(key)?;
    }
    let agrees = |target: &&Target| {
        let figures = target.figures();
        LIMITS.iter().filter(|(_, name)| *name != "max-warps-per-sm").all(|(key, name)| {
            let Some(told) = facts.get(*key) else { return true };
            figures
                .iter()
                .any(|figure| figure.key == *name && figure.value == Some(FigureValue::Number(told.number as u32)))
        })
    };
    let mut found = Target::known().filter_map(Target::of).filter(agrees);
    found.next().filter(|_| found.next().is_none())
}

fn slot<'a>(target: &'a mut Target, figure: &str) -> Option<&'a mut u32> {
    Some(match figure {
        "max-threads-per-sm" => &mut target.max_threads_per_sm,
        "max-warps-per-sm" => &mut target.max_warps_per_sm,
        "max-blocks-per-sm" => &mut target.max_blocks_per_sm,
        "max-threads-per-block" => &mut target.max_threads_per_block,
        "registers-per-sm" => &mut target.registers_per_sm,
        "registers-per-block" => &mut target.registers_per_block,
        "shared-per-sm" => &mut target.shared_per_sm,
        "shared-per-block-default" => &mut target.shared_per_block_default,
        "shared-per-block-optin" => &mut target.shared_per_block_optin,
        "shared-reserved-per-block" => &mut target.shared_reserved_per_block,
        _ => return None,
    })
}

/// Lays the file's limits over those of the table, and returns the figures that it told.
fn lay_over(gpu: &mut Gpu, file: &str, facts: &Facts) -> Result<Vec<&'static str>, Problem> {
    let mut given = vec!["warp-size"];
    let mut target = gpu.target.clone().into_owned();
    let mut is_changed = false;
    for (key, figure) in LIMITS {
        let Some(value) = facts.get(key) else { continue };
        let told = whole(value)?;
        let told = if figure == "max-warps-per-sm" { told / target.warp_size } else { told };
        given.push(figure);
        if let Some(slot) = slot(&mut target, figure).filter(|slot| **slot != told) {
            *slot = told;
            target.cite(figure, FILE_SOURCE, false);
            is_changed = true;
        }
    }
    if is_changed {
        target.sources.push((FILE_SOURCE.to_owned(), shown(file)));
        follow_up(&mut target, &given);
        gpu.target = Cow::Owned(target);
    }
    Ok(given)
}

/// Figures that hang on others and were not told themselves.
fn follow_up(target: &mut Target, given: &[&str]) {
    let whole = target.shared_per_sm;
    let is_told = |figure| given.contains(&figure);
    if is_told("shared-per-sm") && !is_told("shared-per-block-optin") && target.arch.at_least(7, 0) {
        target.shared_per_block_optin = whole.saturating_sub(target.shared_reserved_per_block);
    }
    // No setting of the cache can exceed the memory, and the largest one is all of it.
    target.shared_configs_kib.retain(|kib| kib.saturating_mul(1024) <= whole);
    if target.shared_configs_kib.last().is_none_or(|kib| kib * 1024 < whole) && whole.is_multiple_of(1024) {
        target.shared_configs_kib.push(whole / 1024);
    }
    if is_told("registers-per-sm") && !is_told("registers-per-block") {
        target.registers_per_block = target.registers_per_block.min(target.registers_per_sm);
    }
}

fn mark_assumed(gpu: &mut Gpu, given: &[&str]) {
    let mut target = gpu.target.clone().into_owned();
    let keys: Vec<&'static str> =
        target.figures().iter().map(|figure| figure.key).filter(|key| !given.contains(key)).collect();
    for key in &keys {
        target.cite(key, ASSUMED_SOURCE, true);
    }
    target.sources.push((ASSUMED_SOURCE.to_owned(), "Assumed: what 8.0 has".to_owned()));
    target.family = "compute capability not told".to_owned();
    gpu.assumed = keys;
    gpu.target = Cow::Owned(target);
}

fn device(facts: &Facts) -> Device {
    const MIB: f64 = 1024.0 * 1024.0;
    let number = |key| facts.get(key).map(|value| value.number).filter(|number| *number > 0.0);
    // Two transfers a clock on every memory type that the runtime reports a clock for; the width is in bits.
    let bandwidth = |clock: f64, bits: f64| 2.0 * clock * 1e6 * bits / 8.0 / 1e9;
    Device {
        sm_count: number(Key::Sms).map(|sms| sms as u32),
        boost_mhz: number(Key::Clock),
        bandwidth_gbs: number(Key::MemoryClock).zip(number(Key::BusWidth)).map(|(clock, bits)| bandwidth(clock, bits)),
        memory_gb: number(Key::Memory).map(|bytes| bytes / (1024.0 * MIB)),
        l2_mb: number(Key::L2).map(|bytes| bytes / MIB),
        fp32_tflops: None,
    }
}

/// What the file does not tell about a device whose name is that of a product is known of the product.
fn fill_in(gpu: &mut Gpu) {
    let Some(product) = gpu.product else { return };
    let (device, known) = (&mut gpu.device, product.device);
    device.sm_count = device.sm_count.or(known.sm_count);
    device.boost_mhz = device.boost_mhz.or(known.boost_mhz);
    device.bandwidth_gbs = device.bandwidth_gbs.or(known.bandwidth_gbs);
    device.memory_gb = device.memory_gb.or(known.memory_gb);
    device.l2_mb = device.l2_mb.or(known.l2_mb);
    // The peak rate goes with the number of SMs, of which a part of a device has fewer.
    device.fp32_tflops = known.fp32_tflops.filter(|_| device.sm_count == known.sm_count);
}

fn check(facts: &Facts) -> Result<(), Problem> {
    for (key, _) in LIMITS {
        facts.get(key).map(whole).transpose()?;
    }
    facts.get(Key::Sms).map(whole).transpose()?;
    if let Some(value) = facts.get(Key::WarpSize).filter(|value| value.number != 32.0) {
        return Err(Problem {
            message: "only warps of 32 threads are known".to_owned(),
            label: "this says otherwise".to_owned(),
            help: "every NVIDIA GPU so far has warps of 32 threads".to_owned(),
            span: value.span.clone(),
        });
    }
    if let Some(value) = facts.get(Key::ThreadsPerSm).filter(|value| value.number < 32.0) {
        return Err(implausible(value, "less than one warp"));
    }
    match facts.get(Key::SharedPerSm).filter(|value| value.number < 1024.0) {
        Some(value) => Err(implausible(value, "in bytes this is less than 1 KB; is the unit missing?")),
        None => Ok(()),
    }
}

fn whole(value: &Value) -> Result<u32, Problem> {
    if value.number.fract() != 0.0 || value.number > MOST {
        return Err(implausible(value, "expected a whole number below 2^30"));
    }
    Ok(value.number as u32)
}

fn implausible(value: &Value, label: &str) -> Problem {
    Problem {
        message: "a device figure cannot be right".to_owned(),
        label: label.to_owned(),
        help: "sizes take B, KB, MB or GB, as in `shared memory per SM 164 KB`; counts are whole numbers".to_owned(),
        span: value.span.clone(),
    }
}

fn missing(line: &str, text: &str) -> Problem {
    Problem {
        message: format!("the device file lacks `{line}`"),
        label: "in these figures".to_owned(),
        help: format!(
            "add a line such as `{line} …`, or `compute capability 8.0`, from which the rest follows; a device name \
             that `warplint gpus` lists does too"
        ),
        span: first_line(text),
    }
}

fn nothing_found(text: &str) -> Problem {
    Problem {
        message: "no device figures were found".to_owned(),
        label: "this is no figure that is known".to_owned(),
        help: "give lines such as `max threads per SM 2048`, the output of `deviceQuery`, or what Python prints for \
               torch.cuda.get_device_properties(0)"
            .to_owned(),
        span: first_line(text),
    }
}

/// The first line with anything in it.
fn first_line(text: &str) -> std::ops::Range<usize> {
    let start = text.len() - text.trim_start().len();
    let end = text[start..].find(['\n', '\r']).map_or(text.len(), |end| start + end);
    start..end
}
