//! Makes one kernel of what several inputs say of it: the figures of the linker, which are final, warnings by name, its PTX,
//! and its declaration and launches in sources.

mod reserved;
mod sources;

use hashbrown::{HashMap, HashSet};

use self::reserved::Reserved;
use crate::model::{
    Arch, Bounds, Bytes, Function, Kernel, Kind, LinkSource, Linked, MessageKind, Module, NameId, Place, Quote, Report,
    Resources,
};

/// Joins all records of each kernel. What a record without an architecture says is read as of the architectures in `gpus`,
/// those of the GPUs that figures are asked for, where it depends on that.
pub fn join(report: &mut Report, gpus: &[Arch]) {
    join_records(report, gpus);
    add_functions(report);
    sources::declare(report);
}

/// Joins once more what sources declare, where some were found that only tell of kernels which are known.
pub fn rejoin(report: &mut Report) {
    sources::declare(report);
    sources::attach(report);
}

/// Makes a kernel of every function of a PTX module that no log has figures of. Files may have kernels of one name that are
/// not the same: what their directives say tells them apart.
fn add_functions(report: &mut Report) {
    if report.modules.is_empty() {
        return;
    }
    let logged: HashSet<Identity> = report.kernels.iter().filter_map(identity).collect();
    let mut made: HashSet<(Identity, Bounds)> = HashSet::new();
    // What was made from a source is declared there.
    for module in report.modules.iter().filter(|module| module.positions().is_none()) {
        for function in &module.functions {
            let identity = (function.name, function.kind, function.arch);
            if !logged.contains(&identity) && made.insert((identity, function.bounds)) {
                let mut kernel = Kernel::new(Some(function.name), function.kind, function.arch);
                kernel.evidence.name = Some(head(module, function));
                report.kernels.push(kernel);
            }
        }
    }
}

/// Where a function of PTX begins.
fn head(module: &Module, function: &Function) -> Place {
    Place { input: module.input, line: function.head.1, column_offset: 0, offset: function.head.0 as u64 }
}

/// What tells kernels apart.
type Identity = (NameId, Kind, Option<Arch>);

fn identity(kernel: &Kernel) -> Option<Identity> {
    Some((kernel.name?, kernel.kind, kernel.arch))
}

/// Longest part of a declaration that is kept, in bytes.
const LONGEST: usize = 4096;

/// Tells every function of a PTX module, and every family of the sources, which kernels it is, of those that are left after
/// filters.
pub fn attach(report: &mut Report) {
    sources::attach(report);
    if report.modules.is_empty() {
        return;
    }
    let kernels = Kernels::of(report);
    for module in report.modules.iter_mut().filter(|module| module.positions().is_none()) {
        for function in &mut module.functions {
            function.kernel = kernels.find(function);
            let Some(kernel) = function.kernel.and_then(|at| report.kernels.get_mut(at as usize)) else { continue };
            kernel.evidence.head.get_or_insert_with(|| {
                let (start, line) = function.head;
                let rest = &module.text[start..];
                let end = memchr::memchr3(b'\n', b'\r', b'(', rest).unwrap_or(rest.len()).min(LONGEST);
                let begin = memchr::memrchr(b'\n', &module.text[..start]).map_or(0, |at| at + 1);
                let column_offset = Place::columns(&module.text[begin..start]);
                let place = Place { input: module.input, line, column_offset, offset: start as u64 };
                Quote { place, text: report.texts.intern(&rest[..end]) }
            });
        }
    }
}

/// Which kernel each function of a PTX module is.
struct Kernels {
    /// By what every kernel has.
    known: HashMap<Identity, u32>,
    /// Those that were made of functions, by what their directives say as well.
    made: HashMap<(Identity, Bounds), u32>,
}

