//! The warplint program.

use std::process::ExitCode;
use std::thread;

use warplint::outcome::Outcome;
use warplint::run::{run, with_process_streams};

/// Demangling recurses as deep as templates nest: what that may take, and twice as much where nothing is optimised.
const STACK: usize = 8 * 1024 * 1024 * if cfg!(debug_assertions) { 2 } else { 1 };

fn main() -> ExitCode {
    let work = || with_process_streams(|streams| run(std::env::args_os().collect(), streams));
    if has_room() {
        return work().into();
    }
    let outcome = match thread::Builder::new().stack_size(STACK).spawn(work) {
        Ok(worker) => worker.join().unwrap_or(Outcome::Unable),
        Err(_) => work(),
    };
    outcome.into()
}

/// Whether the stack of the main thread is large enough: on Linux it mostly is, and a thread costs a tenth of what a short
/// run does.
#[cfg(unix)]
fn has_room() -> bool {
    use nix::sys::resource::{Resource, getrlimit};
    getrlimit(Resource::RLIMIT_STACK).is_ok_and(|(soft, _)| usize::try_from(soft).is_ok_and(|soft| soft >= STACK))
}

/// Whether the stack of the main thread is large enough: it is of 1 MiB.
#[cfg(not(unix))]
fn has_room() -> bool {
    false
}
