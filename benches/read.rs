//! How fast logs are read and linted, in bytes a second: `cargo bench`.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use warplint::analyse::{Assumptions, analyse};
use warplint::gpu::{Launch, Target, occupancy};
use warplint::join::join;
use warplint::model::{Arch, Report};
use warplint::parse::{Echo, EchoMode, read_log};
use warplint::report::{Format, Layout, Style, render};
use warplint::rules::Context;
use warplint::settle::{FailOn, Settings, activate, settle};

const NOISY: &[u8] = include_bytes!("../fixtures/perf/ptxas_noisy_300k.log");
const LONG_NAMES: &[u8] = include_bytes!("../fixtures/perf/ptxas_long_500k.log");

fn read(log: &[u8]) -> Report {
    let mut report = Report::default();
    let mut nowhere = std::io::sink();
    read_log(&mut &log[..], "bench.log", &mut report, &mut Echo::new(EchoMode::None, &mut nowhere))
        .expect("a log in memory can be read");
    report
}

fn lint(log: &[u8]) -> usize {
    let mut report = read(log);
    join(&mut report, &[]);
    let numbers = analyse(&report, &Assumptions::default());
    let rules = activate(&Settings::default());
    let verdict = settle(Context::new(&report, &numbers), &rules, &[]);
    let mut out = Vec::new();
    let layout = Layout { style: Style::PLAIN, limit: 100, verbose: false, quiet: false, fail_on: FailOn::Warn };
    render(Format::Human, &verdict, &layout, &mut out).expect("memory can be written to");
    out.len()
}

fn logs(c: &mut Criterion) {
    for (name, log) in [("noisy", NOISY), ("long names", LONG_NAMES)] {
        let large = log.repeat(20_000_000 / log.len());
        let mut group = c.benchmark_group(name);
        group.throughput(Throughput::Bytes(large.len() as u64)).sample_size(10);
        group.bench_function("read", |b| b.iter(|| black_box(read(&large))));
        group.bench_function("lint", |b| b.iter(|| black_box(lint(&large))));
        group.finish();
    }
}

fn calculator(c: &mut Criterion) {
    let target = Target::of(Arch::new(9, 0)).expect("sm_90 is in the tables");
    c.bench_function("occupancy", |b| b.iter(|| occupancy(black_box(target), &black_box(Launch::new(64, 256)))));
}

criterion_group!(benches, logs, calculator);
criterion_main!(benches);
