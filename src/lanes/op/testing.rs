//! Instructions as text, for tests.

use super::compute;
use crate::lanes::testing::with_code;
use crate::lanes::value::{ALL, Extent, Value};

pub(super) const EXTENT: Extent = Extent { threads: 64, environments: ALL };
pub(super) const M1: u64 = 0xffff_ffff;
pub(super) const M1_64: u64 = u64::MAX;

/// What each destination of an instruction holds, for values of its sources.
pub(super) fn results(line: &str, args: &[Value]) -> Vec<Value> {
    with_code(&format!("{line};"), |code| {
        let one = &code.instructions[0];
        let places = code.destinations(one).len();
        (0_u16..).take(places).map(|place| compute(one, place, places, args, EXTENT)).collect()
    })
}

/// The same for operands that are `args` in every lane.
fn result(line: &str, args: &[u64]) -> u64 {
    let args: Vec<Value> = args.iter().map(|arg| Value::constant(*arg)).collect();
    results(line, &args)[0].as_constant().expect("one value")
}

/// Checks what instructions hold for operands that are the same in every lane.
pub(super) fn check(cases: &[(&str, &[u64], u64)]) {
    for (line, args, expected) in cases {
        assert_eq!(result(line, args), *expected, "{line} of {args:x?}");
    }
}

/// The number of each thread.
pub(super) fn threads() -> Value {
    Value::of_threads(EXTENT, |thread| thread as u64)
}
