//! What a block takes besides threads and registers, and where figures go: options that the calculators share.

use std::path::PathBuf;

use clap::Args;

use crate::cli::ColorChoice;
use crate::gpu::Launch;
use crate::model::{Bytes, parse_size};
use crate::output::is_stdout;
use crate::report::{DataFormat, Style};

/// What a block takes besides threads and registers.
#[derive(Args, Debug)]
pub struct BlockArgs {
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
}

impl BlockArgs {
    /// The launch of such blocks.
    #[must_use]
    pub fn launch(&self, registers: u32, threads: u32) -> Launch {
        let launch = Launch::new(registers, threads).with_shared(self.shared, self.dynamic_shared);
        Launch { carveout: self.carveout, barriers: self.barriers.unwrap_or(0), ..launch }
    }
}

/// Where figures go, and how they look there.
#[derive(Args, Debug)]
pub struct OutArgs {
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub format: DataFormat,
    /// Write the report there, whole or not at all
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Colours: auto (on a terminal), always, never; NO_COLOR and CLICOLOR_FORCE are obeyed
    #[arg(long, value_enum, default_value_t, value_name = "WHEN", hide_possible_values = true)]
    pub color: ColorChoice,
}

impl OutArgs {
    /// How the report looks: what goes into a file has no colours, unless they are asked for.
    #[must_use]
    pub fn style(&self, style: Style) -> Style {
        let color = style.color && (is_stdout(self.output.as_deref()) || self.color == ColorChoice::Always);
        Style { color, ..style }
    }
}
