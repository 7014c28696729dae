//! `launch-bounds-exceeded`: a launch in the sources with more threads than the kernel's launch bounds allow.

use serde::Deserialize;

use super::Context;
use super::limits::threads;
use crate::analyse::Launched;
use crate::finding::{Finding, Hit};

/// The rule has no options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {}

pub(super) fn check(context: &Context<'_>, _: &Options, hits: &mut Vec<Hit>) {
    for (at, launched, site) in context.launches() {
        // What no GPU launches at all is told as that.
        let Some(block) = site.block_size() else { continue };
        let over =
            bound(context, launched).and_then(|bound| block.threads().checked_sub(bound)).filter(|over| *over > 0);
        hits.extend(over.map(|over| Hit::launch(at, over)));
    }
}

/// The most threads that all kernels allow which a launch may be of.
fn bound(context: &Context<'_>, launched: &Launched) -> Option<u32> {
    let family = context.family_of_launch(launched)?;
    if let Some(bound) = family.bounds(context.report).max_threads.known() {
        return Some(bound);
    }
    // Where the attribute does not fold to a constant, the compiler knows what it is.
    let told = |at: &u32| context.numbers.told(*at as usize).and_then(|told| told.bounds?.max_threads);
    let bounds: Option<Vec<u32>> = family.kernels.iter().map(told).collect();
    bounds?.into_iter().max()
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    let Some((launched, site)) = context.launch_of(hit) else { return Finding::new("a launch exceeds launch bounds") };
    let (Some(bound), Some(block)) = (bound(context, launched), site.block_size()) else {
        return Finding::new("a launch exceeds launch bounds");
    };
    let (asked, called) = (block.threads(), context.launched(launched, site));
    let message = format!(
        "{called} is launched with {} per block, and its launch bounds allow {bound}: every such launch fails",
        threads(asked)
    );
    let help = format!(
        "launch at most {} per block, or raise the bound to `__launch_bounds__({asked})`, which leaves the compiler fewer \
         registers for each",
        threads(bound)
    );
    let label = context.block_label(site, format!("{} per block", threads(asked)));
    let mut finding = Finding::new(message).help(help).label(Some(label));
    let declared = context.family_of_launch(launched).and_then(|family| family.main(context.report));
    finding.beside.extend(declared.map(|declared| context.declared_label(declared, "bounds")));
    finding.mark(format!("{asked} of {bound}")).fact("threads", asked).fact("max_threads", bound)
}

#[cfg(test)]
mod tests {
    use super::super::testing::sources;

    const BOUND: &str = "__global__ void __launch_bounds__(128) k(float* p) { p[threadIdx.x] = 0; }\n";

    fn found(launch: &str) -> Vec<String> {
        sources(&[("k.cu", &format!("{BOUND}void host(float* p, int n) {{\n{launch}\n}}\n"))], &[])
    }

    #[test]
    fn more_threads_than_the_bound_fail() {
        assert_eq!(
            found("k<<<n, 256>>>(p);"),
            [
                "error[launch-bounds-exceeded] `k` is launched with 256 threads per block, and its launch bounds allow 128: \
                 every such launch fails"
            ]
        );
        assert_eq!(found("dim3 b(16, 16);\nk<<<n, b>>>(p);").len(), 1);
    }

    #[test]
    fn as_many_as_the_bound_and_unknown_blocks_are_silent() {
        for launch in ["k<<<n, 128>>>(p);", "k<<<n, n>>>(p);", "other<<<n, 256>>>(p);"] {
            assert!(found(launch).is_empty(), "{launch}");
        }
    }

    #[test]
    fn bounds_that_are_not_known_are_no_bounds() {
        let text = "template <int N> __global__ void __launch_bounds__(N) k(float* p) {}\n\
                    void host(float* p) { k<64><<<1, 256>>>(p); }\n";
        assert!(sources(&[("k.cu", text)], &[]).is_empty());
    }
}
