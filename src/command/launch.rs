//! `warplint launch`: how a launch is cut into warps and fills a GPU.

use std::io::Write;

use clap::Args;
use miette::Diagnostic;
use thiserror::Error;

use super::options::{BlockArgs, OutArgs};
use crate::gpu::cut::Cut;
use crate::gpu::{Gpu, LaunchError};
use crate::model::{BlockSize, Extent, GridSize};
use crate::output;
use crate::report::launch::{Found, Request, human, json};
use crate::report::{DataFormat, Style};

/// Show how a launch is cut into warps: idle lanes, the edge of the problem, fills of the GPU and their tail
#[derive(Args, Debug)]
pub struct LaunchArgs {
    /// GPU to launch on: a product (a100, h100-sxm5), sm_90, 9.0, or a file with device figures; repeatable
    #[arg(long, value_name = "NAME", required = true)]
    pub gpu: Vec<String>,
    /// Blocks of the grid
    #[arg(long, value_name = "X[,Y[,Z]]")]
    pub grid: GridSize,
    /// Threads a block
    #[arg(long, value_name = "X[,Y[,Z]]")]
    pub block: BlockSize,
    /// Elements of the problem, one a thread: the bounds that the kernel checks; a dimension left out is not checked
    #[arg(long, value_name = "X[,Y[,Z]]")]
    pub extent: Option<Extent>,
    /// Registers a thread, as the compiler prints them; without them, figures of the whole GPU are bounds
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=255))]
    pub registers: Option<u32>,
    /// What else a block takes.
    #[command(flatten)]
    pub takes: BlockArgs,
    /// Independent instructions that a warp has to issue before it waits for a load; default: a table of several
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub independent: Option<u32>,
    /// Where the report goes.
    #[command(flatten)]
    pub out: OutArgs,
}

/// The launch makes no sense on a GPU.
#[derive(Debug, Error, Diagnostic)]
#[error("nothing can be computed for {gpu}")]
struct CannotCompute {
    gpu: String,
    #[source]
    error: LaunchError,
}

/// Runs the command.
///
/// # Errors
/// When a GPU is not known, the launch makes no sense, or the report cannot be written.
pub fn run(args: &LaunchArgs, style: &Style, out: &mut dyn Write) -> miette::Result<()> {
    let request = Request {
        cut: Cut::new(args.grid, args.block, args.extent),
        registers: args.registers,
        launch: args.takes.launch(args.registers.unwrap_or(0), args.block.threads()),
        cluster: args.takes.cluster,
        independent: args.independent,
    };
    let mut found = Vec::new();
    for name in &args.gpu {
        let gpu = Gpu::resolve(name)?;
        let shown = gpu.name.clone();
        found.push(Found::new(gpu, &request).map_err(|error| CannotCompute { gpu: shown, error })?);
    }
    output::write(args.out.output.as_deref(), out, |out| match args.out.format {
        DataFormat::Human => human(&found, &request, args.out.style(*style), out),
        DataFormat::Json => json(&found, &request, out),
    })?;
    Ok(())
}
