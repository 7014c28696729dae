//! What other lines of a build tell: that CUDA is compiled at all, and that another tool failed. Here, where text is
//! irregular, regular expressions serve; only lines that look like an error, and logs without a kernel, get here.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::bytes::{Regex, RegexBuilder};

use super::scan;
use crate::model::{InputFacts, Toolkit};

/// A pattern on bytes: the class of all digits or blanks of the world is large, and no compiler prints them.
fn pattern(text: &str) -> Regex {
    RegexBuilder::new(text).unicode(false).build().expect("bug: the pattern is fixed")
}

/// The first severity of a line, with what it may be coupled with: `x.cu(1): error: …`, `a.cpp:3:7: fatal error: …`,
/// `a.cpp(3): error C2065: …`, `x.cu(1): catastrophic error: …`, `error: linker command failed`. The word stands at the
/// start of its message: `max abs error: 1e-7` of a test run is none. A warning may quote the word `error`, and two colons
/// are a C++ or Rust name's: `candle_core::error::Error`.
static SEVERITY: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?:^|[):\]Z])[\s*|#]*(?:(warning|remark|note)(?:\s?#?[A-Z]{0,4}\d+(?:-D)?)?\s?:(?:[^:]|$)|(?:fatal |catastrophic |[Cc]ommand-line |internal (?:compiler )?)?error(?:\s?#?[A-Z]{0,4}\d+(?:-D)?)?:( +\S.*|[^\s:].*))",
    )
});

/// MSBuild writes a blank before the colon, and before that a place or the name of a tool: `x.cu(1): error : …`,
/// `nvcc.exe : fatal error : …`. `relative error : 3` of a test run has neither.
static SPACED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?:\)\s?|\S ):\s*(?:fatal |catastrophic |internal )?error(?: #?[A-Z]{0,4}\d+(?:-D)?)? : *(\S.*)")
});

/// A measured error of a program, which no compiler prints: `error: 1e-7`.
static FIGURE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^[-+<~]?(?:\d*\.?\d+(?:[eE][-+]?\d+)?|nan|inf)(?:[\s%,;)]|$)"));

/// What cargo puts before each line of a build script's compiler.
static CARGO: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\s*warning: [\w-]+@[\w.+-]+: "));

/// What build systems say of a step that failed: make, ninja, MSBuild, pip, PyTorch's extension builder, BuildKit, bazel.
/// Then Python and Triton, cargo's build scripts, and nvcc itself, of a tool that they ran.
static STOPPED: LazyLock<Regex> = LazyLock::new(|| {
    let steps = r#"\*\*\* \[.*\] (?:Error \d+|Killed|Terminated|Aborted|Segmentation fault|Bus error|Illegal instruction)(?: \(core dumped\))?$|ninja: build stopped: |(?:^|[\]>Z] ?)FAILED: \S|error MSB3721: |Error\tMSB3721\t|ERROR: Failed building wheel|error: subprocess-exited-with-error|RuntimeError: Error compiling objects|ERROR: process ".*" did not complete|ERROR: .* failed:? \(Exit \d+\)"#;
    let tools = r"CalledProcessError: Command .* returned non-zero exit status \d|\b(?:nvcc|ptxas|nvlink|fatbinary)(?:\.exe)?`? (?:failed with error code|exited with code|exited with non-zero error code) \d|\bnvcc error while executing |^\s*# --error 0x[0-9a-f]+ --";
    pattern(&[steps, tools].join("|"))
});

/// CMake's errors have their text on the lines that follow.
static CMAKE: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?:^|[\s\]>|])CMake Error(?:: \S| (?:at|in) \S.*:$)"));

/// What has no colon of its own: how many errors a front end saw, and what a shell says of a process that a signal ended or
/// that it did not find.
static WORDS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?x)(?:^|\s)(?:\d+\ warnings?\ and\ )?[1-9]\d*\ (?:catastrophic\ |internal\ )?errors?(?:\ and\ \d+\ warnings?)?
            \ (?:detected\ in\ the\ compilation\ of|generated)\b
        |^(?:\S+:\ line\ \d+:\ +\d+\ )?(?:Killed|Segmentation\ fault|Bus\ error|Aborted|Illegal\ instruction)
            (?:\ +\(core\ dumped\))?(?:$|\ \ |\ +\S*nvcc)
        |(?:^|[\s/])(?:nvcc|ptxas|nvlink|cuobjdump|cmake|make|ninja):\ (?:command\ not\ found|not\ found|No\ such\ file\ or\ directory)$",
    )
});

