//! `budget-exceeded`: a kernel costs more than the configuration lets it, or reaches less.

use serde::Deserialize;

use super::Context;
use super::limits::{counted, evidence, is_best, of_bounds, threads, with_facts};
use super::standing::Standing;
use crate::analyse::{Budget, Judged, Limit};
use crate::finding::{Fact, Finding, Hit, Label, Level};
use crate::gpu::Limiter;
use crate::model::{Bytes, Kernel, Kind, percent, symbol};

/// The rule has no options: the budgets stand in the configuration.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {}

pub(super) fn check(context: &Context<'_>, _: &Options, hits: &mut Vec<Hit>) {
    let numbers = context.numbers;
    if numbers.budgets.is_empty() {
        return;
    }
    let standing = Standing::of(context);
    let mut seen = vec![Seen::Nothing; numbers.budgets.len()];
    for (at, kernel) in context.framed() {
        for number in numbers.budgets_of(kernel.name).iter().copied() {
            let budget = &numbers.budgets[number];
            // The figures of a build for debugging are not those that the budget is for.
            let is_final = standing.is_optimised(kernel.evidence.first());
            match if is_final { measure(context, at, kernel, budget.limit) } else { Measured::Unknown } {
                Measured::Broken(broken) => {
                    seen[number] = Seen::Checked;
                    let hit = |one: Broken| Hit { judged: one.judged, ..Hit::kernel(at, one.weight) };
                    let own = |hit: Hit| hit.for_reason(budget.limit.number()).because_of_budget(number);
                    hits.extend(broken.into_iter().map(hit).map(own));
                }
                Measured::Held => seen[number] = Seen::Checked,
                Measured::Unknown if seen[number] == Seen::Nothing && has_to_tell(kernel) => {
                    seen[number] = Seen::Unknown
                }
                Measured::Unknown => {}
            }
        }
    }
    let unknown = seen.iter().enumerate().filter(|(_, seen)| **seen == Seen::Unknown);
    hits.extend(unknown.map(|(number, _)| Hit::budget(number).at_most(Level::Note)));
}

/// What a run saw of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// No compiled kernel that it is for.
    Nothing,
    /// Kernels, and of none the figure.
    Unknown,
    /// The figure of a kernel.
    Checked,
}

/// What becomes of a kernel's figure.
enum Measured {
    /// It breaks the budget: once, or on each of these GPUs.
    Broken(Vec<Broken>),
    /// It is within.
    Held,
    /// It is not in the input, or may be another kernel's.
    Unknown,
}

/// A budget that is broken.
struct Broken {
    judged: Option<u32>,
    /// By how many thousandths of the budget, to tell the worst: figures have different units.
    weight: u32,
}

/// Whether a kernel is one that has to have figures: a log has a record of it.
fn has_to_tell(kernel: &Kernel) -> bool {
    kernel.kind == Kind::Entry && kernel.is_in_log()
}

fn measure(context: &Context<'_>, at: usize, kernel: &Kernel, limit: Limit) -> Measured {
    let most = |used: Option<u32>, most: u32| match used {
        None => Measured::Unknown,
        Some(used) if used > most => {
            let over = u64::from(used - most) * 1000 / u64::from(most.max(1));
            Measured::Broken(vec![Broken { judged: None, weight: u32::try_from(over).unwrap_or(u32::MAX) }])
        }
        Some(_) => Measured::Held,
    };
    let resources = &kernel.resources;
    match limit {
        Limit::Spill(budget) => most(resources.spill_stores.max(resources.spill_loads).map(Bytes::get), budget.get()),
        Limit::Stack(budget) => most(resources.stack.map(Bytes::get), budget.get()),
        _ if kernel.ambiguous => Measured::Unknown,
        Limit::Registers(budget) => most(resources.registers, budget),
        Limit::Shared(budget) => most(shared(context, at, kernel).map(|(own, more)| (own + more).get()), budget.get()),
        Limit::Occupancy(budget) => reached(context, at, budget),
    }
}

/// Static shared memory, and the most dynamic that is known of a launch.
fn shared(context: &Context<'_>, at: usize, kernel: &Kernel) -> Option<(Bytes, Bytes)> {
    let numbers = context.numbers;
    let told = numbers.told_ids(at).filter_map(|id| numbers.told.get(id)?.dynamic_shared);
    Some((kernel.resources.static_shared?, told.map(|(size, _)| size).max().unwrap_or_default()))
}

/// What an occupancy may miss a budget by that a person has rounded.
const ROUNDING: f64 = 0.0005;