impl Kernels {
    fn of(report: &Report) -> Kernels {
        let mut known = HashMap::new();
        let mut places = HashMap::new();
        for (at, kernel) in (0..).zip(&report.kernels) {
            let Some(identity) = identity(kernel) else { continue };
            known.entry(identity).or_insert(at);
            if let Some(place) = kernel.evidence.name {
                places.insert((place.input, place.offset), at);
            }
        }
        let mut made = HashMap::new();
        for module in report.modules.iter().filter(|module| module.positions().is_none()) {
            for function in &module.functions {
                let place = head(module, function);
                if let Some(at) = places.get(&(place.input, place.offset)) {
                    made.insert(((function.name, function.kind, function.arch), function.bounds), *at);
                }
            }
        }
        Kernels { known, made }
    }

    fn find(&self, function: &Function) -> Option<u32> {
        let identity = (function.name, function.kind, function.arch);
        self.made.get(&(identity, function.bounds)).or_else(|| self.known.get(&identity)).copied()
    }
}

fn join_records(report: &mut Report, gpus: &[Arch]) {
    let named_by_messages = report.messages.iter().any(|message| message.kind == MessageKind::UnboundedStack);
    if report.linked.is_empty() && !named_by_messages {
        return;
    }
    let reserved = Reserved::new(report, gpus);
    let linked = std::mem::take(&mut report.linked);
    let mut by_name: HashMap<NameId, Vec<usize>> = HashMap::new();
    for (at, kernel) in report.kernels.iter().enumerate() {
        if let Some(name) = kernel.name {
            by_name.entry(name).or_default().push(at);
        }
    }
    let mut before = None;
    for mut one in linked {
        // Each log has its own runs of the linker.
        let input = one.kernel.evidence.first().map(|place| place.input);
        let printed = one.kernel.resources.barriers;
        let left_over = before.filter(|(of, _)| *of == input).and_then(|(_, barriers)| barriers);
        one.kernel.resources.barriers = sure_barriers(&one, left_over);
        before = Some((input, printed));
        let same = one.kernel.name.and_then(|name| by_name.get(&name)).map_or(&[][..], Vec::as_slice);
        let targets = targets(&report.kernels, same, &one.kernel);
        if targets.is_empty() {
            let name = one.kernel.name;
            report.kernels.push(alone(one, &reserved));
            if let Some(name) = name {
                by_name.entry(name).or_default().push(report.kernels.len() - 1);
            }
            continue;
        }
        for at in targets {
            merge(&mut report.kernels[at], &one, &reserved);
        }
    }
    mark_unbounded(report, &by_name);
}

/// Which of the kernels of the same name the linker's figures are for. Without a target on either side they are, only
/// when all of them were compiled for one architecture.
fn targets(kernels: &[Kernel], same: &[usize], linked: &Kernel) -> Vec<usize> {
    let of_kind = || same.iter().copied().filter(|at| kernels[*at].kind == linked.kind);
    let exact: Vec<usize> = of_kind().filter(|at| kernels[*at].arch == linked.arch).collect();
    if !exact.is_empty() {
        return exact;
    }
    let open = of_kind().filter(|at| linked.arch.is_none() || kernels[*at].arch.is_none());
    let open: Vec<usize> = open.collect();
    let one_arch = open.iter().all(|at| kernels[*at].arch == kernels[open[0]].arch);
    if one_arch { open } else { Vec::new() }
}

/// Barriers that a block can name.
const BARRIERS: u32 = 16;

/// The barriers of a linked kernel, where the tool can be believed: of a kernel without any, nvlink 13.1 to 13.5 print what is
/// left over from the one `before`, or any number.
fn sure_barriers(linked: &Linked, before: Option<u32>) -> Option<u32> {
    let printed = linked.kernel.resources.barriers?;
    let is_left_over = printed > 1 && before == Some(printed);
    let is_sure = linked.source != LinkSource::Nvlink || (printed <= BARRIERS && !is_left_over);
    is_sure.then_some(printed)
}

