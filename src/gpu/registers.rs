//! How many blocks the register file holds.
//!
//! Three effects are separate: registers are given to a warp in units, a warp lives in one sub-partition as a whole,
//! and the check at launch counts the warps of a block up to a multiple.

use super::occupancy::{Launch, PartitionedCaching};
use super::target::Target;

/// The launch check of 6.0 also refuses what a device with this many sub-partitions would refuse.
const USUAL_SUB_PARTITIONS: u32 = 4;

/// Blocks an SM by registers, `None` without registers; and partitioned caching as it comes out.
pub(super) fn limit(target: &Target, launch: &Launch, warps: u32) -> (Option<u32>, PartitionedCaching) {
    let wanted = if target.partitioned_caching { launch.partitioned } else { PartitionedCaching::Off };
    if launch.registers == 0 {
        return (None, wanted);
    }
    // A launch that is refused stays refused, and says nothing about caching.
    if is_refused(target, launch, warps) {
        return (Some(0), wanted);
    }
    let blocks = blocks(target, launch, warps, wanted);
    // Caching that is merely wished for gives way when it would keep the kernel from running at all.
    if wanted == PartitionedCaching::On && blocks == 0 {
        return (Some(self::blocks(target, launch, warps, PartitionedCaching::Off)), PartitionedCaching::Off);
    }
    (Some(blocks), wanted)
}

fn blocks(target: &Target, launch: &Launch, warps: u32, partitioned: PartitionedCaching) -> u32 {
    let fit = warps_of_sub_partition(target, launch, target.sub_partitions);
    if partitioned == PartitionedCaching::Off {
        fit * target.sub_partitions / warps
    } else {
        2 * (fit * (target.sub_partitions / 2) / warps)
    }
}

/// Registers that a warp is given: a thread's, times the threads of a warp, up to the unit.
pub(super) fn allocated_per_warp(target: &Target, registers: u32) -> u32 {
    round_up(registers.saturating_mul(target.warp_size), target.register_alloc_unit)
}

/// Registers that a block is given: its warps', without the rounding of the launch check.
pub(super) fn allocated_per_block(target: &Target, launch: &Launch, warps: u32) -> u32 {
    allocated_per_warp(target, launch.registers).saturating_mul(warps)
}

/// Registers that the launch check counts for a block.
pub(super) fn counted_per_block(target: &Target, launch: &Launch, warps: u32) -> u32 {
    allocated_per_warp(target, launch.registers).saturating_mul(round_up(warps, target.warp_alloc_granularity))
}

fn is_refused(target: &Target, launch: &Launch, warps: u32) -> bool {
    launch.registers > target.header_max_registers_per_thread
        || counted_per_block(target, launch, warps) > target.registers_per_block
        || is_refused_by_usual_sub_partitions(target, launch, warps)
}

/// 6.0 has two large sub-partitions instead of four, and still refuses what would not fit four.
fn is_refused_by_usual_sub_partitions(target: &Target, launch: &Launch, warps: u32) -> bool {
    if target.sub_partitions >= USUAL_SUB_PARTITIONS {
        return false;
    }
    let counted = allocated_per_warp(target, launch.registers).saturating_mul(round_up(warps, USUAL_SUB_PARTITIONS));
    let fit = warps_of_sub_partition(target, launch, USUAL_SUB_PARTITIONS);
    counted > target.registers_per_block || fit * USUAL_SUB_PARTITIONS < warps
}

/// Whole warps whose registers one of `parts` equal sub-partitions holds.
fn warps_of_sub_partition(target: &Target, launch: &Launch, parts: u32) -> u32 {
    (target.registers_per_sm / parts) / allocated_per_warp(target, launch.registers)
}

fn round_up(number: u32, unit: u32) -> u32 {
    number.div_ceil(unit).saturating_mul(unit)
}
