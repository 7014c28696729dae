//! `warplint gpus`: what is known about GPUs, and where it is published.

use std::io::Write;

use clap::Args;

use crate::gpu::{Gpu, Target, products};
use crate::output;
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
    let named = args.name.as_deref().map(Gpu::resolve).transpose()?;
    output::write(None, out, |out| match (&named, args.format) {
        (Some(gpu), DataFormat::Human) => one(gpu, *style, out),
        (Some(gpu), DataFormat::Json) => json(std::slice::from_ref(gpu), out),
        (None, DataFormat::Human) => list(*style, out),
        (None, DataFormat::Json) => json(&everything(), out),
    })?;
    Ok(())
}

/// Every compute capability, and then every product.
fn everything() -> Vec<Gpu> {
    Target::known().filter_map(Gpu::of).chain(products().map(Gpu::from)).collect()
}