/// nvcc's command line, its input, or the progress line of a build system that compiles CUDA.
static CUDA: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"(?:^|[\s/\\"])nvcc(?:[\s"]|\.exe)|\.cu(?:[\s"'):]|\.o|$)|CUDA object|CUDA source file|--cuda-gpu-arch|-x cuda"#,
    )
});

/// `-G` as a word of its own: `cmake -G Ninja` is another program's.
static DEBUG: LazyLock<Regex> = LazyLock::new(|| pattern(r"\bnvcc\b.*\s(?:-G|--device-debug)(?:\s|$)"));

/// What nvcc hands on to the tools of the host, with what it hands on.
static HOST: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"[\s"']--?(?:Xcompiler|compiler-options|Xlinker|linker-options|Xarchive|archive-options)(?:=|\s+)(?:\\?"[^"]*"|'[^']*'|\S+)"#,
    )
});

/// The options that leave the device link to a later command.
static SEPARATE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"\bnvcc\b.*\s(?:--?rdc[= ]true|--relocatable-device-code[= ]true|-dc|--device-c)(?:\s|$)")
});

/// Commands that are looked at in a log; those of a build are much alike.
pub(super) const MAX_COMMANDS: usize = 16;

/// An error line of another tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// A compiler or linker says why.
    Error,
    /// A build tool says that a step failed.
    Stopped,
}

/// Whether `line` says that another tool failed.
pub(crate) fn failure(line: &[u8]) -> Option<Failure> {
    let line = line.trim_ascii_end();
    if STOPPED.is_match(line) || WORDS.is_match(line) {
        return Some(Failure::Stopped);
    }
    let line = &line[CARGO.find(line).map_or(0, |lead| lead.end())..];
    (is_error(line) || CMAKE.is_match(line)).then_some(Failure::Error)
}

/// Whether the first severity of `line` is an error.
fn is_error(line: &[u8]) -> bool {
    let Some(first) = SEVERITY.captures(line) else { return is_spaced_error(line) };
    let said = first.get(2).map_or(&b""[..], |said| said.as_bytes().trim_ascii_start());
    first.get(1).is_none() && !FIGURE.is_match(said)
}

fn is_spaced_error(line: &[u8]) -> bool {
    let said = SPACED.captures(line).and_then(|error| error.get(1));
    said.is_some_and(|said| !FIGURE.is_match(said.as_bytes()))
}

/// What a line must hold to be of [`WORDS`]: most logs have no such line, and need not wait for the pattern to be built.
const SIGNS: [&[u8]; 8] = [
    b" error",
    b"Killed",
    b"Segmentation fault",
    b"Bus error",
    b"Aborted",
    b"Illegal instruction",
    b"not found",
    b"No such file",
];

/// Whether a line without an error's colon says that another tool failed.
pub(crate) fn failure_in_words(line: &[u8]) -> Option<Failure> {
    let signed = SIGNS.iter().any(|sign| memchr::memmem::find(line, sign).is_some());
    (signed && WORDS.is_match(line.trim_ascii_end())).then_some(Failure::Stopped)
}

/// Whether `text` shows that CUDA code is compiled.
pub(crate) fn compiles_cuda(text: &[u8]) -> bool {
    // What it takes at least: most texts need not wait for the pattern to be built.
    let may = [&b"nvcc"[..], b".cu", b"CUDA", b"cuda"].iter().any(|sign| memchr::memmem::find(text, sign).is_some());
    may && CUDA.is_match(text)
}

/// What stands before the release: in what `nvcc --version` prints and in PTX, and in what CMake says of the compiler.
const RELEASES: [&[u8]; 2] = [b"Cuda compilation tools, release ", b"CUDA compiler identification is NVIDIA "];

/// What `nvcc -v` echoes first of what it defines for the host compiler.
const DEFINED: &[u8] = b"-D__CUDACC_VER_MAJOR__=";

