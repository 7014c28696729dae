//! GPUs as JSON, version 1: every figure with its sources, and `null` for what is not known.

use crate::report::wire::Escaped;
use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Map, Value};

use super::device_figures;
use crate::gpu::{FigureValue, Gpu, product_sources};

#[derive(Serialize)]
struct Document<'a> {
    version: u32,
    gpus: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    name: &'a str,
    product: Option<&'a str>,
    aliases: &'a [String],
    compute_capability: Option<String>,
    family: &'a str,
    arch_names: &'a [String],
    in_ptxas_13_5: bool,
    device: Map<String, Value>,
    limits: Map<String, Value>,
    assumed: Vec<String>,
    notes: Vec<&'a str>,
    sources: BTreeMap<&'a str, &'a str>,
}

#[derive(Serialize)]
struct FigureEntry<'a, T> {
    value: Option<T>,
    unit: Option<&'a str>,
    sources: &'a [String],
    unverified: bool,
}

/// Writes one object with an entry for each GPU.
///
/// # Errors
/// When the writer fails.
pub fn json(gpus: &[Gpu], out: &mut dyn Write) -> io::Result<()> {
    let out = &mut Escaped(out);
    let gpus = gpus.iter().map(entry).collect::<Result<Vec<Entry<'_>>, serde_json::Error>>()?;
    serde_json::to_writer_pretty(&mut *out, &Document { version: 1, gpus })?;
    writeln!(out)
}

fn entry(gpu: &Gpu) -> Result<Entry<'_>, serde_json::Error> {
    let target = &gpu.target;
    Ok(Entry {
        name: &gpu.name,
        product: gpu.product.map(|product| product.name.as_str()),
        aliases: gpu.product.map_or(&[], |product| product.aliases.as_slice()),
        compute_capability: gpu.arch.map(|_| target.compute_capability()),
        family: &target.family,
        arch_names: &target.names,
        in_ptxas_13_5: target.in_ptxas_13_5,
        device: device(gpu)?,
        limits: limits(gpu)?,
        assumed: gpu.assumed.iter().map(|key| snake(key)).collect(),
        notes: super::notes(gpu).collect(),
        sources: sources(gpu),
    })
}

fn device(gpu: &Gpu) -> Result<Map<String, Value>, serde_json::Error> {
    let letters = gpu.product.map_or(&[] as &[String], |product| &product.sources);
    let mut figures = Map::new();
    for (key, _, unit, value) in device_figures(gpu) {
        let sources = if value.is_some() { letters } else { &[] };
        // A whole number is written as one.
        let value =
            value.map(|value| if value.fract() == 0.0 { Value::from(value as i64) } else { Value::from(value) });
        let figure = FigureEntry { value, unit: some(unit), sources, unverified: false };
        figures.insert(snake(key), serde_json::to_value(figure)?);
    }
    Ok(figures)
}

fn limits(gpu: &Gpu) -> Result<Map<String, Value>, serde_json::Error> {
    let mut figures = Map::new();
    for figure in gpu.target.figures() {
        let value = figure.value.map(|value| match value {
            FigureValue::Number(number) => Value::from(number),
            FigureValue::List(list) => Value::from(list),
            FigureValue::Flag(flag) => Value::from(flag),
        });
        let entry =
            FigureEntry { value, unit: some(figure.unit), sources: &figure.sources, unverified: figure.unverified };
        figures.insert(snake(figure.key), serde_json::to_value(entry)?);
    }
    Ok(figures)
}

fn sources(gpu: &Gpu) -> BTreeMap<&str, &str> {
    let used = |letter: &String| gpu.product.is_some_and(|product| product.sources.contains(letter));
    let of_products = product_sources().iter().filter(|(letter, _)| used(letter));
    of_products.chain(&gpu.target.sources).map(|(name, text)| (name.as_str(), text.as_str())).collect()
}

fn some(unit: &str) -> Option<&str> {
    Some(unit).filter(|unit| !unit.is_empty())
}

/// JSON keys are in snake case throughout.
fn snake(key: &str) -> String {
    key.replace('-', "_")
}
