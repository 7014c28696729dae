//! `warplint gpus`: what is known about GPUs, and where it is published.

use std::io::Write;

use clap::Args;
use miette::IntoDiagnostic;

use crate::gpu::{Gpu, Target, products};
use crate::report::gpus::{json, list, one};
use crate::report::{DataFormat, Style};

/// List the GPUs that are known, or show one in full with the source of each figure
#[derive(Args, Debug)]
pub struct GpusArgs {
    /// A product (a100, h100-sxm5), sm_90, 9.0, or a file with device figures
    pub name: Option<String>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub format: DataFormat,
}

/// Runs the command.
///
/// # Errors
/// When the GPU is not known or the report cannot be written.
pub fn run(args: &GpusArgs, style: &Style, out: &mut dyn Write) -> miette::Result<()> {
    match (&args.name, args.format) {
        (Some(name), DataFormat::Human) => one(&Gpu::resolve(name)?, *style, out),
        (Some(name), DataFormat::Json) => json(&[Gpu::resolve(name)?], out),
        (None, DataFormat::Human) => list(*style, out),
        (None, DataFormat::Json) => json(&everything(), out),
    }
    .into_diagnostic()
}

/// Every compute capability, and then every product.
fn everything() -> Vec<Gpu> {
    Target::known().filter_map(Gpu::of).chain(products().map(Gpu::from)).collect()
}
