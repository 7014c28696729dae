//! `build-failed`: the compiler stopped. A pipe hides its status, so the log must tell.

use std::sync::LazyLock;

use hashbrown::{HashMap, HashSet};
use regex::bytes::Regex;
use serde::Deserialize;

use super::limits::counted;
use super::{Context, text};
use crate::finding::{Cause, Finding, Hit};
use crate::gpu::Target;
use crate::model::{Bytes, Kernel, Message, MessageKind, symbol};

/// The rule has no options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {}

/// Errors that only say that there was another.
const CONSEQUENCES: [&str; 15] = [
    "Ptx assembly aborted due to errors",
    "merge_elf failed",
    "linker command failed with exit code",
    "ld returned ",
    "subprocess-exited-with-error",
    "metadata-generation-failed",
    "failed with exit code",
    "failed with exit status",
    "exited with code",
    "Process completed with exit code",
    "did not complete successfully: exit code",
    "failed to solve",
    "build stopped: subcommand failed",
    "Failed building wheel",
    "Configuring incomplete",
];

/// What stands before the message of a compiler that reads source files: `a.cu(3): error`, `a.cu:3:7: fatal error`.
static FILE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"^(.+?)(?:\(\d+(?:,\d+)?\)|:\d+(?::\d+)?)\s?: *(?:fatal |catastrophic |internal (?:compiler )?)?error\b",
    )
    .expect("bug: the pattern is fixed")
});

/// How tools say that the system killed one of them (signal 9, which a shell tells as 137): `Killed`, `Error 137`,
/// `# --error 0x89 --`.
static KILLED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\bKilled\b|\b0x89\b|\b(?:[Ee]rror|status|code:?) 137\b|\bsignal:? 9\b")
        .expect("bug: the pattern is fixed")
});

/// The source file that an error is in, where the error is of a compiler that reads such files and says so.
fn file_of<'a>(context: &Context<'a>, message: &Message) -> Option<&'a [u8]> {
    if message.kind != MessageKind::BuildError {
        return None;
    }
    let before = FILE.captures(context.raw(message))?.get(1)?.as_bytes();
    // What a build tool puts before the path is no part of it.
    let start = memchr::memrchr2(b' ', b'\t', before).map_or(0, |blank| blank + 1);
    Some(&before[start..]).filter(|path| !path.is_empty())
}

pub(super) fn check(context: &Context<'_>, _: &Options, hits: &mut Vec<Hit>) {
    let failures = || context.messages_of(is_failure);
    let kernels = context.only_kernels(failures().filter_map(|(_, message)| message.kernel));
    let mut explained: HashSet<u32> = HashSet::new();
    // The first error of a source file brings most of the others about.
    let mut files: HashMap<&[u8], usize> = HashMap::new();
    for (at, message) in failures().filter(|(_, message)| !is_consequence(context, message)) {
        explained.insert(message.place.input);
        if let Some(file) = file_of(context, message) {
            let first = *files.entry(file).or_insert(hits.len());
            if let Some(hit) = hits.get_mut(first) {
                hit.more += 1;
                continue;
            }
        }
        let hit = Hit::message(at, 2);
        hits.push(match message.kernel {
            Some(name) => hit.for_reason(known(context.raw(message))).because_of_kernel(kernels.get(name)),
            None => hit.caused_by(Cause::Single),
        });
    }
    // One cause is one finding: what follows from it is told only where it is all that there is, and once.
    for (at, message) in failures().filter(|(_, message)| is_consequence(context, message)) {
        if explained.insert(message.place.input) {
            hits.push(Hit::message(at, 1).caused_by(Cause::Single));
        }
    }
}

fn is_failure(kind: MessageKind) -> bool {
    use MessageKind::{BuildError, BuildStopped, Error, SharedTooLarge};
    matches!(kind, Error | BuildError | BuildStopped | SharedTooLarge { .. })
}

