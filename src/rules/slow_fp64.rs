//! `slow-fp64`: literals make a kernel compute in double precision, on a GPU that is slow at that.

use serde::Deserialize;

use super::Context;
use super::limits::counted;
use crate::finding::{Cause, Finding, Hit, Label, Subject};
use crate::gpu::Gpu;
use crate::model::{Doubles, Family, symbol};

/// Results of single precision for each of double precision, from which on a GPU is slow at those.
const SLOW: u32 = 32;

/// The rule has no options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {}

pub(super) fn check(context: &Context<'_>, _: &Options, hits: &mut Vec<Hit>) {
    let gpus = (0..).zip(&context.numbers.gpus);
    let slow: Vec<(u32, &Gpu, u32)> = gpus.filter_map(|(at, gpu)| Some((at, gpu, rate(gpu)?))).collect();
    if slow.is_empty() {
        return;
    }
    for (at, family) in context.report.families.iter().enumerate() {
        let Some(doubles) = doubles(context, family).filter(|_| context.is_of_run(family)) else { continue };
        let slowest =
            slow.iter().filter(|(_, gpu, _)| runs(context, family, gpu)).max_by_key(|(at, _, rate)| (*rate, !*at));
        if let Some((gpu, ..)) = slowest {
            let hit = Hit::family(at, doubles.count).caused_by(Cause::Single);
            hits.push(Hit { because: Some(Subject::Gpu(*gpu)), ..hit });
        }
    }
}

/// How many results of single precision a product gives in the time of one of double precision, where that is many.
fn rate(gpu: &Gpu) -> Option<u32> {
    gpu.product?;
    let rate = gpu.target.fp32_lanes_per_sm.checked_div(gpu.target.fp64_per_clock_per_sm?)?;
    (rate >= SLOW).then_some(rate)
}

fn doubles(context: &Context<'_>, family: &Family) -> Option<Doubles> {
    family.main(context.report)?.doubles
}

/// Whether the kernel may run on a GPU: one that was compiled, and not for it, does not.
fn runs(context: &Context<'_>, family: &Family, gpu: &Gpu) -> bool {
    let kernels = family.kernels.iter().filter_map(|at| context.report.kernels.get(*at as usize));
    let mut compiled = kernels.filter(|kernel| kernel.arch.is_some()).peekable();
    compiled.peek().is_none() || compiled.any(|kernel| gpu.takes(kernel))
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    let family = context.family_of(hit);
    let gpu = match hit.because {
        Some(Subject::Gpu(at)) => context.numbers.gpus.get(at as usize),
        _ => None,
    };
    let found = family.and_then(|family| Some((family, doubles(context, family)?, gpu?, rate(gpu?)?)));
    let Some((family, doubles, gpu, rate)) = found else {
        return Finding::new("literals make a kernel compute in double precision");
    };
    let first = symbol::printable(&String::from_utf8_lossy(context.report.names.get(doubles.first))).into_owned();
    let called = context.called(context.name_of_family(family));
    let literals = match doubles.count {
        1 => format!("the literal `{first}` makes {called} compute"),
        count => format!("{}, the first of them `{first}`, make {called} compute", counted(count, "literal")),
    };
    let message =
        format!("{literals} in double precision, at 1/{rate} of the rate of single precision on {}", gpu.name);
    let help = format!(
        "without an `f` behind it a literal is a `double`, and so is what is computed with it: `{first}f` keeps a `float` a \
         `float`; results can differ in their last digits"
    );
    let (start, end) = doubles.span;
    let label = Label { quote: doubles.quote, lead: None, name: None, start, end, text: "a `double`".to_owned() };
    let mut finding = Finding::new(message).help(help).label(Some(label));
    finding.gpu = Some(gpu.name.clone());
    finding.fact("literals", doubles.count).fact("fp64_rate", rate)
}

#[cfg(test)]
mod tests {
    use super::super::records::named;
    use super::super::testing::{sources, with_log};

    const TEXT: &str =
        "__global__ void k(float* p, int n) {\n  int i = threadIdx.x;\n  if (i < n) p[i] = 0.1 * p[i] + 2.0;\n}\n";

    fn found(gpu: &str) -> Vec<String> {
        sources(&[("k.cu", TEXT)], &["--gpu", gpu])
    }

    #[test]
    fn literals_are_told_on_a_product_that_is_slow_at_doubles() {
        assert_eq!(
            found("rtx4090"),
            [
                "note[slow-fp64] 2 literals, the first of them `0.1`, make `k` compute in double precision, at 1/64 of the rate of single precision on rtx-4090"
            ]
        );
        assert!(found("t4")[0].contains("1/32"), "{:?}", found("t4"));
    }

    #[test]
    fn a_product_that_is_fast_and_an_architecture_are_silent() {
        assert!(found("h100-sxm5").is_empty());
        assert!(found("sm_89").is_empty());
        assert!(sources(&[("k.cu", TEXT)], &[]).is_empty());
    }

    #[test]
    fn a_kernel_compiled_for_another_gpu_is_silent() {
        let told = |arch: &str| {
            let log = named("_Z1kPfi", arch, "20 registers");
            let found = with_log(&[("k.cu", TEXT)], &log, &["--gpu", "rtx4090", "--gpu", "h100-sxm5"]);
            found.iter().filter(|line| line.contains("[slow-fp64]")).count()
        };
        assert_eq!((told("sm_89"), told("sm_80"), told("sm_90")), (1, 1, 0));
    }

    #[test]
    fn a_comment_before_the_kernel_or_on_the_line_silences_it() {
        let before = format!("// warplint: allow(slow-fp64) it must be exact\n{TEXT}");
        assert!(sources(&[("k.cu", &before)], &["--gpu", "rtx4090"]).is_empty());
        let on = TEXT.replace("2.0;", "2.0; // warplint: allow(slow-fp64) it must be exact");
        assert!(sources(&[("k.cu", &on)], &["--gpu", "rtx4090"]).is_empty());
    }
}
