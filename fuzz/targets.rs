//! What each fuzz target does with its bytes; shared with `tests/corpus.rs`.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::path::Path;

use warplint::analyse::{Assumptions, Depth, analyse};
use warplint::baseline::{self, Baseline, Occupancies, Told};
use warplint::config;
use warplint::filter::Filter;
use warplint::gpu::Gpu;
use warplint::join::{attach, join};
use warplint::lanes::task::Which;
use warplint::lanes::verdict::Confidence;
use warplint::model::{BlockSize, Bounds, InputFacts, Kernel, Kind, NameId, Quote, Report, symbol};
use warplint::parse::cuda::{Aliases, File, Gathered, Scanner, gather, lower, tokens};
use warplint::parse::ptx::{Body, Code, Locations, PtxFault, read_ptx};
use warplint::parse::{Echo, EchoMode, read_log};
use warplint::report::{self, Style};
use warplint::rules::Context;
use warplint::run::{Streams, run};
use warplint::suppress;

/// Gives out its bytes in pieces of one size.
struct Pieces<'b>(&'b [u8], usize);

impl Read for Pieces<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let size = self.1.min(out.len()).min(self.0.len());
        out[..size].copy_from_slice(&self.0[..size]);
        self.0 = &self.0[size..];
        Ok(size)
    }
}

fn read(bytes: &[u8], piece: usize) -> Report {
    let mut report = Report::default();
    let mut sink = io::sink();
    let mut echo = Echo::new(EchoMode::Others, &mut sink);
    read_log(&mut Pieces(bytes, piece), "log", &mut report, &mut echo).expect("bytes in memory can be read");
    join(&mut report, &[]);
    report
}

/// A log is read, and gives the same facts however it comes in pieces.
pub(crate) fn log(bytes: &[u8]) {
    let whole = read(bytes, usize::MAX);
    let pieces = read(bytes, 1 + bytes.len() % 13);
    assert_eq!(facts(&whole), facts(&pieces));
    assert_eq!(whole.inputs, pieces.inputs);
}

/// Everything that was read, with names and texts instead of their numbers, which depend on the order of reading.
fn facts(report: &Report) -> Vec<String> {
    let name = |id: Option<NameId>| id.map(|id| report.names.get(id).escape_ascii().to_string());
    let quote = |quote: Option<Quote>| quote.map(|quote| (quote.place, report.texts.get(quote.text)));
    let kernels = report.kernels.iter().map(|kernel| {
        let (frame, usage) = (quote(kernel.evidence.frame), quote(kernel.evidence.usage));
        let known = (kernel.kind, kernel.arch, kernel.ambiguous, kernel.unbounded_stack, kernel.records);
        format!("{:?} {known:?} {:?} {frame:?} {usage:?}", name(kernel.name), kernel.resources)
    });
    let messages = report.messages.iter().map(|message| {
        let text = report.said(message).escape_ascii().to_string();
        format!("{:?} {:?} {} {:?} {text}", message.kind, name(message.kernel), message.count, message.place)
    });
    kernels.chain(messages).collect()
}

/// Whatever a log holds is linted to the end, in every format; and JSON is JSON.
pub(crate) fn lint(bytes: &[u8]) {
    for format in ["human", "short", "json"] {
        let (mut stdin, mut stdout, mut stderr) = (bytes, Vec::new(), Vec::new());
        let mut streams = Streams {
            stdin: &mut stdin,
            stdin_is_terminal: false,
            stderr_is_terminal: false,
            stdout: &mut stdout,
            stderr: &mut stderr,
            terminal: None,
        };
        let args = ["warplint", "--isolated", "--passthrough", "none", "--verbose", "--format", format, "-"];
        run(args.map(OsString::from).to_vec(), &mut streams);
        assert!(!stdout.contains(&0x1b), "an escape sequence of the log reaches the terminal");
        if format == "json" && !stdout.is_empty() {
            serde_json::from_slice::<serde_json::Value>(&stdout).expect("a JSON report");
        }
    }
}

