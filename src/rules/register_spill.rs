//! `register-spill`: values that ptxas parked in local memory for want of registers.

use hashbrown::{HashMap, HashSet};

use serde::Deserialize;

use super::limits::and;
use super::loose_launch_bounds::{UNIT, allowed};
use super::standing::Standing;
use super::{Context, text};
use crate::finding::{Finding, Hit};
use crate::gpu::Target;
use crate::model::{BlockSize, Bytes, Kernel, Kind, Message, MessageKind, NameId, Stated};

/// Options of the rule.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Options {
    /// Bytes of spill stores, and of spill loads, that are tolerated a thread.
    max_bytes: u32,
}

pub(super) fn check(context: &Context<'_>, options: &Options, hits: &mut Vec<Hit>) {
    let caps = Caps::of(context);
    let standing = Standing::of(context);
    for (at, kernel) in context.framed().filter(|(_, kernel)| standing.is_optimised(kernel.evidence.first())) {
        let Some(bytes) = worst(kernel).filter(|bytes| *bytes > options.max_bytes) else { continue };
        hits.push(Hit::kernel(at, bytes).because_of_message(caps.of_kernel(kernel)));
    }
    let warnings = || context.messages_of(|kind| matches!(kind, MessageKind::Spill { .. }));
    if warnings().next().is_none() {
        return;
    }
    // `-warn-spills` repeats what the figures say, where there are figures.
    let told: HashSet<NameId> =
        context.framed().filter(|(_, kernel)| worst(kernel).is_some()).filter_map(|(_, kernel)| kernel.name).collect();
    for (at, message) in warnings() {
        let MessageKind::Spill { stores, loads } = message.kind else { continue };
        let bytes = stores.max(loads).get();
        let judged = bytes > options.max_bytes && standing.is_optimised(Some(message.place));
        if judged && !message.kernel.is_some_and(|name| told.contains(&name)) {
            hits.push(Hit::message(at, bytes));
        }
    }
}

fn worst(kernel: &Kernel) -> Option<u32> {
    kernel.resources.spill_stores.max(kernel.resources.spill_loads).map(Bytes::get)
}

/// Its registers, unless these may be another kernel's.
fn registers_of(kernel: &Kernel) -> Option<u32> {
    kernel.resources.registers.filter(|_| !kernel.ambiguous)
}

/// The messages that say which limit of registers holds.
#[derive(Default)]
struct Caps {
    /// `… for 'k' with 32 of maxrregcount option`
    named: HashMap<(NameId, u32), usize>,
    /// `… with entry-specific value 64 …`, which names no kernel: by input and value.
    nameless: HashMap<(u32, u32), usize>,
}

impl Caps {
    fn of(context: &Context<'_>) -> Caps {
        let mut caps = Caps::default();
        for (at, message) in context.messages_of(|kind| kind == MessageKind::RegisterCap) {
            let said = context.raw(message);
            match (
                message.kernel,
                text::number_after(said, "' with "),
                text::number_after(said, "entry-specific value"),
            ) {
                (Some(name), Some(cap), _) => caps.named.entry((name, cap)).or_insert(at),
                (None, _, Some(cap)) => caps.nameless.entry((message.place.input, cap)).or_insert(at),
                _ => continue,
            };
        }
        caps
    }

    /// The message whose limit the kernel reaches exactly: only then is the limit what it ran into.
    fn of_kernel(&self, kernel: &Kernel) -> Option<usize> {
        let registers = registers_of(kernel)?;
        let named = || self.named.get(&(kernel.name?, registers));
        let nameless = || self.nameless.get(&(kernel.evidence.first()?.input, registers));
        named().or_else(nameless).copied()
    }
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    match (context.numbered_kernel_of(hit), context.message_of(hit)) {
        (Some((at, kernel)), _) => of_kernel(context, at, kernel, context.message_at(hit.because)),
        (_, Some(message)) => of_message(context, message),
        _ => Finding::new("registers are spilled"),
    }
}

