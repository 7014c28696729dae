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

#[cfg(test)]
mod tests {
    use super::*;

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
