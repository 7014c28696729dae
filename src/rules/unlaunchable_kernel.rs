//! `unlaunchable-kernel`: not even one block fits, so that every launch of it fails.

use serde::Deserialize;

use super::limits::{Grade, every, evidence, shared_bytes, threads, with_facts};
use super::{Context, Judged};
use crate::analyse::{BlockSource, Launched, Told};
use crate::finding::{Cause, Finding, Hit, Level};
use crate::gpu::{Limiter, Refusal, Target, largest_block, occupancy, refusals};
use crate::model::{BlockSize, BlockSizeError, Bytes, Impossible, LaunchSite};

/// The rule has no options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {}

pub(super) fn check(context: &Context<'_>, _: &Options, hits: &mut Vec<Hit>) {
    every(context, hits, |judged| {
        let refused = judged.occupancy.blocks_per_sm == 0 && !is_told_of_launch(judged);
        refused.then_some(Grade { weight: judged.launch.registers, cap: Level::Deny })
    });
    // Of kernels without figures the launch bounds alone are known.
    hits.extend(context.entries().filter(|(at, _)| context.numbers.ids(*at).is_empty()).filter_map(|(at, _)| {
        let (threads, ..) = over_bounds(context.numbers.told(at)?)?;
        Some(Hit::kernel(at, threads))
    }));
    for hit in &mut *hits {
        // One size for a whole log is one cause, however many kernels cannot take it.
        if context.judged_of(hit).is_some_and(is_of_option) {
            hit.cause = Cause::Rule;
        }
    }
    for (at, _, site) in context.launches() {
        let threads = site.threads().filter(|_| refusal(site).is_some());
        let weight = threads.or(site.impossible.map(|_| 0));
        hits.extend(weight.map(|threads| Hit::launch(at, u32::try_from(threads).unwrap_or(u32::MAX))));
    }
}

/// Threads of a block that is told, more than the launch bounds allow; these, and who tells it.
fn over_bounds(told: &Told) -> Option<(u32, u32, BlockSource)> {
    let (block, source) = told.block?;
    let (threads, most) = (block.threads(), told.max_threads()?);
    (threads > most && source != BlockSource::LaunchSite).then_some((threads, most, source))
}

/// Whether its launch in the sources has too many threads for its launch bounds, which `launch-bounds-exceeded` tells.
fn is_told_of_launch(judged: &Judged) -> bool {
    judged.source == BlockSource::LaunchSite && judged.launch.exceeds_bounds()
}

/// Why no GPU launches the block of a launch, where that is constant.
fn refusal(site: &LaunchSite) -> Option<BlockSizeError> {
    let [x, y, z] = site.block;
    BlockSize::new(x?, y?, z?).err()
}

fn tell_launch(context: &Context<'_>, launched: &Launched, site: &LaunchSite) -> Finding {
    let called = context.launched(launched, site);
    if let Some(dimension) = site.impossible {
        return tell_impossible(context, &called, site, dimension);
    }
    let why = refusal(site).map_or_else(String::new, |error| format!(": {error}"));
    let help = match refusal(site) {
        Some(BlockSizeError::TooDeep(_)) => DEEP,
        _ => LARGE,
    };
    let [x, y, z] = site.block.map(Option::unwrap_or_default);
    let label = context.block_label(site, "too large for every GPU");
    let block = BlockSize { x, y, z }.to_string();
    let finding =
        Finding::new(format!("{called} cannot be launched with this block{why}")).help(help).label(Some(label));
    finding.mark(block.clone()).fact("block", block).fact("threads", site.threads())
}

const LARGE: &str =
    "give each thread several elements, and launch blocks of 1024 threads at most: 256 are a good start";

const DEEP: &str = "a block has 1024 threads in x and in y at most, and 64 in z: exchange the dimensions, or give more of z to \
                    the grid";

/// A dimension that no launch can have, whatever the others are.
fn tell_impossible(context: &Context<'_>, called: &str, site: &LaunchSite, dimension: Impossible) -> Finding {
    let Impossible { of_block, axis, number } = dimension;
    let (what, holds) = if of_block { ("block", "threads") } else { ("grid", "blocks") };
    let axis = ["x", "y", "z"].get(usize::from(axis)).copied().unwrap_or_default();
    let message =
        format!("{called} cannot be launched with a {what} of {number} {holds} in {axis}: every such launch fails");
    let (help, said) = if number == 0 {
        let help = "round up where a division gives the number, as `(n + 255) / 256` does, and leave the launch out where \
                    there is nothing to do: an empty one is an error, `cudaErrorInvalidConfiguration`";
        (help, "no GPU launches nothing")
    } else if of_block {
        (if axis == "z" && number <= 1024 { DEEP } else { LARGE }, "out of range")
    } else {
        let help = "a grid has 2147483647 blocks in x at most, and 65535 in y and in z: exchange the dimensions, or give each \
                    block several parts of the work";
        (help, "out of range")
    };
    let label = if of_block { context.block_label(site, said) } else { context.launch_label(site, said) };
    Finding::new(message)
        .help(help)
        .label(Some(label))
        .mark(format!("{what}.{axis} {number}"))
        .fact("dimension", format!("{what}.{axis}"))
        .fact("number", number.to_string())
}

