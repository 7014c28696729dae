//! What GPUs can hold: limits by compute capability, products, and the occupancy that follows from them.

mod cluster;
mod device_file;
mod names;
mod occupancy;
mod product;
mod refusal;
mod registers;
mod shared;
mod sweep;
mod target;

pub use cluster::{cluster_bound, cluster_bound_by_gpc};
pub use device_file::DeviceFileError;
pub use names::{Gpu, GpuError};
pub use occupancy::{
    CachePreference, Launch, LaunchError, Limiter, Limiters, Limits, Occupancy, PartitionedCaching, SharedLimit,
    occupancy,
};
pub use product::{Device, Product, product_sources, products};
pub use refusal::{Refusal, cluster_refusal, refusals};
pub use shared::available_dynamic_shared;
pub use sweep::{
    Change, Next, Point, SharedPoint, Step, Suggestion, block_sweep, largest_block, next, register_sweep, shared_sweep,
    suggest_block_size,
};
pub use target::{Figure, FigureValue, Target};
