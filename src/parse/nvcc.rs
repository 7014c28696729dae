//! What other lines of a build tell: that CUDA is compiled at all, and that another tool failed. Here, where text is
//! irregular, regular expressions serve; only lines that look like an error, and logs without a kernel, get here.

use std::sync::LazyLock;

use regex::bytes::Regex;

/// `x.cu(1): error: …`, `a.cpp:3:7: fatal error: …`, `a.cpp(3): error C2065: …`, `error: linker command failed`. The word
/// stands at the start of its message: `max abs error: 1e-7` of a test run is not one.
static ERROR: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?:^|[):\]Z])[\s*|#]*(?:fatal )?error(?:\s?#?[A-Z]{0,4}\d+(?:-D)?)?: *\S")
        .expect("bug: the pattern is fixed")
});

/// What build systems say of a step that failed: make, ninja, MSBuild, pip, PyTorch's extension builder, BuildKit, bazel.
static STOPPED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"\*\*\* \[.*\] Error \d+$|ninja: build stopped: |(?:^|[\]>Z] ?)FAILED: \S|error MSB3721: |ERROR: Failed building wheel|error: subprocess-exited-with-error|RuntimeError: Error compiling objects|ERROR: process ".*" did not complete|ERROR: .* failed: \(Exit \d+\)"#,
    )
    .expect("bug: the pattern is fixed")
});

/// nvcc's command line, its input, or the progress line of a build system that compiles CUDA.
static CUDA: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(?:^|[\s/\\"])nvcc(?:[\s"]|\.exe)|\.cu(?:[\s"'):]|\.o|$)|CUDA object|CUDA source file|--cuda-gpu-arch|-x cuda"#)
        .expect("bug: the pattern is fixed")
});

/// `-G` as a word of its own: `cmake -G Ninja` is another program's.
static DEBUG: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\bnvcc\b.*\s(?:-G|--device-debug)(?:\s|$)").expect("bug: the pattern is fixed"));

/// The options that leave the device link to a later command.
static SEPARATE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\bnvcc\b.*\s(?:--?rdc[= ]true|--relocatable-device-code[= ]true|-dc|--device-c)(?:\s|$)")
        .expect("bug: the pattern is fixed")
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
    if STOPPED.is_match(line.trim_ascii_end()) {
        return Some(Failure::Stopped);
    }
    ERROR.is_match(line).then_some(Failure::Error)
}

/// Whether `text` shows that CUDA code is compiled.
pub(crate) fn compiles_cuda(text: &[u8]) -> bool {
    CUDA.is_match(text)
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
        let start = memchr::memrchr(b'\n', &rest[..at]).map_or(0, |feed| feed + 1);
        let end = memchr::memchr(b'\n', &rest[at..]).map_or(rest.len(), |feed| at + feed);
        let command = rest[start..end].trim_ascii_end();
        options.debug |= DEBUG.is_match(command);
        options.separate |= SEPARATE.is_match(command);
        rest = &rest[end..];
    }
    options
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
            "max abs error: 1e-7",
            "nvcc -Werror all-warnings: x",
            "0 error(s)",
            "[ 10%] Building error.cpp.o",
            "CUDA error: invalid argument",
            "relative error : 3",
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
            "[3/4] FAILED: b.o",
            "x.targets(799,9): error MSB3721: The command \"nvcc.exe\" exited with code 1. [x.vcxproj]",
            "ERROR: Failed building wheel for flash-attn",
            "#18 ERROR: process \"/bin/sh -c make -j\" did not complete successfully: exit code: 2",
            "RuntimeError: Error compiling objects for extension",
        ] {
            assert_eq!(failure(line.as_bytes()), Some(Failure::Stopped), "{line}");
        }
        for line in ["make[3]: [x.o] Error 1 (ignored)", "3 FAILED: no", "ERROR: 0 failed"] {
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
    fn options_are_those_of_nvcc_and_whole_words() {
        let said = |text: &str| options(text.as_bytes(), &mut MAX_COMMANDS.clone());
        assert_eq!(said("nvcc -G -c a.cu"), Options { debug: true, separate: false });
        assert_eq!(
            said("x\n/usr/bin/nvcc -arch=sm_80 -rdc=true -c a.cu\r\n"),
            Options { debug: false, separate: true }
        );
        assert_eq!(said("nvcc -dc a.cu --device-debug"), Options { debug: true, separate: true });
        for other in ["cmake -G Ninja\nnvcc -c a.cu", "nvcc -DG -g -lineinfo -dcx -rdc=false a.cu", "gcc -G nvcc.c"] {
            assert_eq!(said(other), Options::default(), "{other}");
        }
    }
}