fn of_kernel(context: &Context<'_>, at: usize, kernel: &Kernel, cap: Option<&Message>) -> Finding {
    let stores = kernel.resources.spill_stores.unwrap_or_default();
    let loads = kernel.resources.spill_loads.unwrap_or_default();
    let label = context.label(kernel.evidence.frame, "", "bytes spill loads", "written to local memory and read back");
    let label = label.map(|mut label| {
        // The caret starts at the spills, behind the stack frame.
        if let Some(comma) = memchr::memchr(b',', context.text(label.quote)) {
            label.start = (comma + 2).min(label.end);
        }
        label
    });
    let called = format!("{}{}", context.function(kernel), context.called(kernel.name));
    let help = match kernel.kind {
        Kind::Entry => format!("{}; {FEWER}", room(context, at, kernel, cap)),
        Kind::Function => format!(
            "registers that a function saves around calls count as spills here: let it be inlined (`__forceinline__`, the \
             same translation unit or link-time optimization); one that is called through a pointer or calls itself \
             cannot be, so make the pointer a switch or a template parameter, and the recursion a loop; {FEWER}"
        ),
    };
    spill(&called, stores, loads, &context.on(kernel))
        .help(help)
        .label(label)
        .fact("registers", registers_of(kernel))
        .fact("max_registers", context.most_registers(kernel.arch))
}

fn of_message(context: &Context<'_>, message: &Message) -> Finding {
    let MessageKind::Spill { stores, loads } = message.kind else { return Finding::new("registers are spilled") };
    let label = context.message_label(message, "written to local memory and read back");
    spill(&context.called(message.kernel), stores, loads, "").help(format!("{LET_IT}; {FEWER}")).label(Some(label))
}

fn spill(called: &str, stores: Bytes, loads: Bytes, on: &str) -> Finding {
    Finding::new(format!("{called} spills {stores} of stores and {loads} of loads per thread{on}"))
        .fact("store_bytes", stores)
        .fact("load_bytes", loads)
}

const FEWER: &str = "or keep fewer values alive at once: split the kernel, shrink its tile, unroll less";

const LET_IT: &str = "give the kernel more registers (a larger or no -maxrregcount, a smaller block or minimum of blocks \
                      in __launch_bounds__)";

/// Where more registers could come from, as far as the inputs tell.
fn room(context: &Context<'_>, at: usize, kernel: &Kernel, cap: Option<&Message>) -> String {
    let (registers, target) = (registers_of(kernel), kernel.arch.and_then(Target::of));
    if let (Some(cap), Some(registers)) = (cap, registers) {
        return held(context.raw(cap), cap.kernel.is_some(), registers);
    }
    let Some((registers, target)) = registers.zip(target) else { return LET_IT.to_owned() };
    let most = target.max_registers_per_thread;
    if registers >= most {
        return format!(
            "it already uses {registers} registers, all that a thread can have: spread the work over more threads"
        );
    }
    let own = Own::of(context, at, kernel);
    if let Some(said) = own.and_then(|own| own.told(target, registers)) {
        return said;
    }
    let bound = if own.is_none_or(|own| own.threads == Stated::Unknown) { bound_of(target, registers) } else { None };
    let bound = bound.map(|bound| format!(", just what a __launch_bounds__ of {bound} threads leaves"));
    let bound = bound.unwrap_or_default();
    format!("it uses {registers} of the {most} registers that a thread can have{bound}: {LET_IT}")
}

/// What a kernel itself says of its launches and its registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Own {
    threads: Stated,
    blocks: Stated,
    registers: Stated,
    /// Whether it was read off the PTX, and not off a source.
    in_ptx: bool,
}

impl Own {
    /// What the directives of its PTX say, else the attributes in its sources; `None` where neither is there. A person sees
    /// the source, so that it is quoted where it says the same.
    fn of(context: &Context<'_>, at: usize, kernel: &Kernel) -> Option<Own> {
        let in_source = Own::in_source(context, kernel);
        let Some(in_ptx) = Own::in_ptx(context, at, kernel) else { return in_source };
        Some(in_source.filter(|own| Own { in_ptx: true, ..*own } == in_ptx).unwrap_or(in_ptx))
    }

