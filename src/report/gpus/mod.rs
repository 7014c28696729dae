//! What is known about GPUs: a table of all, one in full, and everything as JSON.

mod json;
mod list;
mod one;

pub use json::json;
pub use list::list;
pub use one::one;

use crate::gpu::Gpu;

/// The figures of a device beside its limits: key, words, unit, value.
fn device_figures(gpu: &Gpu) -> [(&'static str, &'static str, &'static str, Option<f64>); 6] {
    let device = &gpu.device;
    [
        ("sms", "SMs", "", device.sm_count.map(f64::from)),
        ("boost-mhz", "boost clock", "MHz", device.boost_mhz),
        ("bandwidth-gbs", "memory bandwidth", "GB/s", device.bandwidth_gbs),
        ("memory-gb", "memory", "GB", device.memory_gb),
        ("l2-mb", "L2 cache", "MB", device.l2_mb),
        ("fp32-tflops", "FP32 peak", "TFLOP/s", device.fp32_tflops),
    ]
}

/// A figure without digits that say nothing: `40`, `1555.2`.
fn number(value: f64) -> String {
    let rounded = (value * 1000.0).round() / 1000.0;
    rounded.to_string()
}

/// What is worth knowing about the device, the product and the compute capability.
fn notes(gpu: &Gpu) -> impl Iterator<Item = &str> {
    let of_product = gpu.product.and_then(|product| product.notes.as_ref());
    gpu.notes.iter().chain(of_product).chain(&gpu.target.notes).map(String::as_str)
}