/// The toolkit that `text` says compiles it: the first that is named whole, so that it does not matter in which pieces a log
/// is read.
pub(crate) fn toolkit(text: &[u8]) -> Option<Toolkit> {
    let first = |lead: &[u8], read: fn(&[u8]) -> Option<Toolkit>| {
        memchr::memmem::find_iter(text, lead).find_map(|at| Some((at, read(&text[at + lead.len()..])?)))
    };
    let released = RELEASES.iter().filter_map(|lead| first(lead, Toolkit::at_start));
    released.chain(first(DEFINED, defined)).min_by_key(|(at, _)| *at).map(|(_, toolkit)| toolkit)
}

/// The toolkit of `13 -D__CUDACC_VER_MINOR__=5`: the definitions are echoed in this order.
fn defined(major: &[u8]) -> Option<Toolkit> {
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let minor = major[digits(major)..].strip_prefix(b" -D__CUDACC_VER_MINOR__=")?;
    Toolkit::at_start(&[&major[..digits(major)], b".", &minor[..digits(minor)]].concat())
}

/// What echoed nvcc commands say of the code that they compile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Options {
    /// For debugging, without optimisation.
    pub(crate) debug: bool,
    /// To be linked by a later command.
    pub(crate) separate: bool,
}

/// Reads the first `left` commands in `text`.
pub(crate) fn options(text: &[u8], left: &mut usize) -> Options {
    let mut options = Options::default();
    let mut rest = text;
    while *left > 0 {
        *left -= 1;
        let Some(at) = memchr::memmem::find(rest, b"nvcc") else {
            *left += 1;
            break;
        };
        let start = scan::line_start(rest, 0, at);
        let end = scan::line_end(rest, at, rest.len());
        let command = rest[start..end].trim_ascii_end();
        options.debug |= DEBUG.is_match(command) && DEBUG.is_match(&HOST.replace_all(command, &b""[..]));
        options.separate |= SEPARATE.is_match(command);
        rest = &rest[end..];
    }
    options
}

/// Options of nvcc with which it runs no ptxas.
const NO_ASSEMBLY: [&str; 12] = [
    "-E",
    "--preprocess",
    "-M",
    "-MM",
    "--generate-dependencies",
    "--generate-nonsystem-dependencies",
    "-ptx",
    "--ptx",
    "-cuda",
    "--cuda",
    "-dryrun",
    "--dryrun",
];

