//! `local-memory`: a stack frame, or other local memory, that is not there for spills.

use std::borrow::Cow;

use hashbrown::HashSet;

use serde::Deserialize;

use super::Context;
use super::standing::{Standing, spills};
use crate::finding::{Cause, Finding, Hit, Label, Subject};
use crate::model::{Array, ArraySpace, Bytes, Kernel, Kind, Message, MessageKind, NameId, symbol};

/// The rule has no options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {}

pub(super) fn check(context: &Context<'_>, _: &Options, hits: &mut Vec<Hit>) {
    let standing = Standing::of(context);
    for (at, kernel) in context.certain().filter(|(_, kernel)| !spills(kernel)) {
        let bytes = own(kernel).get();
        if bytes > 0 && standing.is_optimised(kernel.evidence.first()) {
            let hit = Hit::kernel(at, bytes);
            // Small frames of the same size come from the same thing in many kernels.
            hits.push(if is_small(kernel) { hit.caused_by(reason(kernel)) } else { hit });
        }
    }
    let local = |message: &Message| match message.kind {
        MessageKind::LocalMemory { frame } => Some(frame.map_or(1, Bytes::get)).filter(|bytes| *bytes > 0),
        _ => None,
    };
    let warnings = || context.messages_of(|kind| matches!(kind, MessageKind::LocalMemory { .. }));
    if !warnings().any(|(_, message)| local(message).is_some()) {
        return;
    }
    // `-warn-lmem-usage` repeats what the figures say, and counts spills in.
    let mut told: HashSet<NameId> = context.certain().filter_map(|(_, kernel)| kernel.name).collect();
    let spilled = context.messages_of(|kind| matches!(kind, MessageKind::Spill { .. }));
    told.extend(spilled.filter_map(|(_, message)| message.kernel));
    for (at, message) in warnings() {
        let Some(bytes) = local(message) else { continue };
        if standing.is_optimised(Some(message.place)) && !message.kernel.is_some_and(|name| told.contains(&name)) {
            hits.push(Hit::message(at, bytes));
        }
    }
}

/// Bytes up to which a frame is small: no array that matters, and perhaps none at all.
const SMALL: u32 = 64;

/// Whether it is a small frame that surely holds no spills.
fn is_small(kernel: &Kernel) -> bool {
    kernel.resources.spill_stores.is_some() && own(kernel).get() <= SMALL
}

/// The same for kernels with frames of the same size, and others for device functions.
fn reason(kernel: &Kernel) -> Cause {
    Cause::Reason(own(kernel).get() + if kernel.kind == Kind::Function { SMALL + 1 } else { 0 })
}

/// What a thread keeps in local memory.
fn own(kernel: &Kernel) -> Bytes {
    kernel.resources.stack.unwrap_or_default() + kernel.resources.local.unwrap_or_default()
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    match (context.kernel_of(hit), context.message_of(hit)) {
        (Some(kernel), _) if kernel.resources.spill_stores.is_some() => {
            without_spills(context, kernel, array(context, hit, kernel), depot(context, hit))
        }
        (Some(kernel), _) => perhaps_spills(context, kernel),
        (_, Some(message)) => of_message(context, message),
        _ => Finding::new("local memory is used"),
    }
}

const ARRAY: &str = "an array that is indexed at run time, or whose address is passed on, cannot live in registers: index it \
                     with constants (unroll the loop in full), make it smaller, or put it into shared memory";

/// The variable in local memory that the PTX of the kernel declares, and the bytes of all that it declares.
fn depot<'a>(context: &Context<'a>, hit: &Hit) -> Option<(Cow<'a, str>, Bytes)> {
    let Subject::Kernel(at) = hit.subject else { return None };
    let modules = context.report.modules.iter();
    let mut functions = modules.flat_map(|module| module.functions.iter().map(move |function| (module, function)));
    let (module, function) = functions.find(|(_, function)| function.kernel == Some(at))?;
    let bytes = function.local.filter(|bytes| *bytes > 0)?;
    Some((String::from_utf8_lossy(module.text.get(function.depot.clone()?)?), Bytes(bytes)))
}

/// The array of the kernel's source that is indexed at run time: the only one, or the largest where all sizes are known.
fn array<'a>(context: &Context<'a>, hit: &Hit, kernel: &Kernel) -> Option<&'a Array> {
    let Subject::Kernel(at) = hit.subject else { return None };
    let family = context.report.family_of(at as usize)?;
    let arrays = family.arrays(context.report).iter();
    // One that is larger than the frame does not lie in it, or is another than the one that was compiled.
    let fits = |array: &&Array| array.bytes.is_none_or(|bytes| bytes <= own(kernel));
    let found: Vec<&Array> =
        arrays.filter(|array| array.space == ArraySpace::Local && array.is_indexed).filter(fits).collect();
    match found.as_slice() {
        [one] => Some(one),
        several if several.iter().all(|array| array.bytes.is_some()) => {
            several.iter().copied().max_by_key(|array| array.bytes)
        }
        _ => None,
    }
}

