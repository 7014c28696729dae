//! `warplint occupancy`: the calculator.

use std::io::Write;

use clap::Args;
use miette::Diagnostic;
use thiserror::Error;

use super::options::{BlockArgs, OutArgs};
use crate::gpu::{Gpu, LaunchError};
use crate::model::BlockSize;
use crate::output;
use crate::report::occupancy::{Calculation, Request, human, json};
use crate::report::{DataFormat, Style};

/// Compute how many blocks and warps of a launch an SM holds, what limits them, and what the nearest changes give
#[derive(Args, Debug)]
pub struct OccupancyArgs {
    /// GPU to compute for: a product (a100, h100-sxm5), sm_90, 9.0, or a file with device figures; repeat to compare
    #[arg(long, value_name = "NAME", required = true)]
    pub gpu: Vec<String>,
    /// Threads a block
    #[arg(long, value_name = "X[,Y[,Z]]")]
    pub block: BlockSize,
    /// Registers a thread, as the compiler prints them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=255))]
    pub registers: u32,
    /// What else a block takes.
    #[command(flatten)]
    pub takes: BlockArgs,
    /// Where the report goes.
    #[command(flatten)]
    pub out: OutArgs,
}

/// The launch makes no sense on a GPU.
#[derive(Debug, Error, Diagnostic)]
#[error("no occupancy can be computed for {gpu}")]
struct CannotCompute {
    gpu: String,
    #[source]
    error: LaunchError,
}

/// Runs the command.
///
/// # Errors
/// When a GPU is not known, the launch makes no sense, or the report cannot be written.
pub fn run(args: &OccupancyArgs, style: &Style, out: &mut dyn Write) -> miette::Result<()> {
    let request = Request {
        block: args.block,
        launch: args.takes.launch(args.registers, args.block.threads()),
        cluster: args.takes.cluster,
    };
    let mut calculations = Vec::new();
    for name in &args.gpu {
        let gpu = Gpu::resolve(name)?;
        let shown = gpu.name.clone();
        let calculation = Calculation::new(gpu, &request).map_err(|error| CannotCompute { gpu: shown, error })?;
        calculations.push(calculation);
    }
    output::write(args.out.output.as_deref(), out, |out| match args.out.format {
        DataFormat::Human => human(&calculations, &request, args.out.style(*style), out),
        DataFormat::Json => json(&calculations, &request, out),
    })?;
    Ok(())
}
