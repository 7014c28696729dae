//! The warplint program.

use std::process::ExitCode;
use std::thread;

use warplint::outcome::Outcome;
use warplint::run::{run, with_process_streams};

/// Demangling recurses as deep as templates nest; the main thread's stack is 1 MiB on some systems and 8 on others.
const STACK: usize = 16 * 1024 * 1024;

fn main() -> ExitCode {
    let work = || with_process_streams(|streams| run(std::env::args_os().collect(), streams));
    let outcome = match thread::Builder::new().stack_size(STACK).spawn(work) {
        Ok(worker) => worker.join().unwrap_or(Outcome::Unable),
        Err(_) => work(),
    };
    outcome.into()
}
