//! Why a launch is refused: the limits that not even one block keeps.

use std::fmt;

use super::occupancy::{Launch, Limiter, SharedLimit, occupancy};
use super::target::Target;
use super::{registers, shared};
use crate::model::Bytes;

/// One reason why not even one block fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The block has more threads than any may have.
    Threads {
        /// Threads of the block.
        threads: u32,
        /// Threads a block at most.
        most: u32,
    },
    /// The block has more threads than the kernel's own launch bounds allow.
    Bounds {
        /// Threads of the block.
        threads: u32,
        /// Threads a block at most.
        most: u32,
    },
    /// A thread wants more registers than any may have.
    RegistersPerThread {
        /// Registers a thread.
        registers: u32,
        /// Registers a thread at most.
        most: u32,
    },
    /// The registers of the block, as the launch check counts them, are more than a block may take.
    RegistersPerBlock {
        /// Warps of the block.
        warps: u32,
        /// The multiple that the launch check counts warps up to.
        granularity: u32,
        /// Registers that each warp is given.
        per_warp: u32,
        /// Registers counted.
        counted: u32,
        /// Registers a block at most.
        most: u32,
    },
    /// The warps of the block do not fit the sub-partitions of the SM.
    RegisterFile {
        /// Warps of the block.
        warps: u32,
        /// Registers that each warp is given.
        per_warp: u32,
    },
    /// The block takes more shared memory than any may.
    SharedMemory {
        /// Shared memory asked for, bytes.
        asked: u64,
        /// Shared memory a block at most.
        most: Bytes,
        /// What the host may raise the limit to, where it did not.
        optin: Option<Bytes>,
    },
    /// More dynamic shared memory than the kernel's own maximum.
    DynamicMaximum {
        /// Dynamic shared memory asked for.
        asked: Bytes,
        /// The kernel's own maximum.
        most: Bytes,
    },
    /// The cluster has more blocks than any may have.
    Cluster {
        /// Blocks of the cluster.
        blocks: u32,
        /// Blocks a cluster at most; 1 where there are no clusters.
        most: u32,
    },
    /// More barriers or virtual resources than the SM has.
    Count {
        /// Which of the two.
        of: Limiter,
        /// How many the block uses.
        used: u32,
        /// How many the SM has.
        available: u32,
    },
}

/// Every reason why `launch` is refused; empty when at least one block fits, and when the launch makes no sense.
#[must_use]
pub fn refusals(target: &Target, launch: &Launch) -> Vec<Refusal> {
    let Ok(answer) = occupancy(target, launch) else { return Vec::new() };
    if answer.blocks_per_sm > 0 {
        return Vec::new();
    }
    let refused = |limiter| answer.limits.get(limiter) == Some(0);
    let mut reasons = Vec::new();
    if refused(Limiter::Warps) {
        reasons.push(by_threads(target, launch));
    }
    if refused(Limiter::Registers) {
        reasons.push(by_registers(target, launch));
    }
    if refused(Limiter::SharedMemory) {
        reasons.push(by_shared(target, launch));
    }
    if refused(Limiter::Barriers) {
        let available = target.barriers_per_sm.unwrap_or(0);
        reasons.push(Refusal::Count { of: Limiter::Barriers, used: launch.barriers, available });
    }
    if refused(Limiter::VirtualResources) {
        let available = target.virtual_resources_per_sm;
        reasons.push(Refusal::Count { of: Limiter::VirtualResources, used: launch.virtual_resources, available });
    }
    reasons
}

/// Why clusters of so many blocks are refused, if they are.
#[must_use]
pub fn cluster_refusal(target: &Target, blocks: u32) -> Option<Refusal> {
    let most = target.max_cluster_non_portable.max(1);
    (blocks > most).then_some(Refusal::Cluster { blocks, most })
}

fn by_threads(target: &Target, launch: &Launch) -> Refusal {
    match launch.max_threads {
        Some(most) if most < target.max_threads_per_block => Refusal::Bounds { threads: launch.threads, most },
        _ => Refusal::Threads { threads: launch.threads, most: target.max_threads_per_block },
    }
}

fn by_registers(target: &Target, launch: &Launch) -> Refusal {
    let warps = launch.warps(target);
    let per_warp = registers::allocated_per_warp(target, launch.registers);
    let counted = registers::counted_per_block(target, launch, warps);
    if launch.registers > target.header_max_registers_per_thread {
        Refusal::RegistersPerThread { registers: launch.registers, most: target.max_registers_per_thread }
    } else if counted > target.registers_per_block {
        let (granularity, most) = (target.warp_alloc_granularity, target.registers_per_block);
        Refusal::RegistersPerBlock { warps, granularity, per_warp, counted, most }
    } else {
        Refusal::RegisterFile { warps, per_warp }
    }
}

fn by_shared(target: &Target, launch: &Launch) -> Refusal {
    let cap = shared::cap(target, launch);
    match launch.shared_limit {
        SharedLimit::OptIn { max_dynamic } if shared::allocated(target, launch) <= u64::from(cap) => {
            Refusal::DynamicMaximum { asked: launch.dynamic_shared, most: max_dynamic }
        }
        _ => {
            let most = Bytes(cap - target.shared_reserved_per_block);
            let optin = Some(Bytes(target.shared_per_block_optin)).filter(|optin| *optin > most);
            Refusal::SharedMemory { asked: launch.shared_bytes(), most, optin }
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Refusal::Threads { threads, most } => write!(f, "{threads} threads a block, and {most} is the most"),
            Refusal::Bounds { threads, most } => {
                write!(f, "{threads} threads a block, and its launch bounds allow {most}")
            }
            Refusal::RegistersPerThread { registers, most } => {
                write!(f, "{registers} registers a thread, and {most} is the most")
            }
            Refusal::RegistersPerBlock { warps, granularity, per_warp, counted, most } => {
                let plural = if warps == 1 { "warp" } else { "warps" };
                write!(f, "{warps} {plural} of {per_warp} registers")?;
                if warps % granularity != 0 {
                    write!(f, ", counted as {} at launch,", warps.div_ceil(granularity) * granularity)?;
                }
                write!(f, " need {counted} registers, and a block may take {most}")
            }
            Refusal::RegisterFile { warps, per_warp } => {
                write!(f, "{warps} warps of {per_warp} registers do not fit the sub-partitions of the SM")
            }
            Refusal::SharedMemory { asked, most, optin } => {
                write!(f, "{asked} B of shared memory, and a block may take {} B", most.0)?;
                match optin {
                    Some(optin) => write!(f, " ({} B after opting in)", optin.0),
                    None => Ok(()),
                }
            }
            Refusal::DynamicMaximum { asked, most } => {
                write!(f, "{} B of dynamic shared memory, and the kernel's own maximum is {} B", asked.0, most.0)
            }
            Refusal::Cluster { most: 1, .. } => write!(f, "clusters start with compute capability 9.0"),
            Refusal::Cluster { blocks, most } => write!(f, "clusters of {blocks} blocks, and {most} is the most"),
            Refusal::Count { of, used, available } => {
                write!(f, "{used} {} a block, and an SM has {available}", of.words())
            }
        }
    }
}
