//! What warplint costs beside `rg -c 'ptxas info'` on the same log, and how much memory it takes: `cargo bench --bench
//! ratios`, where ripgrep is installed. The speed of machines differs, and one's own from minute to minute; the ratio of two
//! programs that take turns differs little.
//!
//! `cargo bench --bench ratios -- --rounds 15 --huge` takes 15 turns, and a log of 10 GB as well.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const NOISY: &str = include_str!("../fixtures/perf/ptxas_noisy_300k.log");
const LONG_NAMES: &str = include_str!("../fixtures/perf/ptxas_long_500k.log");

/// How this program measures one command: it runs itself, so that the usage of its children is that of the command.
const MEASURE: &str = "--measure";
/// The program that does nothing.
const NOTHING: &str = "--nothing";

type Failure = Box<dyn std::error::Error>;

/// What a command took.
#[derive(Clone, Copy)]
struct Cost {
    /// User and system time, in microseconds.
    cpu_us: i64,
    /// Largest resident set of any of its processes, in KiB.
    peak_kib: i64,
}

/// One row of the table.
struct Row {
    name: &'static str,
    /// What the ratio is taken to.
    yardstick: String,
    ours: String,
}

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [NOTHING] => Ok(()),
        [MEASURE, command] => measure(command),
        options => table(options),
    }
}

/// Only Unix tells what a child took.
#[cfg(not(unix))]
fn measure(_: &str) -> Result<(), Failure> {
    Err("this machine does not tell what a program took".into())
}

/// Runs `command` and prints what it took.
#[cfg(unix)]
fn measure(command: &str) -> Result<(), Failure> {
    use nix::sys::resource::{UsageWho, getrusage};
    // To a file, as programs write more to one than to nowhere; and a search that may write nothing stops early.
    let out = File::create(folder()?.join("out"))?;
    let status = Command::new("sh").args(["-c", command]).stdout(out).stderr(Stdio::null()).status()?;
    if matches!(status.code(), Some(126 | 127)) {
        return Err(format!("`{command}` did not start").into());
    }
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let micros = |time: nix::sys::time::TimeVal| time.tv_sec() * 1_000_000 + time.tv_usec();
    say(&format!("{} {}\n", micros(usage.user_time()) + micros(usage.system_time()), usage.max_rss()))?;
    Ok(())
}

fn cost_of(command: &str) -> Result<Cost, Failure> {
    let output = Command::new(std::env::current_exe()?).args([MEASURE, command]).output()?;
    let text = String::from_utf8(output.stdout)?;
    let mut numbers = text.split_whitespace().map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(cpu), Some(peak)) => Ok(Cost { cpu_us: cpu?, peak_kib: peak? }),
        _ => Err(format!("`{command}` was not measured").into()),
    }
}

fn table(options: &[&str]) -> Result<(), Failure> {
    let after = |name: &str| options.iter().position(|option| *option == name).and_then(|at| options.get(at + 1));
    if let Err(error) = Command::new("rg").arg("--version").output() {
        say(&format!("nothing is compared: ripgrep is the yardstick, and does not start ({error})\n"))?;
        return Ok(());
    }
    let rounds: usize = after("--rounds").map_or(Ok(9), |count| count.parse())?;
    let huge = options.contains(&"--huge");
    let rows = rows(&folder()?, huge)?;
    say("| log | yardstick, cpu ms | warplint, cpu ms | ratio | peak MiB |\n|---|---|---|---|---|\n")?;
    for row in rows {
        let mut pairs = Vec::new();
        for _ in 0..rounds {
            pairs.push((cost_of(&row.yardstick)?, cost_of(&row.ours)?));
        }
        let median = |value: &dyn Fn(&(Cost, Cost)) -> f64| {
            let mut values: Vec<f64> = pairs.iter().map(value).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        let ms = |cost: Cost| cost.cpu_us as f64 / 1000.0;
        say(&format!(
            "| {} | {:.1} | {:.1} | {:.2} | {:.1} |\n",
            row.name,
            median(&|(yardstick, _)| ms(*yardstick)),
            median(&|(_, ours)| ms(*ours)),
            median(&|(yardstick, ours)| ms(*ours) / ms(*yardstick).max(0.1)),
            median(&|(_, ours)| ours.peak_kib as f64 / 1024.0),
        ))?;
    }
    Ok(())
}

fn rows(folder: &Path, huge: bool) -> Result<Vec<Row>, Failure> {
    const MB: usize = 1_000_000;
    let noisy = log(folder, "noisy.log", NOISY, 100 * MB)?;
    let long = log(folder, "long.log", LONG_NAMES, 100 * MB)?;
    let one_line = folder.join("one-line.log");
    fs::write(&one_line, vec![b'x'; 100 * MB])?;
    let tiny = folder.join("tiny.log");
    fs::write(&tiny, "ptxas info    : 0 bytes gmem\n")?;
    let warplint = concat!("'", env!("CARGO_BIN_EXE_warplint"), "' --isolated --passthrough none");
    let nothing = format!("'{}' {NOTHING}", std::env::current_exe()?.display());
    let quoted = |path: &Path| format!("'{}'", path.display());
    let file = |name, path: &Path| Row {
        name,
        yardstick: format!("rg -c 'ptxas info' {}", quoted(path)),
        ours: format!("{warplint} {}", quoted(path)),
    };
    let piped = |name, path: &Path, times: usize| {
        let cat = format!("cat {}", vec![quoted(path); times].join(" "));
        Row { name, yardstick: format!("{cat} | rg -c 'ptxas info'"), ours: format!("{cat} | {warplint} -") }
    };
    let mut rows = vec![
        file("noisy, 100 MB", &noisy),
        piped("noisy, 100 MB, piped", &noisy, 1),
        file("long names, 100 MB", &long),
        piped("long names, 100 MB, piped", &long, 1),
        file("one line of 100 MB", &one_line),
        piped("long names, 1 GB, piped", &long, 10),
    ];
    if huge {
        rows.push(piped("long names, 10 GB, piped", &long, 100));
    }
    rows.push(Row {
        name: "a clean line, beside a program that does nothing",
        yardstick: nothing,
        ours: format!("{warplint} {}", quoted(&tiny)),
    });
    Ok(rows)
}

/// A log of about `bytes` bytes, made of `part`; each time with other names of kernels in its messages, as in a build.
fn log(folder: &Path, name: &str, part: &str, bytes: usize) -> io::Result<PathBuf> {
    let path = folder.join(name);
    let mut out = BufWriter::new(File::create(&path)?);
    let mut written = 0;
    for time in 0.. {
        let part = part.replace("entry kernel_", &format!("entry kernel_{time}_"));
        out.write_all(part.as_bytes())?;
        written += part.len();
        if written >= bytes {
            break;
        }
    }
    out.flush()?;
    Ok(path)
}

fn folder() -> io::Result<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ratios");
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

fn say(text: &str) -> io::Result<()> {
    io::stdout().write_all(text.as_bytes())
}
