//! `warplint occupancy`: the calculator.

use std::io::Write;

use clap::Args;
use miette::{Diagnostic, IntoDiagnostic};
use thiserror::Error;

use crate::gpu::{Gpu, Launch, LaunchError};
use crate::model::{BlockSize, Bytes, parse_size};
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
    /// Static shared memory a block, as the compiler prints it; K, KB and KiB are 1024 bytes
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "0", hide_default_value = true)]
    pub shared: Bytes,
    /// Dynamic shared memory a block
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "0", hide_default_value = true)]
    pub dynamic_shared: Bytes,
    /// Barriers a block, as the compiler prints them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=16))]
    pub barriers: Option<u32>,
    /// Blocks a cluster
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16))]
    pub cluster: Option<u32>,
    /// Share of the L1 cache wanted as shared memory, percent; default: all that can be
    #[arg(long, value_name = "PCT", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub carveout: Option<u8>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub format: DataFormat,
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
    let request = Request { block: args.block, launch: launch(args), cluster: args.cluster };
    let mut calculations = Vec::new();
    for name in &args.gpu {
        let gpu = Gpu::resolve(name)?;
        let shown = gpu.name.clone();
        let calculation = Calculation::new(gpu, &request).map_err(|error| CannotCompute { gpu: shown, error })?;
        calculations.push(calculation);
    }
    match args.format {
        DataFormat::Human => human(&calculations, &request, *style, out),
        DataFormat::Json => json(&calculations, &request, out),
    }
    .into_diagnostic()
}

fn launch(args: &OccupancyArgs) -> Launch {
    let launch = Launch::new(args.registers, args.block.threads()).with_shared(args.shared, args.dynamic_shared);
    Launch { carveout: args.carveout, barriers: args.barriers.unwrap_or(0), ..launch }
}