/// A baseline or a report is refused at a place that can be shown, or says the same when it is read back as it is written,
/// and nothing changed from it to itself.
pub(crate) fn baseline(bytes: &[u8]) {
    let written = |baseline: &Baseline| {
        let mut out = Vec::new();
        baseline::write(baseline, &mut out).expect("memory takes all");
        out
    };
    let told = Told { gpus: Vec::new(), block: None, dynamic_shared: None };
    let mut known = Occupancies::default();
    for read in [baseline::read(bytes), baseline::read_any(bytes).map(|(read, _)| read)] {
        match read {
            Ok(mut read) => {
                for (key, all) in &mut read.kernels {
                    let gpu = key.arch.and_then(Gpu::of);
                    all.iter_mut().for_each(|one| one.launch_again(key.arch, &told, gpu.as_ref(), &mut known));
                }
                let first = written(&read);
                let again = baseline::read(&first).expect("what is written is read");
                assert_eq!(String::from_utf8_lossy(&written(&again)), String::from_utf8_lossy(&first));
                assert!(baseline::compare(&read, &read, &[]).all.is_empty());
                let nothing = Baseline::default();
                assert_eq!(baseline::compare(&nothing, &read, &[]).all.len(), read.kernels.len());
            }
            Err(fault) => assert!(fault.text.get(fault.span).is_some() && !fault.text.contains('\u{1b}')),
        }
    }
}

/// A configuration is refused with an error that can be shown, or says the same when it is read back as it is shown.
pub(crate) fn config(bytes: &[u8]) {
    let style = Style { unicode: true, color: false, width: 80 };
    match config::read("warplint.toml", Path::new("fixtures"), bytes) {
        Ok(read) => {
            let shown = config::show(&read);
            let again = config::read("warplint.toml", Path::new("fixtures"), shown.as_bytes());
            let again = again.unwrap_or_else(|error| panic!("what is shown is refused: {error}\n{shown}"));
            assert_eq!(config::show(&again), shown);
        }
        Err(error) => {
            for part in error.parts() {
                assert!(!report::failure(part, style).contains('\u{1b}'));
            }
        }
    }
}

/// Names are shown on one line, and the short ones are short.
pub(crate) fn names(bytes: &[u8]) {
    for name in [bytes.to_vec(), [b"_Z", bytes].concat()] {
        let (short, full) = (symbol::short(&name), symbol::full(&name));
        // At most sixty characters, each perhaps as an escape.
        assert!(short.chars().count() <= 600, "{} bytes", short.len());
        assert!(!short.contains(char::is_control) && !full.contains(char::is_control));
        let _ = (warplint::model::base(&name), symbol::key(&name));
    }
}

/// A file of device figures is read or refused.
pub(crate) fn device(bytes: &[u8]) {
    let path = std::env::temp_dir().join(format!("warplint-fuzz-{}", std::process::id()));
    fs::write(&path, bytes).expect("the folder for temporary files can be written");
    let _ = Gpu::resolve(&path.to_string_lossy());
    let _ = fs::remove_file(&path);
    let _ = Gpu::resolve(&String::from_utf8_lossy(bytes));
}

/// Any patterns are a filter or refused, and a filter leaves a report whole.
pub(crate) fn filter(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (kernel, arch) = text.split_once('\n').unwrap_or((&text, "sm_80"));
    let log =
        "ptxas info    : Compiling entry function '_Z1kILi4EEvPf' for 'sm_80'\nptxas info    : Used 8 registers\n";
    for filter in [Filter::new(Some(kernel), None), Filter::new(None, Some(arch))].into_iter().flatten() {
        let mut report = read(log.as_bytes(), usize::MAX);
        if filter.apply(&mut report).is_ok() {
            assert_eq!(report.kernels.len(), 1);
        }
    }
}

fn read_module(bytes: &[u8]) -> (Report, Result<(), PtxFault>) {
    let mut report = Report::default();
    let result = read_ptx(bytes.to_vec(), "module.ptx", &mut report);
    (report, result)
}