/// Whether it is the block size that `--block` gives every kernel which is refused.
fn is_of_option(judged: &Judged) -> bool {
    let limits = &judged.occupancy.limits;
    let refused = [Limiter::Warps, Limiter::Registers].into_iter().any(|limiter| limits.get(limiter) == Some(0));
    judged.source == BlockSource::Option && refused
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    if let Some((launched, site)) = context.launch_of(hit) {
        return tell_launch(context, launched, site);
    }
    let (Some(kernel), Some(judged)) = (context.kernel_of(hit), context.judged_of(hit)) else {
        return tell_bounds(context, hit).unwrap_or_else(|| Finding::new("the kernel cannot be launched"));
    };
    let gpu = context.numbers.gpu(judged);
    let reasons = refusals(&gpu.target, &judged.launch);
    let size = size(judged.source, judged.launch.threads);
    let why: Vec<String> = reasons.iter().map(Refusal::to_string).collect();
    let message =
        format!("{} cannot be launched with {size} on {}: {}", context.called(kernel.name), gpu.name, why.join("; "));
    let largest = largest_block(&gpu.target, &judged.launch);
    let binding = Limiter::ALL.into_iter().find(|limiter| judged.occupancy.limits.get(*limiter) == Some(0));
    let label = evidence(context, kernel, binding, "too much for one block");
    let told = told_by(context, hit);
    let finding = Finding::new(message).help(help(&gpu.target, judged, &reasons, largest, told)).label(label);
    with_facts(finding, judged).fact("largest_block", largest)
}

/// A kernel without figures, of which a block is told that its launch bounds do not allow.
fn tell_bounds(context: &Context<'_>, hit: &Hit) -> Option<Finding> {
    let (at, kernel) = context.numbered_kernel_of(hit)?;
    let (asked, most, source) = over_bounds(context.numbers.told(at)?)?;
    let refusal = Refusal::Bounds { threads: asked, most };
    let message = format!("{} cannot be launched with {}: {refusal}", context.called(kernel.name), size(source, asked));
    let label = match kernel.evidence.head {
        Some(head) => Some(context.line_label(head, "its launch bounds")),
        None => context.report.declared(at).map(|declared| context.declared_label(declared, "its launch bounds")),
    };
    let mut parts = vec![format!("the largest block that fits has {}", threads(most)), wider(asked)];
    if source == BlockSource::Option {
        parts.push(OWN_ENTRY.to_owned());
    }
    let finding = Finding::new(message).help(parts.join("; ")).label(label);
    Some(finding.fact("threads", asked).fact("block_source", source.name()).fact("largest_block", most))
}

/// The block as a message tells it.
fn size(source: BlockSource, count: u32) -> String {
    match source {
        BlockSource::Sweep => "any block size".to_owned(),
        BlockSource::Option => format!("the {} of --block", threads(count)),
        BlockSource::Comment | BlockSource::Config | BlockSource::ReqNtid | BlockSource::LaunchSite => {
            format!("{} per block", threads(count))
        }
        BlockSource::LaunchBounds => format!("the {} of its launch bounds", threads(count)),
    }
}

/// What is said of one `--block` for all kernels.
const OWN_ENTRY: &str = "--block holds for every kernel without a size of its own: a [[kernel]] entry of warplint.toml tells \
                         that of this one";

/// What makes launch bounds allow a block.
fn wider(threads: u32) -> String {
    format!(
        "`__launch_bounds__({threads})` allows a block of this size, and leaves the compiler fewer registers for each thread"
    )
}

