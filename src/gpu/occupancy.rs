//! Theoretical occupancy: how many blocks of a launch an SM holds at once, exactly as NVIDIA's calculator says.
//!
//! The arithmetic follows the stand-alone occupancy header of the CUDA runtime (13.5); every row of the golden tables
//! was computed with it. Zero blocks means that the launch is refused, and is an answer like any other.

use std::fmt;

use thiserror::Error;

use super::target::Target;
use super::{registers, shared};
use crate::model::Bytes;

/// What the host asked of the split between L1 cache and shared memory (`cudaFuncSetCacheConfig`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CachePreference {
    /// Nothing: the driver chooses.
    #[default]
    None,
    /// More shared memory.
    Shared,
    /// More L1 cache.
    L1,
    /// Halves.
    Equal,
}

/// How much shared memory a block may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SharedLimit {
    /// What a correct host program does: it raises the limit of a kernel that needs more than 48 KiB, to what it
    /// needs. Static shared memory alone can need that too, on targets such as `sm_90a`.
    #[default]
    AsNeeded,
    /// 48 KiB, as without any call.
    Standard,
    /// Raised with `cudaFuncAttributeMaxDynamicSharedMemorySize`.
    OptIn {
        /// The value of the attribute: dynamic shared memory that a block may take at most.
        max_dynamic: Bytes,
    },
}

/// Partitioned global caching, which ties a block to one half of the SM (5.2, 5.3, 6.1 and 6.2 only).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PartitionedCaching {
    /// The default.
    #[default]
    Off,
    /// On, unless no block would fit.
    On,
    /// On, even where no block fits.
    Strict,
}

/// One kernel with the block it is launched with: everything occupancy depends on besides the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launch {
    /// Registers a thread, as the compiler prints them.
    pub registers: u32,
    /// Threads a block.
    pub threads: u32,
    /// Static shared memory a block, without what the system reserves: `ptxas` prints it so.
    pub static_shared: Bytes,
    /// Dynamic shared memory a block.
    pub dynamic_shared: Bytes,
    /// Share of the unified cache wanted as shared memory, percent, 0 to 100; `None` leaves it to the driver, which is
    /// taken to give all of it. Ignored before 7.0.
    pub carveout: Option<u8>,
    /// The older form of the same wish; the carveout beats it.
    pub cache: CachePreference,
    /// How much shared memory the block may take.
    pub shared_limit: SharedLimit,
    /// Partitioned global caching.
    pub partitioned: PartitionedCaching,
    /// Barriers a block, as the compiler prints them; 0 where it prints none, which limits nothing. Matters from 9.0 on.
    pub barriers: u32,
    /// Virtual resources a block; 0 limits nothing. Matters from 10.0 on.
    pub virtual_resources: u32,
    /// The most threads that the kernel's own launch bounds allow; `None` where it has none.
    pub max_threads: Option<u32>,
}

impl Launch {
    /// A launch without shared memory and with every setting at its default.
    #[must_use]
    pub const fn new(registers: u32, threads: u32) -> Launch {
        Launch {
            registers,
            threads,
            static_shared: Bytes::ZERO,
            dynamic_shared: Bytes::ZERO,
            carveout: None,
            cache: CachePreference::None,
            shared_limit: SharedLimit::AsNeeded,
            partitioned: PartitionedCaching::Off,
            barriers: 0,
            virtual_resources: 0,
            max_threads: None,
        }
    }

    /// The same with shared memory.
    #[must_use]
    pub const fn with_shared(self, static_shared: Bytes, dynamic_shared: Bytes) -> Launch {
        Launch { static_shared, dynamic_shared, ..self }
    }

    /// The same with other registers.
    #[must_use]
    pub const fn with_registers(self, registers: u32) -> Launch {
        Launch { registers, ..self }
    }

    /// The same with another block size.
    #[must_use]
    pub const fn with_threads(self, threads: u32) -> Launch {
        Launch { threads, ..self }
    }

    /// Whether the block has more threads than the kernel's own launch bounds allow.
    #[must_use]
    pub fn exceeds_bounds(&self) -> bool {
        self.max_threads.is_some_and(|most| self.threads > most)
    }

    /// Static and dynamic shared memory together, bytes.
    #[must_use]
    pub fn shared_bytes(&self) -> u64 {
        u64::from(self.static_shared.0) + u64::from(self.dynamic_shared.0)
    }

