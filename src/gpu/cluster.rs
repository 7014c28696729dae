//! How many thread-block clusters a device can hold at once.
//!
//! A cluster must fit in one GPC, and the number of SMs of a GPC differs between chips of the same product because
//! faulty ones are switched off. No table can therefore give the exact answer; these are bounds.

/// The most clusters that `sm_count` SMs can hold at once when each SM holds `blocks_per_sm` blocks: an upper bound
/// that takes the SMs as one GPC.
#[must_use]
pub fn cluster_bound(sm_count: u32, blocks_per_sm: u32, cluster: u32) -> u64 {
    u64::from(sm_count) * u64::from(blocks_per_sm) / u64::from(cluster.max(1))
}

/// The same where the SMs of each GPC of the chip are known, which gives the realistic number.
#[must_use]
pub fn cluster_bound_by_gpc(sms_of_gpcs: &[u32], blocks_per_sm: u32, cluster: u32) -> u64 {
    sms_of_gpcs.iter().map(|sms| cluster_bound(*sms, blocks_per_sm, cluster)).sum()
}

/// Whether a cluster of so many blocks can have a shape that divides `grid`, as a launch demands of it.
#[must_use]
pub fn tiles(cluster: u32, grid: [u32; 3]) -> bool {
    let divides = |part: u32, whole: u32| part > 0 && whole.is_multiple_of(part);
    let shapes = (1..=cluster).flat_map(|x| (1..=cluster).map(move |y| (x, y)));
    shapes
        .filter(|(x, y)| divides(x * y, cluster))
        .any(|(x, y)| divides(x, grid[0]) && divides(y, grid[1]) && divides(cluster / (x * y), grid[2]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_divides_the_grid_in_some_shape_or_not_at_all() {
        assert!(tiles(8, [4096, 1, 1]) && tiles(8, [2, 2, 2]) && tiles(8, [6, 4, 1]) && tiles(1, [7, 1, 1]));
        assert!(!tiles(8, [4, 1, 1]) && !tiles(2, [3, 5, 7]) && !tiles(8, [2, 2, 1]));
    }

    #[test]
    fn the_bound_of_an_h100_with_one_block_an_sm_and_clusters_of_eight_is_sixteen() {
        assert_eq!(cluster_bound(132, 1, 8), 16);
    }

    #[test]
    fn gpcs_of_uneven_size_hold_what_the_chip_was_seen_to_hold() {
        assert_eq!(cluster_bound_by_gpc(&[16, 16, 16, 16, 18, 16, 16, 18], 1, 8), 16);
        assert_eq!(cluster_bound_by_gpc(&[18, 18, 18, 18, 16, 16, 14, 14], 1, 8), 14);
    }
}