/// Takes note of what the words of a command say of what it prints, if it is nvcc's own and compiles a source.
pub fn note_command(words: &[Cow<'_, str>], facts: &mut InputFacts) {
    let Some((program, options)) = words.split_first() else { return };
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    let assembles = || !options.iter().any(|word| NO_ASSEMBLY.contains(&word.as_ref()));
    if !matches!(name, "nvcc" | "nvcc.exe") || !options.iter().any(|word| word.ends_with(".cu")) || !assembles() {
        return;
    }
    // Blanks within a word are in quotes on a command line.
    let quoted = |word: &Cow<'_, str>| if word.contains(' ') { format!("\"{word}\"") } else { word.to_string() };
    let command = format!("nvcc {}", options.iter().map(quoted).collect::<Vec<_>>().join(" "));
    let said = self::options(command.as_bytes(), &mut 1);
    facts.compiles_cuda = true;
    facts.debug |= said.debug;
    facts.separate |= said.separate;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_compilers_are_told_from_other_text() {
        for line in [
            "x.cu(1): error: identifier \"q\" is undefined",
            "/src/a.cpp:3:7: fatal error: x.h: No such file or directory",
            "a.cpp(3): error C2065: 'q': undeclared identifier",
            "x.cu(12): error #20-D: identifier",
            "error: linker command failed with exit code 1",
            "collect2: error: ld returned 1 exit status",
            "2026-03-04T05:00:00.0022657Z error: command failed",
        ] {
            assert_eq!(failure(line.as_bytes()), Some(Failure::Error), "{line}");
        }
        for line in [
            "x.cu(1): catastrophic error: cannot open source file \"a.h\"",
            "x.cu(1): internal error: assertion failed at: \"a.c\", line 3",
            "a.cpp:3:7: internal compiler error: Segmentation fault",
            "  1>x.cu(1): error : identifier",
            "  1>x.cu(1): error C2065 : 'q'",
            "nvcc.exe : fatal error : x",
            "CMake Error at x.txt:3 (message):",
            "CMake Error in CMakeLists.txt:",
            "CMake Error: The source directory does not exist.",
            "warning: kernels@0.1.0: x.cu(1): error: identifier \"q\" is undefined",
            "x.cu(1): error: ::f is undefined",
            "note::f.cu(1): error:no such thing",
        ] {
            assert_eq!(failure(line.as_bytes()), Some(Failure::Error), "{line}");
        }
        for line in [
            "x.cu(3): warning #1105-D: #warning directive: error: use v2",
            "x.cu(3): warning: error: not really",
            "x.cu(3): warning : a(3): error : not really",
            "a.cpp(3): warning C4996: error: not really",
            "check: error: 1e-7",
            "row (3): error : 3.5 %",
            "x: error: nan",
            "CMake Warning at x.txt:3 (message):",
            "max abs error: 1e-7",
            "nvcc -Werror all-warnings: x",
            "0 error(s)",
            "[ 10%] Building error.cpp.o",
            "CUDA error: invalid argument",
            "relative error : 3",
            "  |    0: candle_core::error::Error::bt",
            "at core::error::Error::type_id",
            "undefined reference to 'foo::error::bar()'",
            "            instantiation of \"void my::error::check<T>(T) [with T=float]\" at line 40",
        ] {
            assert_eq!(failure(line.as_bytes()), None, "{line}");
        }
        assert_eq!(
            failure(b"make[3]: *** [ggml/src/build.make:314: fattn-tile.cu.o] Error 255"),
            Some(Failure::Stopped)
        );
        for line in [
            "ninja: build stopped: subcommand failed.",
            "FAILED: b.o",
            "1 error detected in the compilation of \"x.cu\".",
            "2 errors detected in the compilation of \"x.cu\".",
            "1 catastrophic error detected in the compilation of \"x.cu\".",
            "2 warnings and 1 error generated when compiling for sm_80.",
            "Segmentation fault (core dumped)",
            "Killed",
            "bash: line 1: 4242 Killed                  nvcc -c x.cu",
            "make: *** [Makefile:3: x.o] Segmentation fault (core dumped)",
            "[3/4] FAILED: b.o",
            "x.targets(799,9): error MSB3721: The command \"nvcc.exe\" exited with code 1. [x.vcxproj]",
            "ERROR: Failed building wheel for flash-attn",
            "#18 ERROR: process \"/bin/sh -c make -j\" did not complete successfully: exit code: 2",
            "RuntimeError: Error compiling objects for extension",
            "ERROR: /x/BUILD:436:15: C++ compilation of rule '//x:y' failed (Exit 1): gcc failed: error executing command",
            "ERROR: /x/BUILD:436:15: Compiling a.cu.cc failed: (Exit 1): gcc failed",
            "RuntimeError: `ptxas` failed with error code 255: ",
            "ERROR: Failed to compile PTX code (ptxas exited with code 255)",
            "subprocess.CalledProcessError: Command '['C:\\\\bin\\\\ptxas.exe', '-v']' returned non-zero exit status 4294967295.",
            "  nvcc error while executing compiling: \"nvcc\" \"-c\" \"a.cu\"",
            "  # --error 0x89 --",
            "Error\tMSB3721\tThe command \"nvcc.exe\" exited with code 1.\tproj\tCUDA 11.6.targets\t790",
        ] {
            assert_eq!(failure(line.as_bytes()), Some(Failure::Stopped), "{line}");
        }
        for line in [
            "make[3]: [x.o] Error 1 (ignored)",
            "3 FAILED: no",
            "ERROR: 0 failed",
            "0 errors detected in the compilation of \"x.cu\".",
            "2 warnings generated.",
            "Killed 3 mosquitos",
            "    raise RuntimeError(f'`ptxas` failed with error code {e.returncode}: \\n{log}')",
            "except subprocess.CalledProcessError: pass",
        ] {
            assert_eq!(failure(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn cuda_is_recognised_by_its_compiler_and_its_files() {
        for text in [
            "nvcc -c x.cu",
            "/usr/local/cuda/bin/nvcc -O3",
            "[ 25%] Building CUDA object a.o",
            "compiling kernels/gemm.cu",
            "\"C:\\CUDA\\nvcc.exe\" x",
        ] {
            assert!(compiles_cuda(text.as_bytes()), "{text}");
        }
        for text in ["g++ -c x.cpp", "custom.cuts", "rnvcc"] {
            assert!(!compiles_cuda(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn the_toolkit_is_what_version_cmake_and_a_verbose_nvcc_say() {
        for (text, expected) in [
            ("Cuda compilation tools, release 13.5, V13.5.37\n", Some("13.5")),
            ("-- The CUDA compiler identification is NVIDIA 12.4.131\n", Some("12.4")),
            (
                "#$ gcc -D__NVCC__ -D__CUDACC_VER_MAJOR__=13 -D__CUDACC_VER_MINOR__=0 -D__CUDACC_VER_BUILD__=88 x",
                Some("13.0"),
            ),
            ("#$ gcc -D__CUDACC_VER_MAJOR__=13", None),
            // The first that is whole.
            (
                "-D__CUDACC_VER_MAJOR__=13 -D__CUD\n-D__CUDACC_VER_MAJOR__=13 -D__CUDACC_VER_MINOR__=5 \n\
                 Cuda compilation tools, release 12.4, V12.4.1\n",
                Some("13.5"),
            ),
            ("release x\nCuda compilation tools, release x\nCuda compilation tools, release 12.4, V", Some("12.4")),
            ("-- The CUDA compiler identification is Clang 17.0.1\n", None),
            ("CUDA 12.4", None),
        ] {
            assert_eq!(toolkit(text.as_bytes()).map(|one| one.to_string()).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn the_words_of_a_command_tell_what_it_is_for() {
        let facts = |command: &str| {
            let words: Vec<Cow<'_, str>> = command.split(' ').map(|word| word.replace('_', " ").into()).collect();
            let mut facts = InputFacts::default();
            note_command(&words, &mut facts);
            (facts.compiles_cuda, facts.debug, facts.separate)
        };
        assert_eq!(facts("nvcc -c a.cu"), (true, false, false));
        assert_eq!(facts("/usr/local/cuda/bin/nvcc -G -dc a.cu"), (true, true, true));
        assert_eq!(facts("C:\\cuda\\nvcc.exe a.cu -Xcompiler -O2_-G"), (true, false, false));
        for other in
            ["nvcc --version", "nvcc -ptx a.cu", "nvcc -dryrun a.cu", "make a.cu", "nvcc -dlink a.o", "nvcc -E a.cu"]
        {
            assert_eq!(facts(other), (false, false, false), "{other}");
        }
    }

    #[test]
    fn options_are_those_of_nvcc_and_whole_words() {
        let said = |text: &str| options(text.as_bytes(), &mut MAX_COMMANDS.clone());
        assert_eq!(said("nvcc -G -c a.cu"), Options { debug: true, separate: false });
        assert_eq!(
            said("x\n/usr/bin/nvcc -arch=sm_80 -rdc=true -c a.cu\r\n"),
            Options { debug: false, separate: true }
        );
        assert_eq!(said("nvcc -dc a.cu --device-debug"), Options { debug: true, separate: true });
        for host in [
            "-Xcompiler -G",
            "-Xcompiler=-G",
            "--compiler-options -G",
            "--compiler-options=-G",
            "-Xcompiler \"-O2,-G\"",
            "-Xcompiler \"-O2 -G\"",
            "-Xcompiler='-O2 -G -fPIC'",
            "-Xcompiler=\\\"-O2 -G \\\"",
            "-Xlinker -G",
            "-Xcompiler -O2 -Xcompiler -G",
        ] {
            assert!(!said(&format!("nvcc -c {host} a.cu")).debug, "{host}");
            assert!(said(&format!("nvcc -c {host} -G a.cu")).debug, "{host}");
            assert!(said(&format!("nvcc -G {host} a.cu")).debug, "{host}");
        }
        for other in [
            "cmake -G Ninja\nnvcc -c a.cu",
            "nvcc -c a.cu\rcmake -G Ninja",
            "nvcc -DG -g -lineinfo -dcx -rdc=false a.cu",
            "gcc -G nvcc.c",
        ] {
            assert_eq!(said(other), Options::default(), "{other}");
        }
    }
}