/// The lowest occupancy on each GPU that does not reach `budget`.
fn reached(context: &Context<'_>, at: usize, budget: f64) -> Measured {
    let numbers = context.numbers;
    let ids = numbers.ids(at);
    if ids.is_empty() {
        return Measured::Unknown;
    }
    let occupancy = |id: u32| numbers.judged[id as usize].occupancy.fraction();
    let mut worst: Vec<u32> = Vec::new();
    // Who writes 0.667 means two thirds.
    for id in ids.iter().copied().filter(|id| occupancy(*id) + ROUNDING < budget) {
        let same = worst.iter_mut().find(|one| numbers.judged[**one as usize].gpu == numbers.judged[id as usize].gpu);
        match same {
            Some(one) if occupancy(id) < occupancy(*one) => *one = id,
            Some(_) => {}
            None => worst.push(id),
        }
    }
    if worst.is_empty() {
        return Measured::Held;
    }
    let missing = |id: u32| ((budget - occupancy(id)) / budget * 1000.0).ceil() as u32;
    Measured::Broken(worst.into_iter().map(|id| Broken { judged: Some(id), weight: missing(id) }).collect())
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    let Some(budget) = context.budget_of(hit) else { return Finding::new("a budget of the configuration is broken") };
    match context.numbered_kernel_of(hit) {
        Some((at, kernel)) => broken(context, at, kernel, budget, context.judged_of(hit)),
        None => unchecked(context, budget),
    }
}

/// A broken budget in words.
struct Words {
    message: String,
    label: Option<Label>,
    value: Fact,
    budget: Fact,
    help: String,
}

fn broken(context: &Context<'_>, at: usize, kernel: &Kernel, budget: &Budget, judged: Option<&Judged>) -> Finding {
    let words = match (budget.limit, judged) {
        (Limit::Occupancy(least), Some(judged)) => below(context, kernel, judged, least),
        (limit, _) => over(context, at, kernel, limit),
    };
    let mut finding = Finding::new(words.message).help(words.help).label(words.label);
    finding = judged.into_iter().fold(finding, with_facts);
    finding.beside.push(context.span_label(budget.quote, budget.span, "budget"));
    let key = budget.limit.key();
    finding.mark(key).fact("key", key).fact("value", words.value).fact("budget", words.budget)
}

fn over(context: &Context<'_>, at: usize, kernel: &Kernel, limit: Limit) -> Words {
    let resources = &kernel.resources;
    let frame = |start: &str, end: &str| context.label(kernel.evidence.frame, start, end, OVER);
    let (uses, label, value, most, help) = match limit {
        Limit::Spill(most) => {
            let (stores, loads) =
                (resources.spill_stores.unwrap_or_default(), resources.spill_loads.unwrap_or_default());
            let uses = format!("spills {stores} of stores and {loads} of loads per thread");
            let label = frame(&format!("{} bytes spill stores", stores.get()), "bytes spill loads");
            (uses, label, stores.max(loads).into(), most.to_string(), SPILL)
        }
        Limit::Stack(most) => {
            let size = resources.stack.unwrap_or_default();
            let uses = format!("has a stack frame of {size} per thread");
            (uses, frame("", "bytes stack frame"), size.into(), most.to_string(), STACK)
        }
        Limit::Shared(most) => {
            let (own, more) = shared(context, at, kernel).unwrap_or_default();
            let parts = match (own.is_zero(), more.is_zero()) {
                (_, true) => String::new(),
                (true, false) => " (dynamic)".to_owned(),
                (false, false) => format!(" ({own} static, {more} dynamic)"),
            };
            let uses = format!("takes {} of shared memory per block{parts}", own + more);
            let label = evidence(context, kernel, Some(Limiter::SharedMemory), OVER);
            (uses, label, (own + more).into(), most.to_string(), SHARED)
        }
        Limit::Registers(_) | Limit::Occupancy(_) => {
            let used = resources.registers.unwrap_or_default();
            let uses = format!("uses {} per thread", counted(used, "register"));
            let most = if let Limit::Registers(most) = limit { most } else { used };
            (uses, evidence(context, kernel, None, OVER), Fact::from(used), most.to_string(), FEWER)
        }
    };
    let budget = match limit {
        Limit::Registers(most) => most.into(),
        Limit::Spill(most) | Limit::Stack(most) | Limit::Shared(most) => most.into(),
        Limit::Occupancy(least) => least.into(),
    };
    let called = format!("{}{}", context.function(kernel), context.called(kernel.name));
    let message = format!("{called} {uses}{}, over its budget of {most}", context.on(kernel));
    Words { message, label, value, budget, help: format!("{help}; or raise the budget, if that is meant") }
}

const OVER: &str = "over its budget";

