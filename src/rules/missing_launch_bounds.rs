//! `missing-launch-bounds`: the size of a kernel's launches is known, and the compiler was not told of it.

use serde::Deserialize;

use super::Context;
use super::limits::threads;
use crate::analyse::{BlockSource, Told};
use crate::finding::{Cause, Finding, Hit};
use crate::model::{Family, Stated};

/// The rule has no options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {}

pub(super) fn check(context: &Context<'_>, _: &Options, hits: &mut Vec<Hit>) {
    for (at, family) in context.report.families.iter().enumerate() {
        let is_bound = context.report.families[at].bounds(context.report);
        let says = is_bound.max_threads != Stated::No || is_bound.block.is_some();
        let is_defined = family.main(context.report).is_some_and(|main| main.is_definition);
        if is_defined
            && !says
            && let Some(most) = largest(context, family)
        {
            hits.push(Hit::family(at, most).caused_by(Cause::Single));
        }
    }
}

/// Threads of the largest block that something tells of all kernels of a family.
fn largest(context: &Context<'_>, family: &Family) -> Option<u32> {
    let known = |told: &Told| {
        let is_compiled_in =
            told.bounds.is_some_and(|bounds| bounds.max_threads.is_some() || bounds.required.is_some());
        let (block, source) = told.block.filter(|_| !is_compiled_in)?;
        matches!(source, BlockSource::Comment | BlockSource::Config | BlockSource::LaunchSite | BlockSource::Option)
            .then(|| block.threads())
    };
    let ids = family.kernels.iter().flat_map(|at| context.numbers.told_ids(*at as usize));
    let sizes: Option<Vec<u32>> = ids.map(|id| context.numbers.told.get(id).and_then(known)).collect();
    let all_launches = || family.launches.iter().filter_map(|spot| context.report.launch(*spot));
    // Some launch that is not known may be larger.
    if all_launches().any(|site| site.block_size().is_none()) {
        return None;
    }
    sizes?.into_iter().max()
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    let family = context.family_of(hit);
    let (Some(family), Some(most)) = (family, family.and_then(|family| largest(context, family))) else {
        return Finding::new("a kernel has no launch bounds");
    };
    let called = context.called(context.name_of_family(family));
    let bound = most.div_ceil(32) * 32;
    let message = format!(
        "{called} has no launch bounds, though it is launched with {} per block: the compiler keeps it ready for 1024",
        if bound == most { threads(most) } else { format!("no more than {}", threads(most)) }
    );
    let help = format!(
        "`__launch_bounds__({bound})` before its name lets the compiler use as many registers as a block of that size may \
         have, and makes a larger launch fail instead of running slowly"
    );
    let label = family.main(context.report).map(|main| context.declared_label(main, "no bounds"));
    Finding::new(message).help(help).label(label).fact("threads", most)
}

#[cfg(test)]
mod tests {
    use super::super::testing::sources;

    fn found(head: &str, launches: &str) -> Vec<String> {
        let text = format!("__global__ void {head}k(float* p) {{}}\nvoid host(float* p, int n) {{\n{launches}\n}}\n");
        sources(&[("k.cu", &text)], &["--warn", "missing-launch-bounds"])
    }

    #[test]
    fn a_kernel_without_bounds_whose_launches_are_known_is_told() {
        assert_eq!(
            found("", "k<<<n, 128>>>(p);\nk<<<n, 256>>>(p);"),
            [
                "warning[missing-launch-bounds] `k` has no launch bounds, though it is launched with 256 threads per block: \
                 the compiler keeps it ready for 1024"
            ]
        );
    }

    #[test]
    fn bounds_and_launches_that_are_not_known_are_silent() {
        assert!(found("__launch_bounds__(256) ", "k<<<n, 256>>>(p);").is_empty());
        assert!(found("__launch_bounds__(N) ", "k<<<n, 256>>>(p);").is_empty());
        assert!(found("", "k<<<n, 256>>>(p);\nk<<<n, n>>>(p);").is_empty());
        assert!(found("", "").is_empty());
    }
}