/// PTX is read, as far as it goes: what is found lies within the text, and a fault where the reading ended. The operands
/// and lines of every function are read too.
pub(crate) fn ptx(bytes: &[u8]) {
    let (report, result) = read_module(bytes);
    let module = &report.modules[0];
    assert_eq!(report.inputs[0].records, module.functions.len() as u64);
    if let Err(fault) = result {
        assert_eq!(fault.functions, module.functions.len());
        assert!(fault.text.get(fault.span.clone()).is_some(), "{fault:?}");
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        assert!((1..=lines + 1).contains(&u64::from(fault.line)), "{fault:?}");
        assert!(!fault.text.contains(char::is_control) && !fault.message.contains('\u{1b}'), "{fault:?}");
    }
    let mut body = Body::default();
    let mut last = 0;
    for function in &module.functions {
        assert!(last <= function.head.0 && function.head.0 < function.body.start && function.body.end <= bytes.len());
        last = function.body.end;
        body.read_again(bytes, function.body.start);
        assert_eq!(body.end, function.body.end);
        assert_eq!(body.branches, function.branches);
        let seen: Vec<u32> = body.statements.iter().map(|one| one.start).collect();
        let code =
            Code::read(bytes, function.body.start, &bytes[function.parameters.clone()], &function.flow, &mut body);
        assert_eq!((body.end, body.branches), (function.body.end, function.branches));
        assert!(body.statements.iter().map(|one| one.start).eq(seen), "all readings find the same statements");
        assert_eq!(code.instructions.len(), function.instructions as usize);
        let wanted: Vec<u32> = code.instructions.iter().map(|one| one.statement).collect();
        assert_eq!(Locations::of(bytes, &body, &wanted, &|file| file % 2 == 1).len(), wanted.len());
    }
}

/// Every branch of any module is judged, and twice the same.
pub(crate) fn lanes(bytes: &[u8]) {
    // Real kernels have a block that something tells, or one of the shapes that are tried.
    let block = [None, BlockSize::new(48, 3, 1).ok(), BlockSize::new(256, 1, 1).ok()][bytes.len() % 3];
    assert_eq!(branches(bytes, block), branches(bytes, block));
}

fn branches(bytes: &[u8], block: Option<BlockSize>) -> Vec<u8> {
    let (mut report, _) = read_module(bytes);
    join(&mut report, &[]);
    warplint::join::attach(&mut report);
    let numbers =
        analyse(&report, &Assumptions { block, depth: Depth::Branches(Which::All), ..Assumptions::default() });
    let mut out = Vec::new();
    let context = Context::new(&report, &numbers);
    report::branches_json(&context, &mut out).expect("memory can be written to");
    report::branches_human(&context, Style::PLAIN, &mut out).expect("memory can be written to");
    out
}

/// A log and a source, a NUL between them, are joined whatever they say of each other: twice gives the same, and each number
/// that is told leads somewhere.
pub(crate) fn joined(bytes: &[u8]) {
    let at = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len() / 2);
    let (log, source) = (&bytes[..at], bytes.get(at + 1..).unwrap_or_default());
    let mut report = Report::default();
    let mut sink = io::sink();
    let mut echo = Echo::new(EchoMode::None, &mut sink);
    read_log(&mut Pieces(log, usize::MAX), "log", &mut report, &mut echo).expect("bytes in memory can be read");
    let input = u32::try_from(report.inputs.len()).expect("few inputs");
    report.inputs.push(InputFacts { name: "k.cu".to_owned(), is_source: true, ..InputFacts::default() });
    let file = Scanner::default().scan(source, &Aliases::default());
    gather(&[Gathered { name: "k.cu".to_owned(), input: Some(input), file }], &mut report);
    join(&mut report, &[]);
    let mut again = report.clone();
    warplint::join::rejoin(&mut again);
    attach(&mut report);
    assert_eq!(again.families, report.families);
    for (number, family) in (0..).zip(&report.families) {
        assert!(family.main(&report).is_some());
        assert!(family.launches.iter().all(|spot| report.launch(*spot).is_some()));
        assert!(family.kernels.iter().all(|at| report.kernels[*at as usize].family == Some(number)));
    }
    let remarks = suppress::of_units(&mut report, &[(0, suppress::keep(source))]);
    let assumptions = Assumptions { remarks, ..Assumptions::default() };
    let numbers = analyse(&report, &assumptions);
    let style = Style { unicode: false, color: false, width: 80 };
    let context = Context::new(&report, &numbers);
    report::kernels_human(&context, report::Sort::Input, style, &mut io::sink()).expect("a sink takes everything");
    report::kernels_json(&context, &mut io::sink()).expect("a sink takes everything");
}