/// `… reaches 25 % occupancy on a100 with blocks of 256 threads, 16 of 64 warps, below its budget of 50 %`
fn below(context: &Context<'_>, kernel: &Kernel, judged: &Judged, least: f64) -> Words {
    let fraction = judged.occupancy.fraction();
    let (reached, wanted) = match (percent(fraction), percent(least)) {
        // Told apart where whole percent do not tell them apart.
        (reached, wanted) if reached == wanted => {
            (format!("{:.2} %", fraction * 100.0), format!("{:.2} %", least * 100.0))
        }
        different => different,
    };
    let block = match is_best(judged) {
        true => "even at its best block size".to_owned(),
        false => {
            format!("with blocks of {}{}", threads(judged.launch.threads), of_bounds(judged).replace(" with", ","))
        }
    };
    let warps = format!("{} of {} warps", judged.occupancy.active_warps, judged.occupancy.max_warps);
    let (called, gpu) = (context.called(kernel.name), &context.numbers.gpu(judged).name);
    Words {
        message: format!(
            "{called} reaches {reached} occupancy on {gpu} {block}, {warps}, below its budget of {wanted}"
        ),
        label: evidence(context, kernel, None, "below its budget"),
        value: fraction.into(),
        budget: least.into(),
        help: OCCUPANCY.to_owned(),
    }
}

const FEWER: &str = "keep fewer values alive at once, use a smaller tile, or bound the registers (`__launch_bounds__`, \
                     `-maxrregcount`), at which a spill may follow";
const SPILL: &str = "give the kernel more registers, or keep fewer values alive at once";
const STACK: &str =
    "index local arrays by constants, so that they can live in registers, and let called functions be inlined";
const SHARED: &str = "use a smaller tile or fewer stages";
const OCCUPANCY: &str = "`warplint occupancy` shows which limit binds, and the next step in each direction; or lower the \
                         budget, if that is meant";

