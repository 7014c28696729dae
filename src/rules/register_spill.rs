//! `register-spill`: values that ptxas parked in local memory for want of registers.

use std::collections::HashSet;

use serde::Deserialize;

use super::Context;
use crate::finding::{Finding, Hit};
use crate::model::{Bytes, Kernel, Kind, Message, MessageKind, NameId};

/// Options of the rule.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Options {
    /// Bytes of spill stores, and of spill loads, that are tolerated a thread.
    max_bytes: u32,
}

pub(super) fn check(context: &Context<'_>, options: &Options, hits: &mut Vec<Hit>) {
    for (at, kernel) in context.certain() {
        hits.extend(worst(kernel).filter(|bytes| *bytes > options.max_bytes).map(|bytes| Hit::kernel(at, bytes)));
    }
    let warnings = || context.messages().filter(|(_, message)| matches!(message.kind, MessageKind::Spill { .. }));
    if warnings().next().is_none() {
        return;
    }
    // `-warn-spills` repeats what the figures say, where there are figures.
    let told: HashSet<NameId> =
        context.certain().filter(|(_, kernel)| worst(kernel).is_some()).filter_map(|(_, kernel)| kernel.name).collect();
    for (at, message) in warnings() {
        let MessageKind::Spill { stores, loads } = message.kind else { continue };
        let bytes = stores.max(loads).get();
        if bytes > options.max_bytes && !message.kernel.is_some_and(|name| told.contains(&name)) {
            hits.push(Hit::message(at, bytes));
        }
    }
}

fn worst(kernel: &Kernel) -> Option<u32> {
    kernel.resources.spill_stores.max(kernel.resources.spill_loads).map(Bytes::get)
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    match (context.kernel_of(hit), context.message_of(hit)) {
        (Some(kernel), _) => of_kernel(context, kernel),
        (_, Some(message)) => of_message(context, message),
        _ => Finding::new("registers are spilled"),
    }
}

fn of_kernel(context: &Context<'_>, kernel: &Kernel) -> Finding {
    let stores = kernel.resources.spill_stores.unwrap_or_default();
    let loads = kernel.resources.spill_loads.unwrap_or_default();
    let label = context.label(kernel.evidence.frame, "", "bytes spill loads", "in local memory, which is off the chip");
    let label = label.map(|mut label| {
        // The caret starts at the spills, behind the stack frame.
        if let Some(comma) = memchr::memchr(b',', context.text(label.quote)) {
            label.start = (comma + 2).min(label.end);
        }
        label
    });
    spill(context, kernel.name, stores, loads, &context.on(kernel), kernel.kind)
        .label(label)
        .fact("registers", kernel.resources.registers)
}

fn of_message(context: &Context<'_>, message: &Message) -> Finding {
    let MessageKind::Spill { stores, loads } = message.kind else { return Finding::new("registers are spilled") };
    let label = context.message_label(message, "in local memory, which is off the chip");
    spill(context, message.kernel, stores, loads, "", Kind::Entry).label(Some(label))
}

fn spill(context: &Context<'_>, name: Option<NameId>, stores: Bytes, loads: Bytes, on: &str, kind: Kind) -> Finding {
    let called = context.called(name);
    let function = if kind == Kind::Function { "device function " } else { "" };
    let message = format!("{function}{called} spills {stores} of stores and {loads} of loads per thread{on}");
    Finding::new(message)
        .help(
            "give the kernel more registers (a larger or no -maxrregcount, a smaller block or minimum of blocks in \
             __launch_bounds__), or keep fewer values alive at once: split the kernel, shrink its tile, unroll less",
        )
        .fact("store_bytes", stores)
        .fact("load_bytes", loads)
}
