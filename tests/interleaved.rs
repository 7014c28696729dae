//! Several compilers that write into one log: no fact that is given as certain is wrong.

// A failed expectation is how a test reports.
#![allow(clippy::unwrap_used)]
// Each test program uses a part of them.
#[allow(dead_code)]
mod facts;
#[allow(dead_code)]
mod generated;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use generated::{ERAS, Era, Made};
use proptest::prelude::*;
use proptest::sample::select;

const ARCHS: &[&str] = &["sm_80", "sm_90a", "sm_52"];

/// One compiler's kernels, all for one architecture.
fn stream() -> impl Strategy<Value = Vec<Made>> {
    select(ARCHS).prop_flat_map(|arch| {
        let one: &'static [&'static str] = match arch {
            "sm_80" => &["sm_80"],
            "sm_52" => &["sm_52"],
            _ => &["sm_90a"],
        };
        prop::collection::vec(generated::kernel(one), 1..6)
    })
}

/// Few enough for every run of the tests; the environment may ask for more.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(96)
}

/// The records of all streams, each in its order; `turns` says whose is next, so long as it has one.
fn interleaved(streams: Vec<Vec<String>>, turns: &[usize]) -> String {
    let mut streams: Vec<std::vec::IntoIter<String>> = streams.into_iter().map(Vec::into_iter).collect();
    let mut log = String::new();
    for turn in turns.iter().cycle().take(10_000) {
        if streams.is_empty() {
            break;
        }
        let at = turn % streams.len();
        match streams[at].next() {
            Some(record) => log += &record,
            None => drop(streams.remove(at)),
        }
    }
    log
}

fn records(kernels: &[Made], era: Era) -> Vec<String> {
    let module = "ptxas info    : 0 bytes gmem\n".to_owned();
    [module].into_iter().chain(kernels.iter().flat_map(|kernel| kernel.records(era))).collect()
}

/// A kernel's facts without the compile time, which interleaving hides more often.
fn timeless(facts: &str) -> &str {
    facts.rsplit_once(", ").map_or(facts, |(facts, _)| facts)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_fact_of_a_kernel_that_is_not_ambiguous_is_wrong(
        streams in prop::collection::vec(stream(), 2..5),
        turns in prop::collection::vec(0_usize..4, 1..200),
        era in select(&ERAS[..]),
        same_names in any::<bool>(),
    ) {
        let mut streams = streams;
        if same_names {
            let names: Vec<String> = streams[0].iter().map(|kernel| kernel.name.clone()).collect();
            for kernels in &mut streams {
                kernels.iter_mut().zip(&names).for_each(|(kernel, name)| kernel.name.clone_from(name));
            }
        }
        let log = interleaved(streams.iter().map(|kernels| records(kernels, era)).collect(), &turns);
        let made: Vec<&Made> = streams.iter().flatten().collect();
        let truth: BTreeSet<String> = made.iter().map(|made| timeless(&made.facts(era)).to_owned()).collect();
        let report = facts::read(log.as_bytes()).report;
        for kernel in report.kernels.iter().filter(|kernel| !kernel.ambiguous) {
            let mut kernel = kernel.clone();
            kernel.records = 1;
            let facts = facts::kernel(&report, &kernel);
            prop_assert!(truth.contains(timeless(&facts)), "{facts}\nis none of {truth:#?}\n{log}");
            let time = kernel.resources.compile_time_ms;
            let whole: Vec<String> = made.iter().map(|made| made.facts(era)).collect();
            prop_assert!(time.is_none() || whole.contains(&facts), "the time of {facts}\nis another's\n{log}");
        }
        let count: u32 = report.kernels.iter().map(|kernel| kernel.records).sum();
        prop_assert_eq!(count as usize, made.len(), "{}", log);
        // Stack and spills follow a name, and may be certain where registers are not.
        for kernel in report.kernels.iter().filter(|kernel| !kernel.frame_ambiguous) {
            let (Some(name), Some(stores)) = (kernel.name, kernel.resources.spill_stores) else { continue };
            let name = String::from_utf8_lossy(report.names.get(name)).into_owned();
            let arch = kernel.arch.map(|arch| arch.to_string());
            let spills = |made: &Made| stores.get() == made.stores && kernel.resources.spill_loads.is_some_and(|loads| loads.get() == made.loads);
            let is_true = made.iter().filter(|made| made.name == name && arch.as_ref().is_none_or(|arch| *arch == made.arch)).any(|made| spills(made));
            prop_assert!(is_true, "the spills of {name} are another's\n{log}");
        }
    }

    #[test]
    fn nothing_is_ambiguous_where_lines_name_their_job(
        streams in prop::collection::vec(stream(), 2..5),
        turns in prop::collection::vec(0_usize..4, 1..200),
        era in select(&ERAS[..]),
        mark in select(&["#{} 12.34 ", "{}>", "  {}>  "][..]),
    ) {
        let marked = |(job, kernels): (usize, &Vec<Made>)| {
            let mark = mark.replace("{}", &(job + 1).to_string());
            let lines = |record: &String| record.lines().map(|line| format!("{mark}{line}\n")).collect::<String>();
            records(kernels, era).iter().map(lines).collect::<Vec<String>>()
        };
        let log = interleaved(streams.iter().enumerate().map(marked).collect(), &turns);
        let truth: BTreeSet<String> = streams.iter().flatten().map(|made| made.facts(era)).collect();
        let report = facts::read(log.as_bytes()).report;
        let read: BTreeSet<String> = report
            .kernels
            .iter()
            .map(|kernel| facts::kernel(&report, &warplint::model::Kernel { records: 1, ..kernel.clone() }))
            .collect();
        prop_assert_eq!(read, truth, "{}", log);
    }
}

