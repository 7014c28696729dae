//! The warplint program.

use std::process::ExitCode;

use warplint::run::{run, with_process_streams};

fn main() -> ExitCode {
    with_process_streams(|streams| run(std::env::args_os().collect(), streams)).into()
}
