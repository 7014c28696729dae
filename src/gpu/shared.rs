//! How many blocks the shared memory of an SM holds, and how much of it is left for a given number of blocks.

use super::occupancy::{CachePreference, Launch, LaunchError, SharedLimit, occupancy};
use super::target::Target;
use crate::model::Bytes;

const KIB: u32 = 1024;

/// What L1 takes of the shared memory of 3.x when it is preferred; half of it when both are to be equal.
const KEPLER_L1: u32 = 32 * KIB;

/// Whether the split of the unified cache is a choice among sizes, as from 7.0 on.
pub(super) fn is_configurable(target: &Target) -> bool {
    target.arch.at_least(7, 0)
}

/// Blocks an SM by shared memory; `None` when a block takes none, which cannot be where the system reserves some.
pub(super) fn limit(target: &Target, launch: &Launch) -> Option<u32> {
    let allocated = allocated(target, launch);
    if allocated > u64::from(cap(target, launch)) || exceeds_own_maximum(launch) {
        return Some(0);
    }
    let allocated = u32::try_from(allocated).ok()?;
    pool(target, launch).checked_div(allocated)
}

/// Shared memory of the SM as it is split for such blocks, bytes.
pub(super) fn pool(target: &Target, launch: &Launch) -> u32 {
    let allocated = u32::try_from(allocated(target, launch)).unwrap_or(u32::MAX);
    pool_for(target, preferred_pool(target, launch), allocated)
}

/// Shared memory that a block is given, bytes: with the reservation, up to the unit.
pub(super) fn allocated(target: &Target, launch: &Launch) -> u64 {
    let unit = u64::from(target.shared_alloc_unit);
    (launch.shared_bytes() + u64::from(target.shared_reserved_per_block)).div_ceil(unit) * unit
}

/// The most a block may be given, with the reservation.
pub(super) fn cap(target: &Target, launch: &Launch) -> u32 {
    let max_dynamic = match launch.shared_limit {
        SharedLimit::Standard => return target.shared_per_block_default + target.shared_reserved_per_block,
        SharedLimit::OptIn { max_dynamic } => max_dynamic,
        SharedLimit::AsNeeded => launch.dynamic_shared,
    };
    let wanted =
        u64::from(launch.static_shared.0) + u64::from(target.shared_reserved_per_block) + u64::from(max_dynamic.0);
    let raised = is_configurable(target) && wanted > u64::from(target.shared_per_block_default);
    let limit = if raised { target.shared_per_block_optin } else { target.shared_per_block_default };
    limit + target.shared_reserved_per_block
}

fn exceeds_own_maximum(launch: &Launch) -> bool {
    matches!(launch.shared_limit, SharedLimit::OptIn { max_dynamic } if launch.dynamic_shared > max_dynamic)
}

/// Shared memory of the SM as the host asked for it.
pub(super) fn preferred_pool(target: &Target, launch: &Launch) -> u32 {
    if is_configurable(target) {
        return match carveout(launch) {
            // The driver may give less; the calculator takes it to give all.
            None => step_for(target, target.shared_per_sm),
            Some(percent) => {
                let wanted = u64::from(target.shared_per_sm) * u64::from(percent) / 100;
                step_for(target, u32::try_from(wanted).unwrap_or(u32::MAX))
            }
        };
    }
    match (target.arch.major, launch.cache) {
        (3, CachePreference::L1) => target.shared_per_sm.saturating_sub(KEPLER_L1),
        (3, CachePreference::Equal) => target.shared_per_sm.saturating_sub(KEPLER_L1 / 2),
        _ => target.shared_per_sm,
    }
}

/// The cache preference is the older way to say the same, in three steps.
fn carveout(launch: &Launch) -> Option<u8> {
    launch.carveout.or(match launch.cache {
        CachePreference::None => None,
        CachePreference::L1 => Some(0),
        CachePreference::Equal => Some(50),
        CachePreference::Shared => Some(100),
    })
}

/// A preference that is too small for even one block gives way, but only as far as one block needs.
fn pool_for(target: &Target, preferred: u32, allocated: u32) -> u32 {
    if preferred >= allocated {
        preferred
    } else if is_configurable(target) {
        step_for(target, allocated)
    } else {
        target.shared_per_sm
    }
}

/// The smallest setting of at least `bytes`, else the whole.
fn step_for(target: &Target, bytes: u32) -> u32 {
    let steps = target.shared_configs_kib.iter().map(|kib| kib.saturating_mul(KIB));
    steps.into_iter().find(|step| *step >= bytes).unwrap_or(target.shared_per_sm)
}

/// The dynamic shared memory that each block can have when `blocks` of them are to share an SM.
///
/// The dynamic shared memory of `launch` plays no part. With [`SharedLimit::AsNeeded`] the kernel's own maximum is the
/// most that the device allows.
///
/// # Errors
/// When that many blocks do not fit even without dynamic shared memory, or the launch makes no sense.
pub fn available_dynamic_shared(target: &Target, launch: &Launch, blocks: u32) -> Result<Bytes, LaunchError> {
    let shared_limit = match launch.shared_limit {
        SharedLimit::AsNeeded => SharedLimit::OptIn { max_dynamic: Bytes(target.shared_per_block_optin) },
        given => given,
    };
    let bare = Launch { shared_limit, dynamic_shared: Bytes::ZERO, ..*launch };
    let most = occupancy(target, &bare)?.blocks_per_sm;
    if blocks == 0 || blocks > most {
        return Err(LaunchError::NotReached { wanted: blocks, most });
    }
    let cap = cap(target, &bare);
    let pool = if blocks == 1 { cap } else { non_zero_pool(target, &bare) };
    let unit = target.shared_alloc_unit;
    let share = (pool / blocks / unit * unit).min(cap);
    let taken = u64::from(bare.static_shared.0) + u64::from(target.shared_reserved_per_block);
    let free = u64::from(share).checked_sub(taken).and_then(|free| u32::try_from(free).ok());
    Ok(Bytes(match (shared_limit, free) {
        (SharedLimit::OptIn { max_dynamic }, Some(free)) => free.min(max_dynamic.0),
        // NVIDIA subtracts without a sign here, so that too small a share becomes more than any maximum.
        (SharedLimit::OptIn { max_dynamic }, None) => max_dynamic.0,
        (_, free) => free.unwrap_or(0),
    }))
}

/// The preferred pool, and the smallest setting that is not zero where that is zero.
fn non_zero_pool(target: &Target, launch: &Launch) -> u32 {
    match preferred_pool(target, launch) {
        0 => step_for(target, 1),
        pool => pool,
    }
}
