//! How many warps hide a latency: while one waits, its scheduler issues the independent instructions of the others.

/// How long something takes, in cycles: about, and not on any GPU in particular.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Latency {
    /// The shortest.
    pub from: u32,
    /// The longest.
    pub to: u32,
}

/// A load from global memory that no cache answers. Source: the execution model that warplint applies.
pub const GLOBAL_LOAD: Latency = Latency { from: 400, to: 800 };

/// An arithmetic instruction. Source: the same.
pub const ARITHMETIC: Latency = Latency { from: 4, to: 20 };

/// Warps that a scheduler needs to hide `cycles`, where a warp has `independent` instructions to issue before it waits and
/// the scheduler issues `issues` in a cycle. Little's law.
#[must_use]
pub fn warps_to_hide(cycles: u32, independent: u32, issues: u32) -> u64 {
    (u64::from(cycles) * u64::from(issues.max(1))).div_ceil(u64::from(independent.max(1)))
}

/// Independent instructions that each warp needs, to hide `cycles` where `schedulers` share `warps`; `None` without warps.
#[must_use]
pub fn instructions_to_hide(cycles: u32, issues: u32, warps: u32, schedulers: u32) -> Option<u64> {
    let wanted = u64::from(cycles) * u64::from(issues.max(1)) * u64::from(schedulers);
    (warps > 0).then(|| wanted.div_ceil(u64::from(warps)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_the_independent_instructions_need_half_the_warps() {
        let needed = [1, 2, 16, 50, 1000].map(|independent| warps_to_hide(400, independent, 1));
        assert_eq!(needed, [400, 200, 25, 8, 1]);
        assert_eq!(warps_to_hide(400, 16, 2), 50);
    }

    #[test]
    fn what_hides_a_latency_from_one_side_hides_it_from_the_other() {
        for cycles in [4, 20, 400, 800] {
            for warps in 1..=64 {
                let instructions = instructions_to_hide(cycles, 1, warps * 4, 4).expect("some warps");
                let instructions = u32::try_from(instructions).expect("few");
                assert!(warps_to_hide(cycles, instructions, 1) <= u64::from(warps));
                assert!(instructions == 1 || warps_to_hide(cycles, instructions - 1, 1) > u64::from(warps));
            }
        }
        assert_eq!(instructions_to_hide(400, 1, 0, 4), None);
    }
}
