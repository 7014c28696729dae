//! A log in memory, for tests.

use super::{Echo, EchoMode, read_log};
use crate::model::Report;

/// What `log` tells.
pub(super) fn read(log: &str) -> Report {
    let mut report = Report::default();
    let mut sink = std::io::sink();
    read_log(&mut log.as_bytes(), "x.log", &mut report, &mut Echo::new(EchoMode::None, &mut sink))
        .expect("a log in memory");
    report
}