/// A source is read to its end, whatever it holds: twice the same, whether the room is new or was used before; and all that
/// is told of it lies within its text.
pub(crate) fn cuda(bytes: &[u8]) {
    let mut found = Vec::new();
    tokens(bytes, 0, bytes.len(), &mut found);
    assert!(found.iter().all(|token| token.start < token.end && token.end as usize <= bytes.len()));
    assert!(found.windows(2).all(|pair| pair[0].end <= pair[1].start));
    let mut scanner = Scanner::default();
    let mut aliases = Aliases::default();
    let first = scanner.scan(bytes, &aliases);
    let devices: Vec<_> = scanner.devices().collect();
    for device in &devices {
        for range in [&device.name, &device.parameters, &device.body] {
            assert!(bytes.get(range.clone()).is_some(), "{device:?}");
        }
    }
    assert_eq!(scanner.scan(bytes, &aliases), first);
    assert_eq!(scanner.devices().collect::<Vec<_>>(), devices);
    aliases.add(first.aliases.clone());
    let file: File = scanner.scan(bytes, &aliases);
    let mut report = Report::default();
    let named = |name: &str, input| Gathered { name: name.to_owned(), input: Some(input), file: file.clone() };
    gather(&[named("a/source.cu", 0), named("b/source.cu", 1)], &mut report);
    for unit in &report.units {
        let within = |quote: Quote, span: (usize, usize)| {
            let line = report.texts.get(quote.text);
            let place = quote.place.offset as usize;
            assert_eq!(bytes.get(place..place + line.len()), Some(line));
            assert!(span.0 <= span.1 && line.get(span.0..span.1).is_some());
        };
        for one in &unit.declarations {
            within(one.quote, one.span);
            assert!(bytes.get(one.extent.clone()).is_some() && one.lines.0 <= one.lines.1);
        }
        for one in &unit.launches {
            within(one.quote, one.span);
            assert!(one.block_at.as_ref().is_none_or(|(range, _)| bytes.get(range.clone()).is_some()));
        }
    }
}

/// Device functions of any source become PTX that can be read, and their branches are judged.
pub(crate) fn lower(bytes: &[u8]) {
    let functions = lower::functions(bytes, &[]);
    let constants = |name: &[u8]| (name.len() == 1).then(|| i64::from(name[0]) - 64);
    let unit = lower::Unit { text: bytes, name: "k.cu", functions: &functions, constants: &constants };
    let Some(lowered) = lower::lower(&unit) else { return };
    if lowered.functions.is_empty() {
        assert!(lowered.text.is_empty() && !lowered.not_followed.is_empty());
        return;
    }
    let (read, result) = read_module(&lowered.text);
    assert!(result.is_ok(), "{result:?}");
    assert_eq!(read.modules[0].functions.len(), lowered.functions.len());
    let mut report = Report::default();
    let names = &mut report.names;
    let mut named = |at: usize| names.intern(&bytes[functions[at].name.clone()]);
    let mut module = lowered.into_module(0, &functions, &mut named, &|_| Bounds::default());
    for (one, same) in module.functions.iter().zip(&read.modules[0].functions) {
        assert_eq!((&one.body, &one.parameters, one.branches), (&same.body, &same.parameters, same.branches));
        assert_eq!((one.body_line, one.head), (same.body_line, same.head));
    }
    let positions = module.positions().expect("it was made from a source");
    assert!(positions.branches.is_sorted_by_key(|(at, _)| *at) && positions.barriers.is_sorted_by_key(|(at, _)| *at));
    assert!(positions.barriers.iter().all(|(_, byte)| (*byte as usize) < bytes.len()));
    module.functions.iter_mut().for_each(|one| one.kernel = Some(0));
    report.inputs.push(read.inputs[0].clone());
    report.kernels.push(Kernel::new(None, Kind::Entry, None));
    report.modules.push(module);
    let depth = Depth::Branches(Which::ByIndex);
    let numbers = analyse(&report, &Assumptions { depth, ..Assumptions::default() });
    for found in (0..numbers.branches.all.len()).filter_map(|at| numbers.branches.get(&report, at)) {
        let confidence = found.branch.judgement.map(|judgement| judgement.confidence);
        assert_ne!(confidence, Some(Confidence::High), "a source is never sure");
    }
}
