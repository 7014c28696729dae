//! What the unit tests of rules share.

use std::ffi::OsString;
use std::io;

use crate::run::{Streams, run};

/// The findings of a lint of `log` with `args`, as `-f short` prints them, without their place.
pub(super) fn lint(log: &str, args: &[&str]) -> Vec<String> {
    let fixed = ["warplint", "--isolated", "--passthrough", "none", "-f", "short"];
    let args: Vec<OsString> = fixed.iter().chain(args).map(OsString::from).collect();
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    run(
        args,
        &mut Streams {
            stdin: &mut io::Cursor::new(log),
            stdin_is_terminal: false,
            stdout: &mut stdout,
            stderr: &mut stderr,
            terminal: None,
        },
    );
    assert!(stderr.is_empty(), "{}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).expect("a report is UTF-8").lines().map(without_place).collect()
}

/// A line without `<stdin>:3:17: `.
fn without_place(line: &str) -> String {
    match line.split_once(": ") {
        Some((place, rest)) if place.starts_with("<stdin>:") => rest.to_owned(),
        _ => line.to_owned(),
    }
}