    /// Warps a block: a partial warp takes the room of a whole one.
    #[must_use]
    pub fn warps(&self, target: &Target) -> u32 {
        self.threads.div_ceil(target.warp_size)
    }
}

/// The launch makes no sense, so that there is nothing to compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum LaunchError {
    /// A block has at least one thread.
    #[error("a block needs at least one thread")]
    NoThreads,
    /// The carveout is a percentage.
    #[error("a carveout is a percentage from 0 to 100, not {0}")]
    Carveout(u8),
    /// Asked for the memory of more blocks than fit without any.
    #[error("{wanted} blocks an SM cannot be reached: {most} fit even without dynamic shared memory")]
    NotReached {
        /// Blocks asked for.
        wanted: u32,
        /// Blocks that fit without dynamic shared memory.
        most: u32,
    },
}

/// One of the things that limit how many blocks an SM holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Limiter {
    /// Warps of the SM.
    Warps,
    /// The register file.
    Registers,
    /// Shared memory.
    SharedMemory,
    /// Blocks of the SM.
    Blocks,
    /// Block barriers, from 9.0 on.
    Barriers,
    /// Virtual resources, from 10.0 on.
    VirtualResources,
}

impl Limiter {
    /// All of them, in the order of NVIDIA's bits.
    pub const ALL: [Limiter; 6] = [
        Limiter::Warps,
        Limiter::Registers,
        Limiter::SharedMemory,
        Limiter::Blocks,
        Limiter::Barriers,
        Limiter::VirtualResources,
    ];

    /// The name in JSON: `shared_memory`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Limiter::Warps => "warps",
            Limiter::Registers => "registers",
            Limiter::SharedMemory => "shared_memory",
            Limiter::Blocks => "blocks",
            Limiter::Barriers => "barriers",
            Limiter::VirtualResources => "virtual_resources",
        }
    }

    /// The name in prose: `shared memory`.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Limiter::SharedMemory => "shared memory",
            Limiter::VirtualResources => "virtual resources",
            other => other.name(),
        }
    }
}

/// A set of limiters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Limiters(u8);

impl Limiters {
    /// The bits as NVIDIA numbers them: warps 1, registers 2, shared memory 4, blocks 8, barriers 16, virtual 32.
    #[must_use]
    pub fn bits(self) -> u8 {
        self.0
    }

    /// Whether the set holds `limiter`.
    #[must_use]
    pub fn contains(self, limiter: Limiter) -> bool {
        self.0 & (1 << limiter as u8) != 0
    }

    /// Whether nothing is in the set.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The members in the order of [`Limiter::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Limiter> {
        Limiter::ALL.into_iter().filter(move |limiter| self.contains(*limiter))
    }

    fn insert(&mut self, limiter: Limiter) {
        self.0 |= 1 << limiter as u8;
    }
}

impl fmt::Display for Limiters {
    /// In prose: `registers, warps`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, limiter) in self.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{}", limiter.words())?;
        }
        Ok(())
    }
}

/// Blocks an SM by each limit alone; `None` where that one does not limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// By warps, and by the largest block that can be launched.
    pub warps: Option<u32>,
    /// By the register file.
    pub registers: Option<u32>,
    /// By shared memory.
    pub shared_memory: Option<u32>,
    /// By the number of blocks.
    pub blocks: Option<u32>,
    /// By block barriers.
    pub barriers: Option<u32>,
    /// By virtual resources.
    pub virtual_resources: Option<u32>,
}

impl Limits {
    /// The limit that `limiter` stands for.
    #[must_use]
    pub fn get(&self, limiter: Limiter) -> Option<u32> {
        match limiter {
            Limiter::Warps => self.warps,
            Limiter::Registers => self.registers,
            Limiter::SharedMemory => self.shared_memory,
            Limiter::Blocks => self.blocks,
            Limiter::Barriers => self.barriers,
            Limiter::VirtualResources => self.virtual_resources,
        }
    }
}

/// What an SM holds of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occupancy {
    /// Blocks an SM holds at once; 0 when the launch is refused.
    pub blocks_per_sm: u32,
    /// Warps of those blocks.
    pub active_warps: u32,
    /// Warps that the SM can hold.
    pub max_warps: u32,
    /// Parts of the SM that have a scheduler each.
    pub schedulers: u32,
    /// Blocks an SM by each limit alone.
    pub limits: Limits,
    /// Every limit that ties for the smallest. As in NVIDIA's calculator, those that tied before barriers lowered the
    /// result further stay in the set beside `barriers`.
    pub limiters: Limiters,
    /// Registers that a block is given, after rounding.
    pub allocated_registers_per_block: u32,
    /// Shared memory that a block is given, after adding what the system reserves and rounding.
    pub allocated_shared_per_block: Bytes,
    /// Shared memory of the SM as the carveout splits it from L1, or as far as one block needs.
    pub shared_per_sm: Bytes,
    /// Partitioned caching as it came out: where the device has none, or no block fitted, it is off.
    pub partitioned: PartitionedCaching,
}