fn is_consequence(context: &Context<'_>, message: &Message) -> bool {
    let said = || context.raw(message);
    message.kind == MessageKind::BuildStopped || CONSEQUENCES.iter().any(|sign| text::has(said(), sign))
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    let Some(message) = context.message_of(hit) else { return Finding::new("the build failed") };
    let finding = match message.kind {
        MessageKind::SharedTooLarge { needed, limit } => {
            shared(context, message, needed, limit, context.kernel_at(hit.because))
        }
        _ if is_consequence(context, message) => consequence(context, message),
        _ => match file_of(context, message) {
            Some(file) => first_of(context, message, file, hit.more),
            None => with_figures(context, message).unwrap_or_else(|| plain(context, message)),
        },
    };
    finding.label(Some(context.message_label(message, "")))
}

/// What only says that something failed, without why.
fn consequence(context: &Context<'_>, message: &Message) -> Finding {
    let said = context.said(message);
    let is_step = message.kind == MessageKind::BuildStopped;
    let finding = Finding::new(if is_step { format!("a step of the build failed: {said}") } else { said });
    if KILLED.is_match(context.raw(message)) {
        return finding.help(
            "the system killed it, which it does where memory runs out: build fewer files at once (`make -j`, MAX_JOBS, \
             `nvcc --threads`), or with more memory",
        );
    }
    finding.help(if is_step {
        "no error of a compiler is in the log: look at the lines before this one, or at the whole output of the build"
    } else {
        "this follows from something else that failed: look at the lines before it, or at the whole output of the build"
    })
}

/// The first error of a source file, with the number of those that come after it.
fn first_of(context: &Context<'_>, message: &Message, file: &[u8], more: u32) -> Finding {
    let mut finding = plain(context, message);
    if more > 0 {
        let name = memchr::memrchr2(b'/', b'\\', file).map_or(file, |slash| &file[slash + 1..]);
        let errors = counted(more, "error");
        let errors = errors.replacen(" error", " more error", 1);
        finding.message += &format!(" ({errors} in {})", symbol::printable(&String::from_utf8_lossy(name)));
    }
    finding.fact("more_errors", u64::from(more))
}

/// An error that has a figure to explain.
fn with_figures(context: &Context<'_>, message: &Message) -> Option<Finding> {
    let said = context.raw(message);
    too_few_registers(context, message, said)
        .or_else(|| register_cap(context, message, said))
        .or_else(|| setmaxnreg(said))
        .or_else(|| too_much(context, message, said))
}

fn shared(context: &Context<'_>, message: &Message, needed: Bytes, limit: Bytes, kernel: Option<&Kernel>) -> Finding {
    let over = Bytes(needed.get().saturating_sub(limit.get()));
    let arch = kernel.and_then(|kernel| kernel.arch);
    let most = arch.and_then(Target::of).map(|target| Bytes(target.shared_per_block_optin));
    let on = kernel.map_or_else(String::new, |kernel| context.on(kernel));
    const DYNAMIC: &str = "make it dynamic: `extern __shared__`, the size as third argument of the launch, and before it \
                           cudaFuncSetAttribute with cudaFuncAttributeMaxDynamicSharedMemorySize";
    let help = match most {
        Some(most) if most <= limit => format!("a block cannot have more{on}: use a smaller tile"),
        Some(most) if most < needed => {
            format!(
                "{DYNAMIC}; a block may then have {most}{on}, which is still too little: use a smaller tile as well"
            )
        }
        Some(most) => format!("{DYNAMIC}; a block may then have up to {most}{on}"),
        None => {
            format!("{DYNAMIC}; that takes more on compute capability 7.0 and later, up to 64 KiB to 227 KiB by target")
        }
    };
    let called = context.called(message.kernel);
    let mut finding = Finding::new(format!(
        "{called} declares {needed} of static shared memory, {over} more than the {limit} that a block may declare{on}"
    ))
    .help(help)
    .fact("shared_bytes", needed)
    .fact("limit_bytes", limit)
    .fact("over_bytes", over);
    finding.arch = arch;
    finding
}

