//! A kernel of the page.

use serde::Serialize;

use super::curves::Curves;
use crate::model::{Bytes, Kernel, Kind, Quote, symbol};
use crate::rules::Context;

/// A kernel on one architecture. What is not known is left out.
#[derive(Serialize)]
pub(super) struct PageKernel {
    /// The short name, for people.
    name: String,
    /// The symbol, where it is not what was declared.
    #[serde(skip_serializing_if = "Option::is_none")]
    symbol: Option<String>,
    /// The whole signature, where the symbol tells it and the short name does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<String>,
    /// A device function: it is launched by nobody.
    #[serde(skip_serializing_if = "is_false")]
    function: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    arch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    registers: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    barriers: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stack: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spill_stores: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spill_loads: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shared: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    local: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compile_ms: Option<f64>,
    /// Lines of parallel jobs are mixed up: figures may belong to another kernel.
    #[serde(skip_serializing_if = "is_false")]
    ambiguous: bool,
    /// `path:line` of its declaration.
    #[serde(skip_serializing_if = "Option::is_none")]
    declared: Option<String>,
    /// `path:line` of the compiler's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    reported: Option<String>,
    /// Indices of the page's points.
    points: Vec<usize>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

pub(super) fn kernel(context: &Context<'_>, at: usize, kernel: &Kernel, curves: &mut Curves) -> PageKernel {
    let report = context.report;
    let bytes = |size: Option<Bytes>| size.map(Bytes::get);
    let raw = kernel.name.map(|name| report.names.get(name));
    let short = raw.map_or_else(|| "(a kernel whose name was cut off)".to_owned(), symbol::short);
    let symbol = raw.map(|raw| symbol::printable(&String::from_utf8_lossy(raw)).into_owned());
    let place = |quote: Quote| format!("{}:{}", report.file_of(quote.place), quote.place.line);
    let resources = &kernel.resources;
    PageKernel {
        signature: raw.map(symbol::full).filter(|full| *full != short && Some(full) != symbol.as_ref()),
        symbol: symbol.filter(|symbol| *symbol != short),
        name: short,
        function: kernel.kind == Kind::Function,
        arch: kernel.arch.map(|arch| arch.to_string()),
        registers: resources.registers,
        barriers: resources.barriers,
        stack: bytes(resources.stack),
        spill_stores: bytes(resources.spill_stores),
        spill_loads: bytes(resources.spill_loads),
        shared: bytes(resources.static_shared),
        local: bytes(resources.local),
        compile_ms: resources.compile_time_ms,
        ambiguous: kernel.ambiguous,
        declared: report.declared(at).map(|declared| place(declared.quote)),
        reported: kernel.evidence.first().map(|place| format!("{}:{}", report.file_of(place), place.line)),
        points: context.numbers.ids(at).iter().map(|id| curves.point(context, *id)).collect(),
    }
}
