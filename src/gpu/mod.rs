//! What GPUs can hold: limits by compute capability, products, and the occupancy that follows from them.

mod cluster;
pub mod cut;
mod device_file;
mod fill;
pub mod latency;
mod names;
mod occupancy;
mod product;
mod refusal;
mod registers;
mod shared;
mod sweep;
mod target;

pub use cluster::{cluster_bound, cluster_bound_by_gpc, tiles};
pub use device_file::DeviceFileError;
pub use fill::Fill;
pub use names::{Gpu, GpuError};
pub use occupancy::{
    CachePreference, Launch, LaunchError, Limiter, Limiters, Limits, Occupancy, PartitionedCaching, SharedLimit,
    occupancy,
};
pub use product::{Device, Product, product_sources, products};
pub use refusal::{Refusal, cluster_refusal, refusals};
pub use shared::available_dynamic_shared;
pub use sweep::{
    Change, Level, Next, Point, Step, Suggestion, block_sweep, largest_block, level_at, most_shared, next,
    register_levels, register_sweep, shared_levels, suggest_block_size,
};
pub use target::{Figure, FigureValue, Target};