fn too_few_registers(context: &Context<'_>, message: &Message, said: &[u8]) -> Option<Finding> {
    const ALLOW: &str = "raise or drop -maxrregcount, or allow fewer threads or a smaller minimum of blocks in \
                         __launch_bounds__";
    if let Some(registers) = text::number_after(said, "Insufficient registers (") {
        let needed = text::number_after(said, "register target of")?;
        let called = context.called(message.kernel);
        let words = format!("{called} may use {registers} registers and has an instruction that needs {needed}");
        let help =
            format!("let a thread have {needed} registers or more: {ALLOW}; or use an instruction of a smaller shape");
        return Some(Finding::new(words).help(help).fact("registers", registers).fact("needed", needed));
    }
    let registers = text::number_after(said, "Register allocation failed with register count of '")?;
    let words = format!("no allocation fits into the {registers} registers that a thread may use");
    Some(Finding::new(words).help(format!("let a thread have more registers: {ALLOW}")).fact("registers", registers))
}

/// nvlink: a kernel may have fewer registers than a function that it calls.
fn register_cap(context: &Context<'_>, message: &Message, said: &[u8]) -> Option<Finding> {
    let cap = text::number_after(said, "with max regcount of")?;
    let needed = text::number_after(said, "with regcount of")?;
    let callee = text::worded(text::between(said, "calls function ", " with regcount of")?);
    let callee = callee.trim_matches(|quote| quote == '\'' || quote == '`');
    let called = context.called(message.kernel);
    Some(
        Finding::new(format!("{called} may use {cap} registers and calls `{callee}`, which uses {needed}"))
            .help(format!(
                "compile the file of `{callee}` with the same limit (-maxrregcount={cap} for every file), raise the kernel's \
                 limit to {needed}, or define both in one translation unit"
            ))
            .fact("max_registers", cap)
            .fact("callee_registers", needed),
    )
}

fn setmaxnreg(said: &[u8]) -> Option<Finding> {
    let asked = text::number_after(said, "setmaxnreg.dec has register count (")?;
    let has = text::number_after(said, "register count in the program (")?;
    Some(
        Finding::new(format!("setmaxnreg.dec asks for {asked} registers, and a thread has {has} at most"))
            .help(format!(
                "setmaxnreg.dec gives registers back: ask for fewer than {has}, or let the kernel start with more (fewer \
                 threads or a smaller minimum of blocks in __launch_bounds__)"
            ))
            .fact("asked", asked)
            .fact("registers", has),
    )
}

/// `… uses too much <what> (0x… bytes, 0x… max)`
fn too_much(context: &Context<'_>, message: &Message, said: &[u8]) -> Option<Finding> {
    let what = text::between(said, "uses too much ", " (")?;
    let needed = Bytes(text::number_after(said, &format!("{} (", std::str::from_utf8(what).ok()?))?);
    let limit = Bytes(text::number_after(said, " bytes,")?);
    let over = Bytes(needed.get().saturating_sub(limit.get()));
    let subject = message.kernel.map_or_else(|| "a file".to_owned(), |_| context.called(message.kernel));
    let help = match what {
        b"global constant data" => {
            "__constant__ data of one module ends at 64 KiB: move tables into `const __device__` arrays, which are cached too, \
             or into kernel parameters"
        }
        b"parameter space" => {
            "pass a pointer to the data, or a __constant__ copy of it; 32764 B of parameters are allowed on compute capability \
             7.0 and later from CUDA 12.1 (PTX 8.1) on"
        }
        _ => "make the data smaller, or move it to global memory",
    };
    let what = text::worded(what);
    Some(
        Finding::new(format!("{subject} uses {needed} of {what}, {over} more than the {limit} allowed"))
            .help(help)
            .fact("bytes", needed)
            .fact("limit_bytes", limit)
            .fact("over_bytes", over),
    )
}

