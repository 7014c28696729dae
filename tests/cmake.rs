//! `cmake/warplint.cmake` in a real project, with real CMake and nvcc, for each of the generators that it is for.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test stops where it is broken")]

#[path = "common/toolchain.rs"]
#[allow(dead_code, reason = "other tests use other parts")]
mod toolchain;
#[path = "common/tools.rs"]
mod tools;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use toolchain::Toolchain;
use tools::tool_or_skip;

const PROJECT: &str = r#"
cmake_minimum_required(VERSION 3.20)
project(example LANGUAGES CXX CUDA)
add_library(kernels STATIC spill.cu host.cpp)
add_library(text STATIC host.cpp)
add_executable(app main.cu)
target_compile_definitions(app PRIVATE "WORDS=\"a b,c\"")
include("WARPLINT_CMAKE")
warplint_lint(TARGETS kernels text app ARGS -f short)
warplint_lint(TARGETS kernels NAME lint_kernels ARGS -f short)
"#;

const MAIN: &str = r#"
#pragma message("kept; with [brackets] and \"quotes\"")
__global__ void copy(float *to, const float *from) { to[threadIdx.x] = from[threadIdx.x]; }
int main() { copy<<<4096, THREADS>>>(nullptr, nullptr); return sizeof WORDS; }
"#;

struct Project {
    root: PathBuf,
    cmake: PathBuf,
}

impl Project {
    fn cmake(&self, args: &[&str]) -> (Option<i32>, String) {
        let mut command = Command::new(&self.cmake);
        // The warplint of this build, and the tools of .ci/run.
        let own = Path::new(env!("CARGO_BIN_EXE_warplint")).parent().unwrap().to_owned();
        let tools = self.cmake.parent().unwrap().to_owned();
        let rest = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths([own, tools].into_iter().chain(std::env::split_paths(&rest))).unwrap();
        let Output { status, stdout, stderr } =
            command.args(args).current_dir(&self.root).env("PATH", path).output().unwrap();
        (status.code(), format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr)))
    }

    fn lint(&self) -> (Option<i32>, String) {
        self.cmake(&["--build", "build", "--target", "lint"])
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.root.join(name), text).unwrap();
    }
}

#[test]
fn a_project_has_a_target_that_lints_what_the_compiler_says() {
    const NAME: &str = "a_project_has_a_target_that_lints_what_the_compiler_says";
    let Some(toolchain) = Toolchain::or_skip(NAME) else { return };
    let Some(cmake) = tool_or_skip("cmake", NAME) else { return };
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (generator, builder) in [("Ninja", "ninja"), ("Unix Makefiles", "make")] {
        if tool_or_skip(builder, NAME).is_none() {
            continue;
        }
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cmake with spaces/{builder}"));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(&root).unwrap();
        let project = Project { root, cmake: cmake.clone() };
        let module = package.join("cmake/warplint.cmake").display().to_string();
        project.write("CMakeLists.txt", &PROJECT.replace("WARPLINT_CMAKE", &module));
        project.write("host.cpp", "int host() { return 1; }\n");
        project.write("main.cu", &MAIN.replace("THREADS", "33"));
        fs::copy(package.join("fixtures/kernels/spill.cu"), project.root.join("spill.cu")).unwrap();
        let nvcc = toolchain.nvcc(Path::new("."), &[""; 0]).get_program().to_owned();
        let compiler = format!("-DCMAKE_CUDA_COMPILER={}", nvcc.to_str().unwrap());
        let (status, text) =
            project.cmake(&["-S", ".", "-B", "build", "-G", generator, &compiler, "-DCMAKE_CUDA_ARCHITECTURES=80"]);
        assert_eq!(status, Some(0), "{text}");

        let (status, built) = project.cmake(&["--build", "build"]);
        assert_eq!(status, Some(0), "{generator}: {built}");
        assert!(built.contains("kept; with [brackets] and \"quotes\""), "{generator}: {built}");
        assert!(!built.contains("ptxas info") && !built.contains("stack frame"), "{generator}: {built}");

        let (status, first) = project.lint();
        assert!(status != Some(0), "{generator}: {first}");
        assert!(first.contains("spill.cu:3:44: warning[register-spill] `pressure<128>`"), "{generator}: {first}");
        assert!(first.contains("warning[under-filled-warp] `copy` with 33 threads"), "{generator}: {first}");

        // A target of two calls has one log.
        let (_, part) = project.cmake(&["--build", "build", "--target", "lint_kernels"]);
        assert!(part.contains("warning[register-spill]") && !part.contains("under-filled-warp"), "{generator}: {part}");

        // Nothing is compiled again, and nothing is forgotten.
        let (_, again) = project.lint();
        assert!(!again.contains("Building CUDA object"), "{generator}: {again}");
        let findings = |text: &str| text.lines().filter(|line| line.contains("warning[")).count();
        assert_eq!((findings(&first), findings(&again)), (3, 3), "{generator}: {again}");

        project.write("main.cu", &MAIN.replace("THREADS", "64"));
        project.write("spill.cu", "__global__ void quiet(int *to) { to[threadIdx.x] = 1; }\n");
        let (status, fixed) = project.lint();
        assert_eq!(status, Some(0), "{generator}: {fixed}");

        project.write("main.cu", "int main() { return undefined; }\n");
        let (status, broken) = project.cmake(&["--build", "build"]);
        assert!(status != Some(0) && broken.contains("identifier \"undefined\" is undefined"), "{generator}: {broken}");
    }
}