fn alone(linked: Linked, reserved: &Reserved) -> Kernel {
    let own_shared = reserved.own_shared(&linked, linked.kernel.arch);
    let mut kernel = linked.kernel;
    kernel.resources.static_shared = own_shared;
    if linked.source == LinkSource::Cuobjdump {
        kernel.resources.cumulative_stack = None;
    }
    kernel
}

fn merge(kernel: &mut Kernel, linked: &Linked, reserved: &Reserved) {
    let arch = kernel.arch.or(linked.kernel.arch);
    let last = &linked.kernel.resources;
    let resources = &mut kernel.resources;
    kernel.arch = arch;
    kernel.unbounded_stack |= linked.kernel.unbounded_stack;
    kernel.ambiguous |= linked.kernel.ambiguous;
    kernel.evidence.usage = linked.kernel.evidence.usage.or(kernel.evidence.usage);
    kernel.linked = true;
    if last.registers.is_some() && last.registers != resources.registers {
        kernel.registers_before_link = resources.registers;
    }
    resources.registers = last.registers.or(resources.registers);
    resources.barriers = match (resources.barriers, last.barriers) {
        // Those of a function that it calls, or what nvlink has left over.
        (Some(0), Some(1..)) if linked.source == LinkSource::Nvlink => None,
        (own, listed) => listed.or(own),
    };
    // Of linked code with shared memory the system's share would be counted in.
    if last.static_shared != resources.static_shared {
        resources.static_shared = reserved.own_shared(linked, arch).or(resources.static_shared);
    }
    resources.local = last.local.or(resources.local);
    resources.constant = last.constant.clone().or(resources.constant.take());
    resources.cumulative_stack = linked_stack(linked, resources).or(resources.cumulative_stack);
    resources.stack = resources.stack.or(last.stack);
}

/// The stack that linked code is listed with, if it is one: of an object that is still to be linked `cuobjdump` shows none,
/// whatever frames its functions have.
fn linked_stack(linked: &Linked, compiled: &Resources) -> Option<Bytes> {
    let told = compiled.stack.max(compiled.cumulative_stack).is_some();
    let listed = linked.kernel.resources.stack;
    listed.filter(|stack| linked.source == LinkSource::Nvlink || !told || !stack.is_zero())
}

