//! GPUs by the names that people use, with the figures that belong to a product and not to its compute capability.

use std::sync::OnceLock;

use serde::Deserialize;

use super::target::compute_capability;
use crate::model::Arch;

const TEXT: &str = include_str!("../../rules/products.toml");

/// The figures of a device beside the limits of its compute capability; each is `None` where nobody published it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Device {
    /// Multiprocessors. Source: `rules/products.toml`, or the device file.
    pub sm_count: Option<u32>,
    /// Boost clock, MHz. Source: `rules/products.toml`, or the device file.
    pub boost_mhz: Option<f64>,
    /// Peak memory bandwidth, GB/s (10^9 bytes). Source: `rules/products.toml`, or clock and bus width of the file.
    pub bandwidth_gbs: Option<f64>,
    /// Memory, GB: as advertised for a product, 2^30 bytes for a device file.
    pub memory_gb: Option<f64>,
    /// Second-level cache, MB (2^20 bytes). Source: `rules/products.toml`, or the device file.
    pub l2_mb: Option<f64>,
    /// Peak single-precision rate, TFLOP/s. Source: `rules/products.toml`.
    pub fp32_tflops: Option<f64>,
}

/// One product. Figures and sources stand in `rules/products.toml`.
#[derive(Debug, Clone, PartialEq)]
pub struct Product {
    /// The name that reports show: `h100-sxm5`.
    pub id: String,
    /// The full name: `H100 SXM5 80GB`.
    pub name: String,
    /// Other names.
    pub aliases: Vec<String>,
    /// The compute capability.
    pub arch: Arch,
    /// The figures.
    pub device: Device,
    /// Letters of the sources, explained by [`product_sources`].
    pub sources: Vec<String>,
    /// What is worth knowing about the figures.
    pub notes: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Wire {
    id: String,
    name: String,
    #[serde(default)]
    aliases: Vec<String>,
    compute_capability: String,
    sms: Option<u32>,
    boost_mhz: Option<f64>,
    bandwidth_gbs: Option<f64>,
    memory_gb: Option<f64>,
    l2_mb: Option<f64>,
    fp32_tflops: Option<f64>,
    #[serde(default)]
    source: Vec<String>,
    notes: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    sources: std::collections::BTreeMap<String, String>,
    product: Vec<Wire>,
}

struct Table {
    sources: Vec<(String, String)>,
    products: Vec<Product>,
}

/// Every product, sorted by compute capability.
#[must_use]
pub fn products() -> &'static [Product] {
    &table().products
}

/// Letter and citation of each source of the products.
#[must_use]
pub fn product_sources() -> &'static [(String, String)] {
    &table().sources
}

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| parse(TEXT).expect("bug: rules/products.toml is malformed; its test reads it"))
}

fn parse(text: &str) -> Option<Table> {
    let file: File = toml::from_str(text).ok()?;
    let products = file.product.into_iter().map(product).collect::<Option<Vec<Product>>>()?;
    Some(Table { sources: file.sources.into_iter().collect(), products })
}

fn product(wire: Wire) -> Option<Product> {
    Some(Product {
        arch: compute_capability(&wire.compute_capability)?,
        id: wire.id,
        name: wire.name,
        aliases: wire.aliases,
        device: Device {
            sm_count: wire.sms,
            boost_mhz: wire.boost_mhz,
            bandwidth_gbs: wire.bandwidth_gbs,
            memory_gb: wire.memory_gb,
            l2_mb: wire.l2_mb,
            fp32_tflops: wire.fp32_tflops,
        },
        sources: wire.source,
        notes: wire.notes,
    })
}

impl Product {
    /// Every name that the product answers to.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        [self.id.as_str(), self.name.as_str()].into_iter().chain(self.aliases.iter().map(String::as_str))
    }
}

/// A name without what does not matter in it: case, blanks, hyphens and underscores, and the maker's brands in front.
#[must_use]
pub(crate) fn normalised(name: &str) -> String {
    let mut bare: String = name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    for brand in ["nvidia", "geforce", "tesla"] {
        if let Some(rest) = bare.strip_prefix(brand) {
            bare = rest.to_owned();
        }
    }
    bare
}
