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

/// One `[[product]]` of the file, read when first wanted: reading all of them takes longer than anything else that a
/// run on a small log does.
struct Entry {
    text: &'static str,
    product: OnceLock<Product>,
}

impl Entry {
    fn product(&self) -> &Product {
        self.product.get_or_init(|| {
            let wire = toml::from_str(self.text).ok();
            wire.and_then(product).expect("bug: rules/products.toml is malformed; its test reads it")
        })
    }

    /// The id, the name and the aliases, found without reading the rest.
    fn names(&self) -> impl Iterator<Item = &'static str> {
        let lines = self.text.lines().filter(|line| NAME_KEYS.iter().any(|key| line.starts_with(key)));
        lines.flat_map(|line| line.split('"').skip(1).step_by(2))
    }
}

const NAME_KEYS: [&str; 3] = ["id = ", "name = ", "aliases = "];

const HEADER: &str = "[[product]]\n";

/// What stands before the first product: comments and the sources.
fn preamble() -> &'static str {
    TEXT.split(HEADER).next().unwrap_or(TEXT)
}

fn entries() -> &'static [Entry] {
    static ENTRIES: OnceLock<Vec<Entry>> = OnceLock::new();
    ENTRIES.get_or_init(|| TEXT.split(HEADER).skip(1).map(|text| Entry { text, product: OnceLock::new() }).collect())
}

/// Every product, sorted by compute capability.
pub fn products() -> impl ExactSizeIterator<Item = &'static Product> {
    entries().iter().map(Entry::product)
}

/// The products of which a name satisfies `wanted`; no other is read.
pub(super) fn products_named(wanted: impl Fn(&str) -> bool) -> impl Iterator<Item = &'static Product> {
    entries().iter().filter(move |entry| entry.names().any(&wanted)).map(Entry::product)
}

/// Letter and citation of each source of the products.
#[must_use]
pub fn product_sources() -> &'static [(String, String)] {
    static SOURCES: OnceLock<Vec<(String, String)>> = OnceLock::new();
    SOURCES.get_or_init(|| {
        let file: Option<toml::Table> = preamble().parse().ok();
        let sources = file.as_ref().and_then(|file| file.get("sources")?.as_table());
        let sources = sources.expect("bug: rules/products.toml names no sources; its test reads them");
        let citation = |text: &toml::Value| text.as_str().unwrap_or_default().to_owned();
        sources.iter().map(|(letter, text)| (letter.clone(), citation(text))).collect()
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_found_in_the_text_are_those_that_are_read() {
        assert_eq!(entries().len(), TEXT.lines().filter(|line| *line == "[[product]]").count());
        for entry in entries() {
            let found: Vec<&str> = entry.names().collect();
            assert_eq!(found, entry.product().names().collect::<Vec<&str>>());
        }
    }

    #[test]
    fn every_source_has_a_citation() {
        assert!(product_sources().iter().all(|(_, citation)| !citation.is_empty()));
    }
}
