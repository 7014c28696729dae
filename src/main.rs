//! The warplint program.

fn main() {}