/// Where the stack is unknown, the linker prints 0 and ptxas the frame alone: neither is the stack.
fn mark_unbounded(report: &mut Report, by_name: &HashMap<NameId, Vec<usize>>) {
    let names = report.messages.iter().filter(|message| message.kind == MessageKind::UnboundedStack);
    for name in names.filter_map(|message| message.kernel) {
        for at in by_name.get(&name).into_iter().flatten() {
            report.kernels[*at].unbounded_stack = true;
        }
    }
    for kernel in report.kernels.iter_mut().filter(|kernel| kernel.unbounded_stack && kernel.kind == Kind::Entry) {
        kernel.resources.cumulative_stack = None;
        // Only ptxas prints the frame of the kernel itself.
        if kernel.evidence.frame.is_none() {
            kernel.resources.stack = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::{Echo, EchoMode, read_log};

    fn joined(log: &str) -> Report {
        joined_for(log, &[])
    }

    fn joined_for(log: &str, gpus: &[Arch]) -> Report {
        let mut report = Report::default();
        let mut sink = std::io::sink();
        read_log(&mut log.as_bytes(), "x.log", &mut report, &mut Echo::new(EchoMode::None, &mut sink))
            .expect("a log in memory");
        join(&mut report, gpus);
        report
    }

    const PTXAS: &str = "ptxas info    : Compiling entry function 'k' for 'sm_90'\nptxas info    : Function properties for k\n    8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads\nptxas info    : Used 24 registers, used 1 barriers, 256 bytes smem\n";

    #[test]
    fn the_linkers_figures_are_final_and_spills_stay() {
        let report = joined(&format!(
            "{PTXAS}nvlink info    : Function properties for 'k':\nnvlink info    : used 46 registers, used 1 barriers, 88 stack, 1280 bytes smem, 540 bytes cmem[0], 0 bytes lmem\n"
        ));
        assert_eq!(report.kernels.len(), 1);
        let resources = &report.kernels[0].resources;
        assert_eq!(
            (resources.registers, resources.static_shared, resources.spill_stores),
            (Some(46), Some(Bytes(256)), Some(Bytes(4)))
        );
        assert_eq!((resources.stack, resources.cumulative_stack), (Some(Bytes(8)), Some(Bytes(88))));
    }

    #[test]
    fn a_stack_that_cannot_be_determined_is_not_the_linkers_0() {
        let linker = "nvlink info    : Function properties for 'k':\nnvlink info    : used 30 registers, used 0 barriers, 0 stack, 0 bytes smem, 536 bytes cmem[0], 0 bytes lmem\n";
        let warning = "nvlink warning : Stack size for entry function 'k' cannot be statically determined\n";
        let stacks = |log: &str| {
            let report = joined(log);
            assert_eq!(report.kernels.len(), 1, "{log}");
            (report.kernels[0].resources.stack, report.kernels[0].resources.cumulative_stack)
        };
        let zero = Some(Bytes(0));
        assert_eq!(stacks(linker), (zero, zero));
        for log in [
            format!("{warning}{linker}"),
            format!("{linker}{warning}"),
            format!("{warning}{linker}").replace("nvlink ", ""),
            " Function k:\n  REG:30 STACK:UNKNOWN SHARED:0 LOCAL:0 CONSTANT[0]:536\n".to_owned(),
        ] {
            assert_eq!(stacks(&log), (None, None), "{log}");
        }
        // The frame of the kernel itself, as ptxas prints it, is known all the same.
        assert_eq!(stacks(&format!("{PTXAS}{warning}{linker}")), (Some(Bytes(8)), None));
    }

    #[test]
    fn shared_memory_that_may_hold_reserved_bytes_stands_as_printed_until_occupancy_is_asked_for() {
        let shared =
            |log: &str, gpus: &[Arch]| joined_for(log, gpus).kernels.last().expect("a kernel").resources.static_shared;
        let (hopper, ampere, blackwell) = (Arch::new(9, 0), Arch::new(8, 0), Arch::new(12, 0));
        let listing = " Function l:\n  REG:10 STACK:0 SHARED:1536 LOCAL:0 CONSTANT[0]:536\n";
        let linker = "nvlink info    : Function properties for 'l':\nnvlink info    : used 32 registers, used 1 barriers, 0 stack, 1536 bytes smem, 536 bytes cmem[0], 0 bytes lmem\n";
        for log in [listing, linker] {
            assert_eq!(shared(log, &[]), Some(Bytes(1536)));
            assert_eq!(shared(log, &[hopper]), Some(Bytes(512)));
            assert_eq!(shared(log, &[ampere]), Some(Bytes(1536)));
            assert_eq!(shared(log, &[ampere, hopper]), None);
            // Other records of the log tell it, whatever GPU is asked for.
            assert_eq!(shared(&format!("{PTXAS}{log}"), &[ampere]), Some(Bytes(512)));
            let both = format!("{PTXAS}{}{log}", PTXAS.replace("sm_90", "sm_80"));
            assert_eq!(shared(&both, &[hopper]), None);
        }
        assert_eq!(shared(listing, &[hopper, blackwell]), Some(Bytes(512)));
        assert_eq!(shared(&format!("arch = sm_90a\n{listing}"), &[]), Some(Bytes(512)));
        // nvlink counts it in for 9.0 alone.
        assert_eq!(shared(linker, &[blackwell]), Some(Bytes(1536)));
        assert_eq!(shared(linker, &[hopper, blackwell]), None);
        let targeted = |arch: &str| {
            linker
                .replace(":\n", &format!(": (target: {arch})\n"))
                .replace("lmem\n", &format!("lmem (target: {arch})\n"))
        };
        for (arch, own) in [("sm_90", 512), ("sm_90a", 512), ("sm_100", 1536), ("sm_120a", 1536)] {
            assert_eq!(shared(&targeted(arch), &[]), Some(Bytes(own)), "{arch}");
        }
        // Less than is reserved holds nothing reserved, and from 9.0 on parameters start behind 528 bytes.
        assert_eq!(shared(&listing.replace("1536", "512"), &[]), Some(Bytes(512)));
        assert_eq!(shared(&listing.replace("536\n", "360\n"), &[]), Some(Bytes(1536)));
    }

    #[test]
    fn barriers_that_nvlink_has_left_over_are_not_believed() {
        let linker = |name: &str, barriers: u32| {
            format!(
                "nvlink info    : Function properties for '{name}':\nnvlink info    : used 8 registers, used {barriers} barriers, 0 stack, 0 bytes smem, 0 bytes lmem\n"
            )
        };
        let compiled = |barriers: u32| PTXAS.replace("used 1 barriers", &format!("used {barriers} barriers"));
        let barriers =
            |log: &str| joined(log).kernels.iter().map(|kernel| kernel.resources.barriers).collect::<Vec<_>>();
        // Of a kernel that has none itself, those of a function that it calls, or what is left over.
        assert_eq!(barriers(&format!("{}{}", compiled(0), linker("k", 3))), [None]);
        assert_eq!(barriers(&format!("{}{}", compiled(0), linker("k", 0))), [Some(0)]);
        assert_eq!(barriers(&format!("{}{}", compiled(1), linker("k", 5))), [Some(5)]);
        assert_eq!(barriers(&format!("{}{}", compiled(1), linker("k", 16_777_216))), [Some(1)]);
        // Alone: the same again, and what no block has.
        let alone =
            [linker("a", 0), linker("b", 3), linker("c", 3), linker("d", 1), linker("e", 1), linker("f", 48)].concat();
        assert_eq!(barriers(&alone), [Some(0), Some(3), None, Some(1), Some(1), None]);
    }

    #[test]
    fn an_object_that_is_still_to_be_linked_is_listed_without_stack_and_reserved_bytes() {
        let listing = " Function k:\n  REG:24 STACK:0 SHARED:{} LOCAL:0 CONSTANT[0]:536\n";
        let log = PTXAS.replace("256 bytes smem", "2048 bytes smem");
        for listed in ["2048", "3072"] {
            let report = joined(&format!("{log}{}", listing.replace("{}", listed)));
            let resources = &report.kernels[0].resources;
            assert_eq!(report.kernels.len(), 1);
            assert_eq!((resources.static_shared, resources.stack), (Some(Bytes(2048)), Some(Bytes(8))), "{listed}");
            assert_eq!(resources.cumulative_stack, None);
        }
        let linked = joined(&format!("{log}{}", listing.replace("STACK:0 SHARED:{}", "STACK:72 SHARED:4096")));
        let resources = &linked.kernels[0].resources;
        assert_eq!((resources.static_shared, resources.cumulative_stack), (Some(Bytes(3072)), Some(Bytes(72))));
    }

    #[test]
    fn a_linker_line_without_a_target_is_not_given_to_one_of_two_architectures() {
        let other = PTXAS.replace("sm_90", "sm_80").replace("256 bytes smem", "256 bytes smem, 360 bytes cmem[0]");
        let report = joined(&format!(
            "{PTXAS}{other}nvlink info    : Function properties for 'k':\nnvlink info    : used 46 registers, 0 stack, 0 bytes smem, 0 bytes lmem\n"
        ));
        let registers: Vec<_> = report
            .kernels
            .iter()
            .map(|kernel| (kernel.arch.map(|a| a.to_string()), kernel.resources.registers))
            .collect();
        assert_eq!(registers, [(Some("sm_90".into()), Some(24)), (Some("sm_80".into()), Some(24)), (None, Some(46))]);
    }
}