impl Occupancy {
    /// Active warps over the warps an SM can hold, 0 to 1.
    #[must_use]
    pub fn fraction(&self) -> f64 {
        f64::from(self.active_warps) / f64::from(self.max_warps.max(1))
    }

    /// Active warps a scheduler, on average.
    #[must_use]
    pub fn warps_per_scheduler(&self) -> f64 {
        f64::from(self.active_warps) / f64::from(self.schedulers.max(1))
    }

    /// Active warps of the fullest scheduler: warps are dealt out in turn, so 9 warps are 3, 2, 2 and 2.
    #[must_use]
    pub fn warps_of_fullest_scheduler(&self) -> u32 {
        self.active_warps.div_ceil(self.schedulers.max(1))
    }
}

/// What an SM of `target` holds of `launch`.
///
/// # Errors
/// When the launch makes no sense. A launch that the device refuses is no error: it gives 0 blocks.
pub fn occupancy(target: &Target, launch: &Launch) -> Result<Occupancy, LaunchError> {
    check(target, launch)?;
    let warps = launch.warps(target);
    let (by_registers, partitioned) = registers::limit(target, launch, warps);
    let mut limits = Limits {
        warps: Some(by_warps(target, launch, warps, partitioned)),
        registers: by_registers,
        shared_memory: shared::limit(target, launch),
        blocks: Some(target.max_blocks_per_sm),
        barriers: None,
        virtual_resources: by_virtual_resources(target, launch),
    };
    let mut blocks = Limiter::ALL.into_iter().filter_map(|limiter| limits.get(limiter)).min().unwrap_or(0);
    let mut limiters = Limiters::default();
    for limiter in Limiter::ALL {
        if limits.get(limiter) == Some(blocks) {
            limiters.insert(limiter);
        }
    }
    // Barriers come after the others and only add to the set: NVIDIA's calculator does not clear it.
    limits.barriers = by_barriers(target, launch);
    if let Some(barriers) = limits.barriers.filter(|barriers| *barriers <= blocks) {
        blocks = barriers;
        limiters.insert(Limiter::Barriers);
    }
    Ok(Occupancy {
        blocks_per_sm: blocks,
        active_warps: blocks.saturating_mul(warps),
        max_warps: target.max_warps_per_sm,
        schedulers: target.sub_partitions,
        limits,
        limiters,
        allocated_registers_per_block: registers::allocated_per_block(target, launch, warps),
        allocated_shared_per_block: Bytes(u32::try_from(shared::allocated(target, launch)).unwrap_or(u32::MAX)),
        shared_per_sm: Bytes(shared::pool(target, launch)),
        partitioned,
    })
}

fn check(target: &Target, launch: &Launch) -> Result<(), LaunchError> {
    if launch.threads == 0 {
        return Err(LaunchError::NoThreads);
    }
    match launch.carveout {
        Some(percent) if percent > 100 && shared::is_configurable(target) => Err(LaunchError::Carveout(percent)),
        _ => Ok(()),
    }
}

/// Warps have no allocation granularity of their own; a block that is too large for any launch counts as 0.
fn by_warps(target: &Target, launch: &Launch, warps: u32, partitioned: PartitionedCaching) -> u32 {
    if launch.threads > target.max_threads_per_block || launch.exceeds_bounds() {
        0
    } else if partitioned == PartitionedCaching::Off {
        target.max_warps_per_sm / warps
    } else {
        // The block lives in one half of the SM.
        2 * ((target.max_warps_per_sm / 2) / warps)
    }
}

fn by_barriers(target: &Target, launch: &Launch) -> Option<u32> {
    let available = target.barriers_per_sm.filter(|_| target.arch.at_least(9, 0))?;
    available.checked_div(launch.barriers)
}

fn by_virtual_resources(target: &Target, launch: &Launch) -> Option<u32> {
    if target.virtual_resources_per_sm == 0 {
        return None;
    }
    target.virtual_resources_per_sm.checked_div(launch.virtual_resources)
}