/// Who tells the dynamic shared memory.
fn told_by(context: &Context<'_>, hit: &Hit) -> &'static str {
    match context.told_of(hit).and_then(|told| told.dynamic_shared) {
        Some((_, BlockSource::Config)) => "the configuration",
        Some((_, BlockSource::LaunchSite)) => "its launch",
        _ => "--dynamic-shared",
    }
}

fn help(target: &Target, judged: &Judged, reasons: &[Refusal], largest: Option<u32>, told: &str) -> String {
    let mut parts: Vec<String> = Vec::new();
    if let Some(largest) = largest {
        parts.push(format!("the largest block that fits has {}", threads(largest)));
    }
    parts.extend(reasons.iter().filter_map(|reason| cure(target, judged, reason, told)));
    if is_of_option(judged) {
        parts.push(OWN_ENTRY.to_owned());
    }
    if parts.is_empty() {
        parts.push("no block size fits with what the kernel uses".to_owned());
    }
    parts.join("; ")
}

/// What would make one refusal go away.
fn cure(target: &Target, judged: &Judged, reason: &Refusal, told: &str) -> Option<String> {
    let launch = &judged.launch;
    match *reason {
        Refusal::RegistersPerBlock { .. } | Refusal::RegisterFile { .. } | Refusal::RegistersPerThread { .. } => {
            let fits = |registers: &u32| {
                let changed = launch.with_registers(*registers);
                occupancy(target, &changed).is_ok_and(|answer| answer.limits.registers != Some(0))
            };
            let most = (1..launch.registers.min(256)).rev().find(fits)?;
            Some(format!(
                "`__launch_bounds__({})` makes the compiler keep to the {most} registers per thread that a block of \
                 this size may use, at the price of spills",
                launch.threads
            ))
        }
        Refusal::SharedMemory { asked, most, .. } => {
            let over = u32::try_from(asked - u64::from(most.get())).ok().map(Bytes)?;
            let told = match launch.dynamic_shared {
                Bytes(0) => String::new(),
                dynamic => format!(", {dynamic} of which are dynamic, as {told} says"),
            };
            Some(format!("{over} of the {} per block must go{told}", shared_bytes(judged)))
        }
        // The most threads that any GPU launches.
        Refusal::Bounds { threads, .. } => (threads <= target.max_threads_per_block).then(|| wider(threads)),
        Refusal::Threads { .. } | Refusal::DynamicMaximum { .. } | Refusal::Cluster { .. } | Refusal::Count { .. } => {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::rules::records::{named, record};
    use crate::rules::testing::{human, human_with_log, lint, sources, with_log};

    fn found(arch: &str, used: &str, args: &[&str]) -> String {
        lint(&record(arch, used), args).join("\n")
    }

    #[test]
    fn warps_are_counted_up_to_a_multiple_of_four() {
        let message = found("sm_89", "162 registers", &["--block", "416"]);
        assert_eq!(
            message,
            "error[unlaunchable-kernel] `k` cannot be launched with the 416 threads of --block on sm_89: 13 warps of 5376 \
             registers, counted as 16 at launch, need 86016 registers, and a block may take 65536"
        );
        assert!(!found("sm_89", "162 registers", &["--block", "384"]).contains("unlaunchable"));
    }

    #[test]
    fn what_plain_division_lets_pass_is_refused() {
        for (arch, registers, block) in [
            ("sm_80", 224, "288"),
            ("sm_80", 255, "257"),
            ("sm_90", 169, "384"),
            ("sm_53", 33, "1024"),
            ("sm_103", 156, "512"),
        ] {
            let message = found(arch, &format!("{registers} registers"), &["--block", block]);
            assert!(message.contains("error[unlaunchable-kernel]"), "{arch} {registers} {block}: {message}");
        }
        assert!(!found("sm_90", "168 registers", &["--block", "384"]).contains("unlaunchable"));
    }

    #[test]
    fn sixteen_bytes_too_many_are_said_with_both_sizes() {
        let args = ["--block", "128", "--dynamic-shared", "232448"];
        assert_eq!(
            found("sm_90", "32 registers, 16 bytes smem", &args),
            "error[unlaunchable-kernel] `k` cannot be launched with the 128 threads of --block on sm_90: 232464 B of shared \
             memory, and a block may take 232448 B"
        );
        assert!(!found("sm_90", "32 registers", &args).contains("unlaunchable"));
    }

    #[test]
    fn one_block_size_for_a_whole_log_is_one_cause() {
        let log = ["one", "two", "three"].map(|name| named(name, "sm_90", "128 registers")).concat();
        let found = human(&log, &["--block", "1024"]);
        assert_eq!(found.matches("cannot be launched").count(), 1, "{found}");
        assert!(found.contains("also: `two` and `three`"), "{found}");
        assert_eq!(lint(&log, &["--block", "1024"]).len(), 3);
    }

    #[test]
    fn without_a_block_size_it_takes_that_none_fits() {
        assert_eq!(found("sm_89", "20 registers, 1024 bytes smem", &[]), "");
        let message = found("sm_89", "20 registers, 1024 bytes smem", &["--dynamic-shared", "99K"]);
        assert!(message.contains("cannot be launched with any block size on sm_89"), "{message}");
        assert!(!found("sm_90", "255 registers", &[]).contains("unlaunchable"));
    }

    #[test]
    fn a_block_over_the_launch_bounds_is_refused_whoever_tells_it() {
        let text = |above: &str| {
            format!("{above}__global__ void __launch_bounds__(128) k(float* p) {{ p[threadIdx.x] = 0; }}\n")
        };
        let log = named("_Z1kPf", "sm_90", "20 registers");
        let plain = text("");
        let over = |size: &str, on: &str| {
            format!(
                "error[unlaunchable-kernel] `k` cannot be launched with {size}{on}: 256 threads a block, and its launch bounds allow 128"
            )
        };
        let args = ["--block", "256"];
        assert_eq!(with_log(&[("k.cu", &plain)], &log, &args), [over("the 256 threads of --block", " on sm_90")]);
        assert_eq!(sources(&[("k.cu", &plain)], &args), [over("the 256 threads of --block", "")]);
        let comment = text("// warplint: block=256\n");
        assert_eq!(with_log(&[("k.cu", &comment)], &log, &[]), [over("256 threads per block", " on sm_90")]);
        assert_eq!(sources(&[("k.cu", &comment)], &[]), [over("256 threads per block", "")]);
        assert!(with_log(&[("k.cu", &plain)], &log, &["--block", "128"]).is_empty());
        // A launch is told where it stands.
        let launch = format!("{plain}void host(float* p, int n) {{ k<<<n, 256>>>(p); }}\n");
        let told = with_log(&[("k.cu", &launch)], &log, &[]);
        assert!(told.len() == 1 && told[0].contains("launch-bounds-exceeded"), "{told:?}");
    }

    #[test]
    fn a_launch_in_a_source_of_more_threads_than_any_gpu_launches_fails() {
        let found = |block: &str| {
            let text =
                format!("__global__ void k(float* p) {{}}\nvoid host(float* p, int n) {{ k<<<n, {block}>>>(p); }}\n");
            sources(&[("k.cu", &text)], &[])
        };
        assert_eq!(
            found("2048"),
            [
                "error[unlaunchable-kernel] `k` cannot be launched with this block: a block of 2048 has 2048 threads, and no \
                 GPU launches more than 1024"
            ]
        );
        let deep = |block: &str| {
            let text =
                format!("__global__ void k(float* p) {{}}\nvoid host(float* p, int n) {{ k<<<n, {block}>>>(p); }}\n");
            human_with_log(&[("k.cu", &text)], "")
        };
        assert!(deep("dim3(1, 1, 128)").contains("help: a block has 1024 threads in x and in y at most, and 64 in z"));
        assert!(deep("dim3(33, 32)").contains("help: give each thread several elements"));
        assert_eq!(found("dim3(33, 32)").len(), 1);
        assert_eq!(found("dim3(1, 1, 65)").len(), 1);
        assert!(found("1024").is_empty() && found("dim3(32, 32)").is_empty() && found("dim3(2048, n)").is_empty());
    }

    #[test]
    fn a_constant_dimension_that_no_gpu_launches_fails_whatever_the_others_are() {
        let found = |launch: &str| {
            let text = format!(
                "#define N 100\n__global__ void k(float* p) {{}}\nvoid host(float* p, unsigned n) {{ k<<<{launch}>>>(p); }}\n"
            );
            sources(&[("k.cu", &text)], &[])
        };
        assert_eq!(
            found("N / 256, 256"),
            ["error[unlaunchable-kernel] `k` cannot be launched with a grid of 0 blocks in x: every such launch fails"]
        );
        for launch in
            ["0, 256", "n, 0", "n, -1", "dim3(n, 65536), 64", "0x80000000u, 64", "dim3(1, 1, 0), n", "n, dim3(n, 0)"]
        {
            let told = found(launch);
            assert!(told.len() == 1 && told[0].contains("every such launch fails"), "{launch}: {told:?}");
        }
        for launch in ["n, 256", "0x7fffffff, 64", "dim3(70000, 65535, 65535), 64", "n / N, 64", "4294967297, 64"] {
            assert!(found(launch).is_empty(), "{launch}");
        }
    }

    #[test]
    fn no_other_rule_on_occupancy_speaks_of_it() {
        assert_eq!(found("sm_90", "169 registers", &["--block", "384"]).lines().count(), 1);
    }
}