/// Errors for which there is something to say, each by words of its text.
const HELPS: [(&str, &str); 17] = [
    ("Insufficient registers (", ""),
    ("uses too much ", ""),
    ("with max regcount of", ""),
    (
        "is not defined for option 'gpu-name'",
        "this toolkit does not know the architecture: `nvcc --list-gpu-arch` names those that it does; newer GPUs need a newer \
         toolkit, and support of old ones ends",
    ),
    (
        "Unsupported gpu architecture",
        "this toolkit does not know the architecture: `nvcc --list-gpu-arch` names those that it does; newer GPUs need a newer \
         toolkit, and support of old ones ends",
    ),
    (
        "Unsupported .version",
        "the PTX is newer than this ptxas: use the ptxas of the toolkit that made it, or have the generator write the older \
         version; at run time, install a newer driver",
    ),
    (
        "SM version specified by .target is higher",
        "ptxas is told no architecture, or a lower one than the .target of the PTX: pass -arch with that target or a later one",
    ),
    (
        "cannot be compiled to future architecture",
        "code for an `a` target runs on that architecture only: add a -gencode for each such GPU, and one without `a` for all \
         others",
    ),
    (
        "different SM-family architecture",
        "code for an `f` target runs on its family only: add a -gencode for each family, and one without `f` for all others",
    ),
    (
        "not supported on .target",
        "guard the code by the architecture (`__CUDA_ARCH__`, or `__CUDA_ARCH_FEAT_SM90_ALL` for `a` targets), or drop the \
         -gencode of targets that lack the instruction",
    ),
    ("requires PTX ISA .version", "raise the .version at the head of the PTX, and use a toolkit that knows it"),
    (
        "Unresolved extern function",
        "the function is defined in another file: compile with -rdc=true (CMake: CUDA_SEPARABLE_COMPILATION ON) and link the \
         device code, or define it in this file",
    ),
    (
        "Undefined reference to",
        "no object of the device link defines it: add the object or library that does, compiled with -rdc=true; a name that is \
         `extern \"C\"` on one side only does not match either",
    ),
    (
        "Multiple definition of",
        "two objects of the device link define it: make it static or inline, or keep one definition",
    ),
    ("disable-optimizer-constants", "the compiler's own constants take the room: pass the option that the line names"),
    (
        "Internal compiler error",
        "the compiler itself failed: try another release or a lower optimization level for this file, and report it to NVIDIA \
         with the files that `nvcc --keep` leaves",
    ),
    (
        "to local memory in function",
        "-Werror makes an error of a warning: fix what it says, or leave the level to warplint",
    ),
];

/// Which of [`HELPS`] a text is about; their number where it is about none.
fn known(said: &[u8]) -> usize {
    HELPS.iter().position(|(sign, _)| text::has(said, sign)).unwrap_or(HELPS.len())
}