#[test]
fn nothing_of_one_compilers_log_is_ambiguous() {
    for case in ["13.5/six-archs-one-compile", "13.5/nvcc-four-threads", "13.5/make-four-jobs", "13.0/stack-sm80"] {
        let log = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/ptxas").join(case).join("input.log");
        let report = facts::read(&fs::read(log).unwrap()).report;
        assert!(report.kernels.len() > 4 && report.kernels.iter().all(|kernel| !kernel.ambiguous), "{case}");
    }
}

#[test]
fn figures_that_are_equal_are_no_question_of_whose_is_whose() {
    let log = "\
ptxas info    : Compiling entry function 'a' for 'sm_80'
ptxas info    : Function properties for a
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Compiling entry function 'b' for 'sm_80'
ptxas info    : Function properties for b
    8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 8 registers, 360 bytes cmem[0]
ptxas info    : Used 8 registers, 360 bytes cmem[0]
";
    let report = facts::read(log.as_bytes()).report;
    assert!(report.kernels.iter().all(|kernel| !kernel.ambiguous));
    let spills: Vec<u32> = report.kernels.iter().map(|kernel| kernel.resources.spill_stores.unwrap().get()).collect();
    assert_eq!(spills, [0, 4]);
    let other = log.replacen("Used 8", "Used 9", 1);
    let report = facts::read(other.as_bytes()).report;
    assert!(report.kernels.iter().all(|kernel| kernel.ambiguous), "unequal figures leave it open");
}

#[test]
fn what_is_left_after_all_others_are_told_apart_is_certain() {
    // The first figures fit both, the second only `a`, whose frame is no larger than their stack.
    let log = "\
ptxas info    : Compiling entry function 'a' for 'sm_80'
ptxas info    : Function properties for a
    8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Compiling entry function 'b' for 'sm_80'
ptxas info    : Function properties for b
    400 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 20 registers, 400 bytes cumulative stack size, 360 bytes cmem[0]
ptxas info    : Used 10 registers, 8 bytes cumulative stack size, 360 bytes cmem[0]
";
    let report = facts::read(log.as_bytes()).report;
    let mut read: Vec<(&[u8], u32, bool)> = report
        .kernels
        .iter()
        .map(|kernel| (report.names.get(kernel.name.unwrap()), kernel.resources.registers.unwrap(), kernel.ambiguous))
        .collect();
    read.sort_unstable();
    assert_eq!(read, [(&b"a"[..], 10, false), (&b"b"[..], 20, false)]);
}
