//! One module a command: its options, and the straight line from them to a report.

pub mod baseline;
pub mod diff;
pub mod gpus;
pub mod init;
pub mod launch;
pub mod occupancy;
pub mod options;
pub mod packaging;