    fn in_ptx(context: &Context<'_>, at: usize, kernel: &Kernel) -> Option<Own> {
        kernel.evidence.head?;
        let bounds = context.numbers.told(at)?.bounds?;
        let stated = |figure: Option<u32>| figure.map_or(Stated::No, Stated::As);
        let threads = stated(bounds.required.map(BlockSize::threads).or(bounds.max_threads));
        let (blocks, registers) = (stated(bounds.min_blocks), stated(bounds.max_registers));
        Some(Own { threads, blocks, registers, in_ptx: true })
    }

    fn in_source(context: &Context<'_>, kernel: &Kernel) -> Option<Own> {
        let bounds = context.report.families.get(kernel.family? as usize)?.bounds(context.report);
        let threads = bounds.block.map_or(bounds.max_threads, |block| Stated::As(block.threads()));
        Some(Own { threads, blocks: bounds.min_blocks, registers: bounds.max_registers, in_ptx: false })
    }

    /// What that leaves a kernel which uses so many `registers`, and what would leave it more; `None` where a figure of it is
    /// not known.
    fn told(self, target: &Target, registers: u32) -> Option<String> {
        if [self.threads, self.blocks, self.registers].contains(&Stated::Unknown) {
            return None;
        }
        let Some(left) = self.leaves(target) else { return Some(self.unbound(registers, target)) };
        // What this build was told is something else, then.
        if registers > left {
            return None;
        }
        let (written, verb) = self.written();
        let is_at_bound = registers.next_multiple_of(UNIT) >= left;
        Some(if is_at_bound {
            let used =
                if registers == left { "which is what it uses" } else { &format!("of which it uses {registers}") };
            format!("its {written} {verb} {left} registers, {used}: {}", self.wider())
        } else {
            format!("its {written} {verb} {left} registers, so ptxas chose {registers} itself: {}", self.asking())
        })
    }

    /// Registers a thread that it leaves; `None` where it says nothing.
    fn leaves(self, target: &Target) -> Option<u32> {
        let blocks = self.blocks.known().unwrap_or(1).max(1);
        let by_threads = self.threads.known().map(|threads| allowed(target, threads, blocks));
        by_threads.into_iter().chain(self.registers.known()).min()
    }