/// A budget that nothing was held against.
fn unchecked(context: &Context<'_>, budget: &Budget) -> Finding {
    let key = budget.limit.key();
    let glob = context.numbers.entries.get(budget.entry).map_or("", |entry| entry.glob.as_str());
    let help = match budget.limit {
        Limit::Occupancy(_) => {
            "occupancy takes the registers, the shared memory and a known architecture: compile with `-Xptxas -v`"
        }
        _ => "compile with `-Xptxas -v`, without -G, and lint the whole output",
    };
    let message = format!("`{key}` of `{}` was not checked: of no kernel is the figure known", symbol::printable(glob));
    Finding::new(message)
        .help(help)
        .label(Some(context.span_label(budget.quote, budget.span, "held against nothing")))
        .mark(key)
        .fact("key", key)
        .fact("name", glob)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{divergent, told_with};

    /// The record of a kernel on an architecture, with a stack frame of 64 bytes.
    fn record(name: &str, arch: &str, registers: u32, spills: u32) -> String {
        format!(
            "ptxas info    : Compiling entry function '{name}' for '{arch}'\nptxas info    : Function properties for {name}\n    \
             64 bytes stack frame, {spills} bytes spill stores, {spills} bytes spill loads\nptxas info    : Used {registers} \
             registers, used 1 barriers, 8192 bytes smem, 400 bytes cmem[0]\n"
        )
    }

    fn told_of(log: &str, config: &str, args: &[&str]) -> Vec<String> {
        told_with(config, "budget-exceeded", log, args)
    }

    /// What is told of the kernel `k` with one line of an entry.
    fn told(line: &str) -> Vec<String> {
        told_of(&record("k", "sm_80", 100, 16), &format!("[[kernel]]\nname = \"k\"\n{line}\n"), &[])
    }

    #[test]
    fn what_meets_a_budget_is_silent_and_the_next_number_is_not() {
        for held in [
            "max-registers = 100",
            "max-spill-bytes = 16",
            "max-stack-bytes = 64",
            "max-shared-bytes = 8192",
            "min-occupancy = 0.25\nblock = 256",
        ] {
            assert!(told(held).is_empty(), "{held}");
        }
        assert_eq!(
            told("max-registers = 99"),
            ["deny: `k` uses 100 registers per thread on sm_80, over its budget of 99"]
        );
        assert_eq!(
            told("max-spill-bytes = 15"),
            ["deny: `k` spills 16 B of stores and 16 B of loads per thread on sm_80, over its budget of 15 B"]
        );
        let stack = "deny: `k` has a stack frame of 64 B per thread on sm_80, over its budget of 63 B";
        assert_eq!(told("max-stack-bytes = 63"), [stack]);
        let shared = "deny: `k` takes 8 KiB of shared memory per block on sm_80, over its budget of 8191 B";
        assert_eq!(told("max-shared-bytes = 8191"), [shared]);
        assert_eq!(
            told("max-shared-bytes = 8191\ndynamic-shared = \"4K\""),
            [
                "deny: `k` takes 12 KiB of shared memory per block (8 KiB static, 4 KiB dynamic) on sm_80, over its budget of \
              8191 B"
            ]
        );
        assert_eq!(
            told("min-occupancy = 0.26\nblock = 256"),
            [
                "deny: `k` reaches 25 % occupancy on sm_80 with blocks of 256 threads, 16 of 64 warps, below its budget of 26 %"
            ]
        );
    }

    #[test]
    fn without_a_block_the_best_one_counts() {
        let best = "deny: `k` reaches 25 % occupancy on sm_80 even at its best block size, 16 of 64 warps, below its budget of \
                    50 %";
        assert_eq!(told("min-occupancy = 0.5"), [best]);
        assert!(told("min-occupancy = 0.25").is_empty());
    }

    #[test]
    fn two_thirds_meet_a_budget_that_a_person_rounded() {
        let log = record("k", "sm_86", 64, 0);
        let told = |least: &str| {
            told_of(&log, &format!("[[kernel]]\nname = \"k\"\nblock = 256\nmin-occupancy = {least}\n"), &[])
        };
        assert!(told("0.667").is_empty());
        assert_eq!(told("0.67").len(), 1);
        assert!(told("0.67")[0].ends_with(
            "reaches 66.67 % occupancy on sm_86 with blocks of 256 threads, 32 of 48 warps, below its budget of 67.00 %"
        ));
    }

    #[test]
    fn each_gpu_is_held_against_the_budget_of_occupancy() {
        let config = "[[kernel]]\nname = \"k\"\nblock = 512\nmin-occupancy = 0.5\n";
        let told =
            told_of(&record("k", "sm_80", 64, 0), config, &["--gpu", "sm_80", "--gpu", "sm_86", "--gpu", "sm_89"]);
        assert!(told.is_empty(), "{told:?}");
        let told = told_of(&record("k", "sm_80", 72, 0), config, &["--gpu", "sm_80", "--gpu", "sm_86"]);
        let on = |gpu: &str| told.iter().filter(|line| line.contains(&format!(" on {gpu} "))).count();
        assert_eq!((on("sm_80"), on("sm_86"), told.len()), (1, 1, 2), "{told:?}");
    }

    #[test]
    fn of_several_entries_the_first_that_sets_a_budget_holds() {
        let exception = "[[kernel]]\nname = \"k\"\nmax-registers = 128\n[[kernel]]\nname = \"*\"\nmax-registers = 64\n\
                         max-stack-bytes = 0\n";
        let told = told_of(&(record("k", "sm_80", 100, 0) + &record("other", "sm_80", 100, 0)), exception, &[]);
        let has = |text: &str| told.iter().filter(|line| line.contains(text)).count();
        assert_eq!((has("`other` uses 100"), has("`k` uses"), has("has a stack frame of 64 B")), (1, 0, 2), "{told:?}");
    }

    #[test]
    fn what_is_not_known_breaks_no_budget_and_is_a_note_where_a_compiler_could_have_told() {
        let all = "[[kernel]]\nname = \"k\"\nmax-registers = 0\nmax-spill-bytes = 0\nmax-stack-bytes = 0\nmin-occupancy = 1\n";
        let bare = "ptxas info    : Compiling entry function 'k' for 'sm_80'\nptxas info    : Function properties for k\n    0 bytes \
                    stack frame, 0 bytes spill stores, 0 bytes spill loads\n";
        assert_eq!(
            told_of(bare, all, &[]),
            [
                "note: `max-registers` of `k` was not checked: of no kernel is the figure known",
                "note: `min-occupancy` of `k` was not checked: of no kernel is the figure known",
            ]
        );
        // A name that is nobody's, PTX without figures, and a kernel that is told of beside one that is not.
        assert!(told_of(&bare.replace("'k'", "'other'").replace("for k", "for other"), all, &[]).is_empty());
        assert!(told_of(&divergent("", "", ""), all, &[]).is_empty());
        let both = record("k", "sm_90", 8, 0) + bare;
        assert!(told_of(&both, "[[kernel]]\nname = \"k\"\nmax-registers = 8\n", &[]).is_empty());
    }

    #[test]
    fn a_build_for_debugging_is_not_held_against_budgets() {
        let echo = "nvcc -G -Xptxas -v -c k.cu\n";
        let told = told_of(
            &format!("{echo}{}", record("k", "sm_80", 100, 0)),
            "[[kernel]]\nname = \"k\"\nmax-registers = 1\n",
            &[],
        );
        assert_eq!(told, ["note: `max-registers` of `k` was not checked: of no kernel is the figure known"]);
    }

    #[test]
    fn a_broken_budget_can_be_allowed_in_its_entry() {
        assert!(told("max-registers = 1\nallow = [\"budget-exceeded\"]\nreason = \"until the rewrite\"").is_empty());
    }
}