fn plain(context: &Context<'_>, message: &Message) -> Finding {
    let help = HELPS.get(known(context.raw(message))).map_or("", |(_, help)| *help);
    let help = if help.is_empty() {
        "fix this and build again: kernels that were not compiled have no figures here"
    } else {
        help
    };
    Finding::new(context.said(message)).help(help)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{helps, lint, told};

    const RULE: &str = "build-failed";

    fn one(log: &str) -> String {
        let told = told(RULE, log);
        assert_eq!(told.len(), 1, "{told:?}");
        told[0].clone()
    }

    #[test]
    fn shared_memory_over_the_limit_says_by_how_much() {
        let log = "[ 27%] Building CUDA object ggml/src/CMakeFiles/ggml.dir/pool2d.cu.o\nptxas error   : Entry function '_Z9attnTileAILi128ELi32ELb1EEvPKc' uses too much shared data (0xc200 bytes, 0xc000 max)\nmake[3]: *** [ggml/src/build.make:314: fattn-tile.cu.o] Error 255\n";
        assert_eq!(
            lint(log, &[]),
            [
                "error[build-failed] `attnTileA<128, 32, true>` declares 49664 B of static shared memory, 512 B more than the 48 KiB that a block may declare"
            ]
        );
        assert!(helps(RULE, log)[0].contains("cudaFuncAttributeMaxDynamicSharedMemorySize"));
    }

    #[test]
    fn the_target_tells_what_dynamic_shared_memory_may_take() {
        let log = |arch: &str| {
            format!(
                "ptxas error   : Entry function '_Z7too_bigPf' uses too much shared data (0xc400 bytes, 0xc000 max)\nptxas info    : Compiling entry function '_Z7too_bigPf' for '{arch}'\nptxas info    : Function properties for _Z7too_bigPf\n    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\nptxas info    : Used 10 registers, used 1 barriers, 50176 bytes smem\n"
            )
        };
        assert_eq!(
            one(&log("sm_90")),
            "error: `too_big` declares 49 KiB of static shared memory, 1024 B more than the 48 KiB that a block may declare on sm_90"
        );
        assert!(helps(RULE, &log("sm_90"))[0].ends_with("a block may then have up to 227 KiB on sm_90"));
        assert_eq!(helps(RULE, &log("sm_60")), ["a block cannot have more on sm_60: use a smaller tile"]);
    }

    #[test]
    fn what_follows_from_an_error_is_not_told_again() {
        let log = "ptxas unresolved.ptx, line 4; error   : Call to 'undefd_fn' requires call prototype\nptxas unresolved.ptx, line 4; error   : Unknown symbol 'undefd_fn'\nptxas fatal   : Ptx assembly aborted due to errors\nmake: *** [Makefile:3: x.o] Error 255\n";
        assert_eq!(
            told(RULE, log),
            ["error: Call to 'undefd_fn' requires call prototype", "error: Unknown symbol 'undefd_fn'"]
        );
        assert_eq!(
            told(RULE, "make[1]: *** [Makefile:3: x.o] Error 255\nmake: *** [Makefile:9: all] Error 2\n"),
            ["error: a step of the build failed: make[1]: *** [Makefile:3: x.o] Error 255"]
        );
        assert_eq!(
            one("ptxas fatal   : Ptx assembly aborted due to errors\n"),
            "error: Ptx assembly aborted due to errors"
        );
    }

    #[test]
    fn the_errors_of_a_source_file_are_one_finding_with_a_count() {
        let log = "\
src/a/mha.cu(204): error: identifier \"q\" is undefined
src/a/mha.cu(210): error: expected a \";\"
[ 12%] src/a/mha.cu(300): error: expected an expression
src/b/cuda_common.h:13:10: fatal error: nvtx3/nvToolsExt.h: No such file or directory
src/b/mha.cu(1): error #20: identifier \"q\" is undefined
src/b/mha.cu(2,7): error: identifier \"r\" is undefined
";
        assert_eq!(
            told(RULE, log),
            [
                "error: src/a/mha.cu(204): error: identifier \"q\" is undefined (2 more errors in mha.cu)",
                "error: src/b/cuda_common.h:13:10: fatal error: nvtx3/nvToolsExt.h: No such file or directory",
                "error: src/b/mha.cu(1): error #20: identifier \"q\" is undefined (1 more error in mha.cu)",
            ]
        );
    }

    #[test]
    fn what_build_tools_say_of_an_error_is_told_only_without_one() {
        for line in [
            "C:\\BuildCustomizations\\CUDA 12.4.targets(799,9): error MSB3721: The command \"nvcc.exe -c a.cu\" exited with code 255.",
            "##[error]Process completed with exit code 2.",
            "  error: subprocess-exited-with-error",
            "ptxas fatal   : Ptx assembly aborted due to errors",
        ] {
            let log = format!("x.cu(1): error: identifier \"q\" is undefined\n{line}\n");
            assert_eq!(told(RULE, &log), ["error: x.cu(1): error: identifier \"q\" is undefined"], "{line}");
        }
    }

    #[test]
    fn a_linkers_register_limit_has_its_own_words() {
        let log = "\
nvlink error   : entry function '_Z5k_limPfi' with max regcount of 32 calls function '_Z6ext_fnfi' with regcount of 46
nvlink error   : entry function '__omptgt__0_aa01_804_' with max regcount of 24 calls function '__rt_for_static_init' with regcount of 38
";
        assert_eq!(
            told(RULE, log),
            [
                "error: `k_lim` may use 32 registers and calls `ext_fn`, which uses 46",
                "error: `__omptgt__0_aa01_804_` may use 24 registers and calls `__rt_for_static_init`, which uses 38",
            ]
        );
    }

    #[test]
    fn too_few_registers_say_how_many_are_needed() {
        let log = "ptxas fatal   : (C7602) Insufficient registers (64) to compile instruction at line 267 in function k_starved. Try to compile with register target of 154 or higher.\n";
        assert_eq!(one(log), "error: `k_starved` may use 64 registers and has an instruction that needs 154");
        assert!(helps(RULE, log)[0].starts_with("let a thread have 154 registers or more"));
        let old = "ptxas fatal   : (C7600) Register allocation failed with register count of '64'. Compile the program with a higher register target\n";
        assert_eq!(one(old), "error: no allocation fits into the 64 registers that a thread may use");
        let dec = "ptxas application ptx input, line 8; fatal   : (C7406) setmaxnreg.dec has register count (232) which is larger than the largest temporal register count in the program (168)\n";
        assert_eq!(one(dec), "error: setmaxnreg.dec asks for 232 registers, and a thread has 168 at most");
    }

    #[test]
    fn other_memories_that_overflow_say_by_how_much() {
        assert_eq!(
            one("ptxas error   : File uses too much global constant data (0x10004 bytes, 0x10000 max)\n"),
            "error: a file uses 65540 B of global constant data, 4 B more than the 64 KiB allowed"
        );
        assert_eq!(
            one(
                "ptxas bigparam.ptx, line 5; error   : Entry function 'k_param' uses too much parameter space (0x1388 bytes, 0x1100 max).\n"
            ),
            "error: `k_param` uses 5000 B of parameter space, 648 B more than the 4352 B allowed"
        );
    }

    #[test]
    fn errors_of_every_tool_are_told_in_their_words_with_fitting_advice() {
        for (line, words, advice) in [
            (
                "ptxas fatal   : Value 'sm_999' is not defined for option 'gpu-name'",
                "Value 'sm_999' is not defined for option 'gpu-name'",
                "--list-gpu-arch",
            ),
            (
                "nvcc fatal   : Unsupported gpu architecture 'compute_50'",
                "Unsupported gpu architecture 'compute_50'",
                "--list-gpu-arch",
            ),
            (
                "ptxas bad_version.ptx, line 1; fatal   : Unsupported .version 99.9; current version is '9.5'",
                "Unsupported .version 99.9; current version is '9.5'",
                "newer driver",
            ),
            (
                "ptxas fatal   : Program with .target 'sm_90a' cannot be compiled to future architecture",
                "Program with .target 'sm_90a' cannot be compiled to future architecture",
                "-gencode",
            ),
            (
                "ptxas fatal   : Unresolved extern function '_Z6ext_fnfi'",
                "Unresolved extern function `ext_fn`",
                "-rdc=true",
            ),
            (
                "nvlink error   : Multiple definition of 'k_b' in 'rb2.o', first defined in 'rb.o'",
                "Multiple definition of 'k_b' in 'rb2.o', first defined in 'rb.o'",
                "inline",
            ),
            (
                "x.cu(1): error: identifier \"q\" is undefined",
                "x.cu(1): error: identifier \"q\" is undefined",
                "build again",
            ),
            (
                "ptxas error   : Registers are spilled to local memory in function 'k', 8 bytes spill stores, 16 bytes spill loads",
                "Registers are spilled to local memory in function 'k', 8 bytes spill stores, 16 bytes spill loads",
                "-Werror",
            ),
        ] {
            assert_eq!(one(&format!("{line}\n")), format!("error: {words}"));
            assert!(helps(RULE, line)[0].contains(advice), "{line}");
        }
    }

    #[test]
    fn what_the_system_killed_wants_memory() {
        for line in [
            "Killed",
            "make[2]: *** [CMakeFiles/a.dir/build.make:76: a.o] Error 137",
            "make: *** [Makefile:4: a.o] Killed",
            "# --error 0x89 --",
            "ERROR: process \"/bin/sh -c make\" did not complete successfully: exit code: 137",
            "CalledProcessError: Command '['ptxas']' returned non-zero exit status 137.",
        ] {
            assert!(helps(RULE, line)[0].contains("MAX_JOBS"), "{line}");
        }
        for line in
            ["make: *** [Makefile:4: a.o] Error 2", "# --error 0xff --", "make: *** [Makefile:137: a.o] Error 1"]
        {
            assert!(!helps(RULE, line)[0].contains("MAX_JOBS"), "{line}");
        }
    }

    #[test]
    fn equal_errors_are_counted_and_a_warning_is_none() {
        assert_eq!(
            one(&"ptxas fatal   : Unresolved extern function 'f'\n".repeat(2)),
            "error: Unresolved extern function 'f' (2 times)"
        );
        assert!(told(RULE, "nvcc warning : incompatible redefinition for option 'maxrregcount', the last value of this option was used\n").is_empty());
    }
}
