//! `wrong-target`: a GPU was asked for that runs none of the code in the log.

use serde::Deserialize;

use super::Context;
use super::limits::and;
use crate::finding::{Finding, Hit};
use crate::model::Arch;

/// The rule has no options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {}

pub(super) fn check(context: &Context<'_>, _: &Options, hits: &mut Vec<Hit>) {
    if archs(context).is_none() {
        return;
    }
    // A kernel's own architecture, which is judged for where no GPU is asked for, runs that kernel.
    let gpus = context.numbers.gpus.iter().enumerate();
    let wrong = gpus.filter(|(_, gpu)| !context.report.kernels.iter().any(|kernel| gpu.takes(kernel)));
    hits.extend(wrong.map(|(at, _)| Hit::gpu(at)));
}

/// The architectures of all kernels and functions; `None` where there are none, or one is unknown.
fn archs(context: &Context<'_>) -> Option<Vec<Arch>> {
    let mut archs: Vec<Arch> = Vec::new();
    for kernel in &context.report.kernels {
        let arch = kernel.arch?;
        if archs.last() != Some(&arch) && !archs.contains(&arch) {
            archs.push(arch);
        }
    }
    archs.sort_unstable();
    (!archs.is_empty()).then_some(archs)
}

/// Whether PTX is all that was given, as it is or assembled.
fn is_ptx_alone(context: &Context<'_>) -> bool {
    let report = context.report;
    let is_ptx = |input: u32| report.modules.iter().any(|module| module.input == input);
    (0..).zip(&report.inputs).all(|(at, input)| input.is_source || is_ptx(at))
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    let (Some(gpu), Some(archs)) = (context.gpu_of(hit), archs(context)) else {
        return Finding::new("there is no code for a GPU that was asked for");
    };
    let archs: Vec<String> = archs.iter().map(Arch::to_string).collect();
    let own = gpu.arch.map(|arch| arch.to_string()).unwrap_or_default();
    let named = if own == gpu.name { own.clone() } else { format!("{} ({own})", gpu.name) };
    let number = own.trim_start_matches("sm_");
    let ptx = is_ptx_alone(context);
    let code = if ptx { "the PTX" } else { "the code in the log" };
    let help = if ptx {
        format!(
            "compile with -arch=compute_{number}, or for an earlier one without `a` or `f`: PTX is compiled at load for its \
             own architecture and later ones, that of an `a` target for that one only, that of an `f` target for its family"
        )
    } else {
        format!(
            "add -gencode arch=compute_{number},code=sm_{number} to the nvcc command: registers, spills and shared \
             memory differ by architecture, and without it the log has only the numbers of a GPU you do not have"
        )
    };
    Finding::new(format!("none of {code} runs on {named}: it is for {}", and(&archs)))
        .help(help)
        .fact("gpu_arch", own)
        .fact("archs", archs.join(" "))
}

#[cfg(test)]
mod tests {
    use crate::rules::records::{named, record};
    use crate::rules::testing::{kernel, lint};

    fn found(arch: &str, args: &[&str]) -> Vec<String> {
        lint(&record(arch, "20 registers"), args)
    }

    #[test]
    fn a_gpu_of_another_generation_is_named_once() {
        let two = named("a", "sm_80", "20 registers") + &named("b", "sm_86", "20 registers");
        assert_eq!(
            lint(&two, &["--gpu", "h100-sxm5"]),
            ["warning[wrong-target] none of the code in the log runs on h100-sxm5 (sm_90): it is for sm_80 and sm_86"]
        );
        assert_eq!(found("sm_80", &["--gpu", "sm_75", "--gpu", "sm_90"]).len(), 2);
    }

    #[test]
    fn code_for_a_later_minor_version_does_not_run() {
        assert_eq!(found("sm_86", &["--gpu", "sm_80"]).len(), 1);
        assert_eq!(found("sm_100a", &["--gpu", "sm_103"]).len(), 1);
    }

    #[test]
    fn code_that_runs_is_silent_with_its_suffix_too() {
        assert!(found("sm_90a", &["--gpu", "sm_90"]).is_empty());
        assert!(found("sm_100f", &["--gpu", "sm_103"]).is_empty());
        assert!(found("sm_80", &["--gpu", "sm_86"]).is_empty());
        assert!(found("sm_80", &[]).is_empty());
    }

    #[test]
    fn one_kernel_that_runs_is_enough_and_an_unknown_architecture_may_be_it() {
        let two = named("a", "sm_80", "20 registers") + &named("b", "sm_90", "20 registers");
        assert!(lint(&two, &["--gpu", "sm_90"]).is_empty());
        let unknown = "nvlink info    : Function properties for 'k':\n\
                       nvlink info    : used 20 registers, 0 stack, 0 bytes smem, 344 bytes cmem[0], 0 bytes lmem\n";
        let found = lint(unknown, &["--gpu", "sm_90"]);
        assert!(found.iter().all(|line| !line.contains("wrong-target")), "{found:?}");
    }

    #[test]
    fn ptx_is_compiled_at_load_for_what_comes_later() {
        let ptx = |target: &str, gpu: &str| {
            let found = lint(&kernel("").replace("sm_90", target), &["--gpu", gpu]);
            found.into_iter().filter(|line| line.contains("wrong-target")).collect::<Vec<_>>()
        };
        for (target, gpu) in
            [("sm_80", "h100-sxm5"), ("sm_90", "sm_120"), ("sm_90a", "h100-sxm5"), ("sm_100f", "sm_103")]
        {
            assert!(ptx(target, gpu).is_empty(), "{target} {gpu}");
        }
        assert_eq!(
            ptx("sm_90", "a100-sxm4-80gb"),
            ["warning[wrong-target] none of the PTX runs on a100-sxm4-80gb (sm_80): it is for sm_90"]
        );
        assert_eq!(ptx("sm_90a", "sm_100").len(), 1);
        assert_eq!(ptx("sm_100f", "sm_120").len(), 1);
    }
}
