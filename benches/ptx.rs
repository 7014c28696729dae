//! How fast PTX is read and its branches are judged, in bytes a second: `cargo bench --bench ptx`.
//!
//! `WARPLINT_PTX` names further files, or folders of them, as a search path does: `WARPLINT_PTX=a.ptx:folder`.

use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use walkdir::WalkDir;
use warplint::analyse::{Assumptions, Depth, analyse};
use warplint::join::{attach, join};
use warplint::lanes::Shape;
use warplint::lanes::cfg::Cfg;
use warplint::lanes::decisions::decisions;
use warplint::lanes::graph::Graph;
use warplint::lanes::lattice::solve;
use warplint::lanes::region::Regions;
use warplint::lanes::task::Which;
use warplint::model::{Function, Kind, Module, Report};
use warplint::parse::ptx::{Body, Code, read_ptx};
use warplint::report::{Format, Layout, Style, render};
use warplint::rules::Context;
use warplint::settle::{FailOn, Settings, activate, settle};

type Text = Arc<Vec<u8>>;

fn read(texts: &[Text]) -> Report {
    let mut report = Report::default();
    for text in texts {
        // Of a damaged file, what is before the fault is measured.
        let _ = read_ptx(text.clone(), "bench.ptx", &mut report);
    }
    report
}

/// Runs `f` on every function that has a branch, and its module.
fn each_function(texts: &[Text], mut f: impl FnMut(&Module, &Function) -> usize) -> usize {
    let report = read(texts);
    let functions = report.modules.iter().flat_map(|module| module.functions.iter().map(move |one| (module, one)));
    functions.filter(|(_, one)| one.branches > 0).map(|(module, one)| f(module, one)).sum()
}

fn control_flow(texts: &[Text]) -> usize {
    each_function(texts, |_, one| Cfg::of(&one.flow).map_or(0, |cfg| cfg.loops.len()))
}

fn first_level(texts: &[Text]) -> usize {
    let mut body = Body::default();
    each_function(texts, |module, one| {
        let parameters = &module.text[one.parameters.clone()];
        let code = Code::read(&module.text, one.body.start, parameters, &one.flow, &mut body);
        let Some(cfg) = Cfg::new(&code) else { return 0 };
        let mut graph = Graph::new(&code, &cfg);
        let Some(decisions) = decisions(&code, &cfg, &mut graph) else { return 0 };
        let shape = Shape { x: 256, y: 1, z: 1, is_entry: one.kind == Kind::Entry };
        let known = solve(&graph, &decisions, shape, &mut Regions::default());
        let done = decisions.iter().flatten().filter(|decision| known[decision.node.0 as usize].is_warp_uniform());
        done.count()
    })
}

fn lint(texts: &[Text]) -> usize {
    let mut report = read(texts);
    join(&mut report, &[]);
    attach(&mut report);
    let numbers = analyse(&report, &Assumptions { depth: Depth::Branches(Which::ByIndex), ..Assumptions::default() });
    let rules = activate(&Settings::default());
    let verdict = settle(Context::new(&report, &numbers), &rules, &[]);
    let mut out = Vec::new();
    let layout = Layout { style: Style::PLAIN, limit: 100, verbose: false, quiet: false, fail_on: FailOn::Warn };
    render(Format::Human, &verdict, &layout, &mut out).expect("memory can be written to");
    out.len()
}

/// The PTX files in a folder, or the file itself.
fn texts(path: &Path) -> Vec<Text> {
    let files =
        WalkDir::new(path).sort_by_file_name().into_iter().filter_map(Result::ok).map(walkdir::DirEntry::into_path);
    let ptx = files.filter(|file| file.extension().is_some_and(|extension| extension == "ptx"));
    ptx.filter_map(|file| fs::read(file).ok()).map(Text::new).collect()
}

fn modules(c: &mut Criterion) {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let mut sets = vec![
        ("divergence".to_owned(), texts(&fixtures.join("divergence"))),
        ("divergence-own".to_owned(), texts(&fixtures.join("divergence-own"))),
    ];
    if let Some(paths) = std::env::var_os("WARPLINT_PTX") {
        let paths: Vec<PathBuf> = std::env::split_paths(&paths).collect();
        sets.extend(paths.iter().map(|path| (path.display().to_string().replace('/', "_"), texts(path))));
    }
    for (name, texts) in sets {
        let bytes: usize = texts.iter().map(|text| text.len()).sum();
        if bytes == 0 {
            continue;
        }
        let mut group = c.benchmark_group(name);
        group.throughput(Throughput::Bytes(bytes as u64)).sample_size(10);
        group.bench_function("read", |b| b.iter(|| black_box(read(&texts))));
        group.bench_function("read, control flow", |b| b.iter(|| black_box(control_flow(&texts))));
        group.bench_function("read, control flow, level 1", |b| b.iter(|| black_box(first_level(&texts))));
        group.bench_function("lint", |b| b.iter(|| black_box(lint(&texts))));
        group.finish();
    }
}

criterion_group!(benches, modules);
criterion_main!(benches);