    /// As the source or the PTX has it, and the verb that goes with it.
    fn written(self) -> (String, &'static str) {
        let (threads, blocks) = (self.threads.known(), self.blocks.known());
        if !self.in_ptx {
            let bounds = threads.map(|threads| {
                let blocks = blocks.map_or(String::new(), |blocks| format!(", {blocks}"));
                format!("`__launch_bounds__({threads}{blocks})`")
            });
            let registers = self.registers.known().map(|most| format!("`__maxnreg__({most})`"));
            return (bounds.or(registers).unwrap_or_default(), "leaves");
        }
        let parts = [
            threads.map(|threads| format!("bound of {threads} threads")),
            blocks.map(|blocks| format!("`.minnctapersm {blocks}`")),
            self.registers.known().map(|most| format!("`.maxnreg {most}`")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (and(&parts), if parts.len() > 1 { "leave" } else { "leaves" })
    }

    /// What leaves more to a kernel that uses all that it is left.
    fn wider(self) -> &'static str {
        match (self.registers, self.blocks) {
            (Stated::As(_), _) => "raise the limit of registers",
            (_, Stated::As(2..)) => "a smaller block, or a smaller minimum of blocks, leaves more",
            _ => "a smaller block leaves more",
        }
    }

    /// What makes ptxas use more where it might.
    fn asking(self) -> String {
        let more = match (self.threads, self.blocks, self.registers) {
            (Stated::As(threads), Stated::No, Stated::No) => format!(
                "a minimum of blocks, as in `__launch_bounds__({threads}, 1)`, or a `__maxnreg__` in place of the bounds, \
                 tells it how many are welcome; "
            ),
            (Stated::As(_), _, Stated::No) => {
                "a `__maxnreg__` in place of the bounds tells it how many are welcome; ".to_owned()
            }
            _ => String::new(),
        };
        format!("{more}{LOOK}")
    }

    /// The same of a kernel that says nothing.
    fn unbound(self, registers: u32, target: &Target) -> String {
        let place = if self.in_ptx { "PTX" } else { "declaration" };
        let most = target.max_registers_per_thread;
        format!(
            "it uses {registers} of the {most} registers that a thread can have, and its {place} sets no bound: unless a \
             -maxrregcount holds it, ptxas chose that itself, and a `__launch_bounds__` of the block that is launched, with \
             a minimum of 1 block, tells it how many are welcome; {LOOK}"
        )
    }
}

/// What to look at where no bound is in the way.
const LOOK: &str = "look at what is live where it spills, as around a call that is not inlined";

/// The size of a block that leaves a thread exactly so many registers.
fn bound_of(target: &Target, registers: u32) -> Option<u32> {
    let most = target.registers_per_block;
    [384, 512, 640, 768, 896, 1024].into_iter().find(|threads| most / threads / 8 * 8 == registers)
}

fn held(said: &[u8], named: bool, registers: u32) -> String {
    if named {
        format!(
            "-maxrregcount holds it to {registers} registers: raise or drop that option, and give only the kernels that \
             need a limit a __launch_bounds__ or __maxnreg__ of their own"
        )
    } else if text::has(said, "of .maxnreg") {
        format!("a __maxnreg__ of {registers} stands in this build, and it uses {registers} registers: raise it")
    } else {
        format!(
            "a __launch_bounds__ in this build leaves {registers} registers, which is what it uses: a smaller block, or a \
             smaller minimum of blocks, leaves more"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{helps, human_with_log, lint, told};

    const RULE: &str = "register-spill";

    fn kernel(frame: &str, used: &str) -> String {
        format!(
            "ptxas info    : Compiling entry function 'reg_hungry' for 'sm_80'\nptxas info    : Function properties for reg_hungry\n    {frame}\nptxas info    : {used}\n"
        )
    }

    fn spilled(used: &str) -> String {
        kernel("728 bytes stack frame, 1360 bytes spill stores, 1464 bytes spill loads", used)
    }

    /// Registers are printed without a name, and spills after one.
    #[test]
    fn spills_of_kernels_whose_registers_are_mixed_up_are_reported_without_these() {
        let part = |what: &str| ["a", "b"].map(|name| what.replace("NAME", name)).concat();
        let log = [
            part("ptxas info    : Compiling entry function 'NAME' for 'sm_90'\n"),
            part("ptxas info    : Function properties for NAME\n    0 bytes stack frame, 760 bytes spill stores, 7 bytes spill loads\n"),
            "ptxas info    : Used 254 registers\nptxas info    : Used 255 registers\n".to_owned(),
        ]
        .concat();
        let said =
            |name: &str| format!("warning: `{name}` spills 760 B of stores and 7 B of loads per thread on sm_90");
        assert_eq!(told(RULE, &log), [said("a"), said("b")]);
        assert!(helps(RULE, &log).iter().all(|help| !help.contains("25")), "{:?}", helps(RULE, &log));
    }

    const HELD: &str =
        "ptxas info    : Overriding maximum register limit 256 for 'reg_hungry' with  32 of maxrregcount option\n";

    #[test]
    fn spills_are_told_with_their_bytes() {
        assert_eq!(
            told(
                RULE,
                &spilled("Used 32 registers, used 0 barriers, 728 bytes cumulative stack size, 368 bytes cmem[0]")
            ),
            ["warning: `reg_hungry` spills 1360 B of stores and 1464 B of loads per thread on sm_80"]
        );
    }

    #[test]
    fn a_stack_frame_without_spills_is_no_spill() {
        let log = kernel("400 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads", "Used 26 registers");
        assert!(told(RULE, &log).is_empty());
        assert!(told(RULE, " Function k:\n  REG:255 STACK:2128 SHARED:0 LOCAL:16 CONSTANT[0]:1064\n").is_empty());
    }

    #[test]
    fn the_advice_names_the_limit_that_the_log_names() {
        let held = helps(RULE, &format!("{HELD}{}", spilled("Used 32 registers")));
        assert!(held[0].starts_with("-maxrregcount holds it to 32 registers"), "{held:?}");
        let bound = "ptxas info    : Overriding global maxrregcount 32 with entry-specific value 64 computed using thread count\n";
        let bound = helps(RULE, &format!("{bound}{}", spilled("Used 64 registers")));
        assert!(bound[0].starts_with("a __launch_bounds__ in this build leaves 64 registers"), "{bound:?}");
        let full = helps(RULE, &spilled("Used 255 registers"));
        assert!(full[0].starts_with("it already uses 255 registers, all that a thread can have"), "{full:?}");
    }

    #[test]
    fn the_advice_names_the_launch_bounds_of_the_source() {
        let log = spilled("Used 32 registers").replace("reg_hungry", "_Z1kPf");
        let help = |attributes: &str, log: &str| {
            let text = format!("__global__ void {attributes} k(float* p) {{}}\n");
            human_with_log(&[("k.cu", &text)], log)
        };
        let both = help("__launch_bounds__(1024, 2)", &log);
        assert!(both.contains("its `__launch_bounds__(1024, 2)` leaves 32 registers, which is what it uses"), "{both}");
        let one = help("__launch_bounds__(1024)", &log.replace("Used 32", "Used 64"));
        assert!(one.contains("its `__launch_bounds__(1024)` leaves 64 registers, which is what it uses"), "{one}");
        let capped = help("__maxnreg__(32)", &log);
        assert!(capped.contains("its `__maxnreg__(32)` leaves 32 registers, which is what it uses: raise"), "{capped}");
        // Registers are given out in eights.
        let close = help("__launch_bounds__(1024)", &log.replace("Used 32", "Used 62"));
        assert!(close.contains("leaves 64 registers, of which it uses 62: a smaller block"), "{close}");
        // Nobody knows what they leave, or it is not what this build left.
        for attributes in ["__launch_bounds__(1024, N)", "__launch_bounds__(N)", "__launch_bounds__(1024, 4)"] {
            let other = help(attributes, &log);
            assert!(
                other.contains("it uses 32 of the 255 registers that a thread can have: give"),
                "{attributes}: {other}"
            );
        }
    }

    /// 80 registers are what a block of 768 threads would leave, and none is that large.
    #[test]
    fn where_the_bound_leaves_more_no_other_is_made_up() {
        let log = spilled("Used 80 registers").replace("reg_hungry", "_Z1kPf");
        let help = |attributes: &str| {
            let text = format!("__global__ void {attributes} k(float* p) {{}}\n");
            human_with_log(&[("k.cu", &text)], &log)
        };
        let bound = help("__launch_bounds__(256)");
        let said = "its `__launch_bounds__(256)` leaves 255 registers, so ptxas chose 80 itself: a minimum of blocks, as in \
                    `__launch_bounds__(256, 1)`, or a `__maxnreg__` in place of the bounds, tells it how many are welcome";
        assert!(bound.contains(said), "{bound}");
        let both = help("__launch_bounds__(256, 2)");
        assert!(
            both.contains(
                "its `__launch_bounds__(256, 2)` leaves 128 registers, so ptxas chose 80 itself: a `__maxnreg__`"
            ),
            "{both}"
        );
        let none = help("");
        assert!(
            none.contains("it uses 80 of the 255 registers that a thread can have, and its declaration sets no bound"),
            "{none}"
        );
        let unknown = help("__launch_bounds__(N)");
        assert!(unknown.contains("just what a __launch_bounds__ of 768 threads leaves"), "{unknown}");
        for told in [bound, both, none] {
            assert!(!told.contains("768") && !told.contains("a smaller block"), "{told}");
        }
    }

    #[test]
    fn the_directives_of_ptx_tell_the_bound_as_well() {
        let log = spilled("Used 80 registers").replace("reg_hungry", "_Z1kPf");
        let help = |directives: &str| {
            let ptx = format!(
                ".version 8.5\n.target sm_80\n.address_size 64\n.visible .entry _Z1kPf(.param .u64 p)\n{directives}\n{{\n\tret;\n}}\n"
            );
            human_with_log(&[("k.ptx", &ptx)], &log)
        };
        let more = help(".maxntid 256, 1, 1");
        assert!(more.contains("its bound of 256 threads leaves 255 registers, so ptxas chose 80 itself"), "{more}");
        let exact = help(".reqntid 32, 12, 1\n.minnctapersm 2");
        assert!(
            exact.contains("its bound of 384 threads and `.minnctapersm 2` leave 80 registers, which is what"),
            "{exact}"
        );
        let most = help(".maxntid 256, 1, 1\n.maxnreg 80");
        assert!(
            most.contains("its bound of 256 threads and `.maxnreg 80` leave 80 registers, which is what"),
            "{most}"
        );
        assert!(help("").contains("and its PTX sets no bound"), "{}", help(""));
        // What a person wrote is quoted, where the PTX says the same.
        let both = |attributes: &str| {
            let ptx = ".version 8.5\n.target sm_80\n.address_size 64\n.visible .entry _Z1kPf(.param .u64 p)\n.maxntid 256, 1, 1\n{\n\tret;\n}\n";
            let source = format!("__global__ void {attributes} k(float* p) {{}}\n");
            human_with_log(&[("k.ptx", ptx), ("k.cu", &source)], &log)
        };
        assert!(both("__launch_bounds__(256)").contains("its `__launch_bounds__(256)` leaves 255 registers"));
        assert!(both("__launch_bounds__(N)").contains("its bound of 256 threads leaves 255 registers"));
    }

    #[test]
    fn the_advice_invents_no_limit() {
        // The limit is not what the kernel ran into.
        let other = helps(RULE, &format!("{HELD}{}", spilled("Used 40 registers")));
        assert!(other[0].starts_with("it uses 40 of the 255 registers"), "{other:?}");
        let unknown = helps(RULE, &spilled("Used 63 registers").replace("sm_80", "sm_20"));
        assert!(unknown[0].starts_with("give the kernel more registers"), "{unknown:?}");
    }

    #[test]
    fn the_block_that_leaves_just_so_many_registers_is_named() {
        let used = |registers: u32| helps(RULE, &spilled(&format!("Used {registers} registers"))).concat();
        assert!(
            used(168).starts_with(
                "it uses 168 of the 255 registers that a thread can have, just what a __launch_bounds__ of 384 threads \
                 leaves: give"
            ),
            "{}",
            used(168)
        );
        assert!(used(128).contains("of 512 threads leaves"));
        assert!(used(160).starts_with("it uses 160 of the 255 registers that a thread can have: give"));
    }

    #[test]
    fn a_function_that_cannot_be_inlined_is_thought_of() {
        let log = "ptxas info    : Function properties for f\n    16 bytes stack frame, 16 bytes spill stores, 16 bytes spill loads\n";
        assert!(helps(RULE, log)[0].contains("through a pointer or calls itself"));
    }

    #[test]
    fn a_warning_counts_only_where_no_figures_are() {
        let warning = "ptxas warning : Registers are spilled to local memory in function 'reg_hungry', 1360 bytes spill stores, 1464 bytes spill loads\n";
        assert_eq!(
            lint(warning, &[]),
            ["warning[register-spill] `reg_hungry` spills 1360 B of stores and 1464 B of loads per thread"]
        );
        assert_eq!(told(RULE, &format!("{warning}{}", spilled("Used 32 registers"))).len(), 1);
    }

    #[test]
    fn a_device_function_is_called_one() {
        let log = "ptxas info    : Function properties for _ZN5matteC1ERK2v3\n    16 bytes stack frame, 16 bytes spill stores, 16 bytes spill loads\n";
        assert_eq!(
            told(RULE, log),
            ["warning: device function `matte` spills 16 B of stores and 16 B of loads per thread"]
        );
    }
}
