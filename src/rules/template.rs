//! `_template`: one sentence on what the rule finds.

use serde::Deserialize;

use super::Context;
use crate::finding::{Finding, Hit};

/// Options of the rule.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Options {
    /// Bound textures that are tolerated.
    max_textures: u32,
}

/// Runs on every kernel of every log: no words here, they are for what is shown.
pub(super) fn check(context: &Context<'_>, options: &Options, hits: &mut Vec<Hit>) {
    for (at, kernel) in context.entries() {
        let more = kernel.resources.textures.filter(|count| *count > options.max_textures);
        hits.extend(more.map(|count| Hit::kernel(at, count)));
    }
}

/// What is so, with this kernel's numbers; what to do; and where it shows.
pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    let Some(kernel) = context.kernel_of(hit) else { return Finding::new("textures are bound") };
    let textures = kernel.resources.textures.unwrap_or_default();
    let message = format!("{} binds {textures} textures{}", context.called(kernel.name), context.on(kernel));
    let printed = format!("{textures} textures");
    Finding::new(message)
        .help("pass texture objects to the kernel instead")
        .label(context.label(kernel.evidence.usage, &printed, &printed, "bound by name"))
        .fact("textures", textures)
}

#[cfg(test)]
mod tests {
    use crate::rules::testing::lint;

    #[test]
    fn a_kernel_within_the_limit_is_silent() {
        let log = "ptxas info    : Compiling entry function 'k' for 'sm_90'\nptxas info    : Used 8 registers\n";
        let lines = lint(log, &[]);
        assert!(lines.iter().all(|line| !line.contains("[_template]")), "{lines:?}");
    }
}