fn without_spills(
    context: &Context<'_>,
    kernel: &Kernel,
    array: Option<&Array>,
    depot: Option<(Cow<'_, str>, Bytes)>,
) -> Finding {
    let called = format!("{}{}", context.function(kernel), context.called(kernel.name));
    let help = match kernel.kind {
        Kind::Entry if is_small(kernel) => format!(
            "so few bytes may be what printf or assert, if the kernel has any, keeps for its arguments, or a small array: \
             {ARRAY}"
        ),
        Kind::Entry => format!("{ARRAY}; printf and assert take a few bytes for their arguments"),
        Kind::Function => {
            format!("{ARRAY}; what the frame holds for the sake of the call goes when the function is inlined")
        }
    };
    let of_array = array.map(|array| {
        let name = symbol::printable(&String::from_utf8_lossy(context.report.names.get(array.name))).into_owned();
        let size = array.bytes.map_or_else(String::new, |bytes| format!(", {bytes},"));
        format!(": `{name}` of line {}{size} is indexed at run time", array.line)
    });
    let of_depot = depot.as_ref().map(|(name, bytes)| {
        let name = symbol::printable(&symbol::cut_middle(name, LONGEST)).into_owned();
        format!(": `{name}` of its PTX holds {bytes}")
    });
    let which = of_array.or(of_depot).unwrap_or_default();
    let on = context.on(kernel);
    let message = format!("{called} keeps {} per thread in local memory{on}, none of it spills{which}", own(kernel));
    let finding = figures(Finding::new(message).help(help), kernel);
    let named = array.map(|array| String::from_utf8_lossy(context.report.names.get(array.name)).into_owned());
    let finding = finding.fact("array", named).fact("array_line", array.map(|array| array.line));
    finding.fact("depot_bytes", depot.map(|(_, bytes)| bytes)).label(place(context, kernel, "not spilled registers"))
}

/// Longest name of a variable that a message holds, in characters.
const LONGEST: usize = 60;

fn perhaps_spills(context: &Context<'_>, kernel: &Kernel) -> Finding {
    let called = format!("{}{}", context.function(kernel), context.called(kernel.name));
    let on = context.on(kernel);
    let kept = own(kernel);
    // The one stack figure of a linker is that of the whole call tree.
    let has_stack = kernel.resources.stack.is_some_and(|stack| !stack.is_zero());
    let callees = if has_stack && kernel.evidence.frame.is_none() { ", callees included" } else { "" };
    // Where the architecture is unknown, 255 is still the most on every one that has as many.
    let full = context.most_registers(kernel.arch).unwrap_or(255);
    let finding = match kernel.resources.registers.filter(|registers| *registers == full) {
        Some(registers) => Finding::new(format!(
            "{called} uses {registers} registers, all that a thread can have, and {kept} of local memory per \
             thread{on}{callees}: a probable spill"
        ))
        .help(
            "compile with -Xptxas -v, which prints the bytes of spills: if they are that, keep fewer values alive at once, \
             or spread the work over more threads",
        ),
        None => Finding::new(format!(
            "{called} uses {kept} of local memory per thread{on}{callees}; whether for spills or for an array is not in the \
             log"
        ))
        .help(format!("compile with -Xptxas -v, which prints the bytes of spills. If they are 0: {ARRAY}")),
    };
    figures(finding, kernel).label(place(context, kernel, "spills, arrays and callees are one figure here"))
}

fn figures(finding: Finding, kernel: &Kernel) -> Finding {
    let resources = &kernel.resources;
    finding
        .fact("stack_bytes", resources.stack)
        .fact("local_bytes", resources.local)
        .fact("spill_store_bytes", resources.spill_stores)
        .fact("spill_load_bytes", resources.spill_loads)
}

fn of_message(context: &Context<'_>, message: &Message) -> Finding {
    let MessageKind::LocalMemory { frame } = message.kind else { return Finding::new("local memory is used") };
    let called = context.called(message.kernel);
    let said = match frame {
        Some(frame) => format!("{called} keeps {frame} per thread in local memory"),
        None => format!("{called} uses local memory"),
    };
    Finding::new(format!("{said}; whether for spills or for an array is not in the log"))
        .help(format!("compile with -Xptxas -v,-warn-spills, which tells spills apart. If there are none: {ARRAY}"))
        .label(Some(context.message_label(message, "the whole stack frame")))
        .fact("stack_bytes", frame)
}

/// Under the bytes, in whichever line has them.
fn place(context: &Context<'_>, kernel: &Kernel, text: &str) -> Option<Label> {
    let frame = kernel.evidence.frame.filter(|_| kernel.resources.stack.is_some_and(|stack| !stack.is_zero()));
    match frame {
        Some(frame) => context.label(Some(frame), "", "bytes stack frame", text),
        None => kernel.evidence.usage.map(|usage| context.line_label(usage, text)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::records::named;
    use super::super::testing::{helps, human, lint, told};

    const RULE: &str = "local-memory";

    #[test]
    fn a_frame_without_spills_is_an_array_or_the_like() {
        let log = "ptxas info    : Compiling entry function 'local_array' for 'sm_80'\nptxas info    : Function properties for local_array\n    400 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\nptxas info    : Used 26 registers, used 0 barriers, 400 bytes cumulative stack size, 372 bytes cmem[0]\n";
        assert_eq!(
            told(RULE, log),
            ["note: `local_array` keeps 400 B per thread in local memory on sm_80, none of it spills"]
        );
        let spilling =
            log.replace("0 bytes spill stores, 0 bytes spill loads", "4 bytes spill stores, 8 bytes spill loads");
        assert!(told(RULE, &spilling).is_empty());
    }

    #[test]
    fn small_frames_of_one_size_are_one_cause_in_different_kernels() {
        let framed = |name: &str, bytes: u32| {
            named(name, "sm_80", "26 registers").replace("0 bytes stack frame", &format!("{bytes} bytes stack frame"))
        };
        let log = [framed("one", 40), framed("two", 40), framed("three", 48)].concat();
        let shown = human(&log, &[]);
        assert_eq!(shown.matches("note[").count(), 2, "{shown}");
        assert!(shown.contains("`one` keeps 40 B") && shown.contains("also `two`"), "{shown}");
        assert!(helps(RULE, &log)[0].contains("printf or assert"));
        let big = [framed("one", 400), framed("two", 400)].concat();
        assert_eq!(human(&big, &[]).matches("note[").count(), 2);
        assert!(helps(RULE, &big)[0].starts_with("an array that is indexed"));
    }

    #[test]
    fn an_entry_answers_for_its_own_frame_only() {
        let log = "ptxas info    : Compiling entry function '_Z10k_indirectPfi' for 'sm_80'\nptxas info    : Function properties for _Z10k_indirectPfi\n    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\nptxas info    : Used 24 registers, used 0 barriers, 32 bytes cumulative stack size, 364 bytes cmem[0]\nptxas info    : Function properties for _Z6op_mulff\n    24 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n";
        assert_eq!(
            told(RULE, log),
            ["note: device function `op_mul` keeps 24 B per thread in local memory on sm_80, none of it spills"]
        );
        assert!(helps(RULE, log)[0].contains("goes when the function is inlined"));
    }

    #[test]
    fn local_memory_of_unknown_use_is_said_to_be_that() {
        let old = "ptxas info	: Compiling entry function '_Z6relaxGPfS_S_j'\nptxas info	: Used 41 registers, 52+0 bytes lmem, 20+16 bytes smem, 304 bytes cmem[1]\nptxas info	: Compiling entry function '_Z5bumpHPfj'\nptxas info	: Used 7 registers, 12+16 bytes smem, 4 bytes cmem[1]\n";
        assert_eq!(
            told(RULE, old),
            [
                "note: `relaxG` uses 52 B of local memory per thread; whether for spills or for an array is not in the log"
            ]
        );
    }

    #[test]
    fn a_full_register_file_and_a_stack_are_a_probable_spill() {
        let listing = " Function condRev:\n  REG:255 STACK:2128 SHARED:1024 LOCAL:16 CONSTANT[0]:1064\n Function edgeRev:\n  REG:70 STACK:0 SHARED:0 LOCAL:0 CONSTANT[0]:1064\n";
        assert_eq!(
            told(RULE, listing),
            [
                "note: `condRev` uses 255 registers, all that a thread can have, and 2144 B of local memory per thread, callees included: a probable spill"
            ]
        );
    }

    #[test]
    fn a_warning_without_figures_counts_unless_the_spills_are_known() {
        let local = "ptxas warning : Local memory used for function 'local_array', size of stack frame: 400 bytes\n";
        assert_eq!(
            lint(local, &[]),
            [
                "note[local-memory] `local_array` keeps 400 B per thread in local memory; whether for spills or for an array is not in the log"
            ]
        );
        let spill = "ptxas warning : Registers are spilled to local memory in function 'local_array', 8 bytes spill stores, 8 bytes spill loads\n";
        assert!(told(RULE, &format!("{local}{spill}")).is_empty());
    }
}
