//! What was not read or followed is told: silence never looks like success.
#![allow(clippy::unwrap_used, reason = "a test stops where it is broken")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A folder that is gone at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let root = std::env::temp_dir().join(format!("warplint-honesty-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(&root).unwrap();
        Folder(root)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What a run said, and its exit status.
struct Said {
    status: Option<i32>,
    out: String,
    err: String,
}

/// Runs warplint over what lies in `folder`.
fn lint(folder: &Path, arguments: &[&str]) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warplint"));
    command.current_dir(folder).args(arguments).arg("--isolated").stdin(Stdio::null());
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace('\\', "/");
    Said { status: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
}

/// A kernel `k` with `before` in front of a branch that parts the lanes of a warp, and `behind` after it.
fn kernel(before: &str, behind: &str) -> String {
    let side = |function: &str| {
        let one = |at: usize| format!("o[t + {at}] = {function}(o[t]) / {at}.5f;");
        (0..20).map(one).collect::<Vec<_>>().join(" ")
    };
    let (one, other) = (side("sinf"), side("cosf"));
    format!(
        "__global__ void k(float* o, int n) {{\nint t = threadIdx.x;\n{before}\nif (t & 1) {{ {one} }} else {{ {other} }}\n{behind}\n}}\n"
    )
}

#[test]
fn functions_that_are_not_followed_are_counted() {
    let folder = Folder::new("followed");
    folder.write("long.cu", kernel(&"o[t] += 1.0f;\n".repeat(40_000), ""));
    folder.write("deep.cu", kernel(&"{".repeat(160), &"}".repeat(160)));
    folder.write("torn.cu", kernel("#ifdef A\nif (n) {\n#else\nif (n > 1) {\n#endif\n", "}"));
    for name in ["long.cu", "deep.cu", "torn.cu"] {
        let said = lint(&folder.0, &["-v", name]);
        let first = format!("1 function was not followed, `k` ({name}:1)");
        assert!(said.out.starts_with(&first) && said.out.contains("1 kernel: nothing to report"), "{}", said.out);
        assert_eq!(said.status, Some(0));
    }
    let all = lint(&folder.0, &["-v", "."]).out;
    assert!(all.contains("3 functions were not followed, first `k` (deep.cu:1)"), "{all}");
    assert!(lint(&folder.0, &["branches", "deep.cu"]).out.contains("1 function was not followed"));
    let json: serde_json::Value = serde_json::from_str(&lint(&folder.0, &["-f", "json", "."]).out).unwrap();
    assert_eq!(json["summary"]["functions_not_followed"], 3);
    // Whoever asks for no more than what is wrong is not told.
    assert!(!lint(&folder.0, &["."]).out.contains("followed"));
}

#[test]
fn what_can_be_followed_is() {
    let folder = Folder::new("can");
    let cases = (0..1000).map(|at| format!("else if (n == {at}) {{ o[t] = {at}; }}\n")).collect::<String>();
    folder.write("chain.cu", kernel(&format!("if (n < 0) {{ o[t] = 1; }}\n{cases}"), ""));
    folder.write("dead.cu", kernel("#if 0\nif (n) {\n#else\nif (n > 1) {\n#endif\n", "}"));
    folder.write("taken.cu", kernel("#if 1\nif (n) {\n#elif X\nif (n > 1) {\n#else\n{{\n#endif\n", "}"));
    for name in ["chain.cu", "dead.cu", "taken.cu"] {
        let said = lint(&folder.0, &["-v", name]).out;
        assert!(said.contains("index-divergent-branch") && !said.contains("followed"), "{name}: {said}");
    }
}

#[test]
fn functions_of_ptx_that_are_not_followed_are_counted() {
    let folder = Folder::new("ptx");
    let loops: String = (0..70).map(|at| format!("$L{at}:\nadd.u32 %r1, %r1, 1;\n")).collect();
    let ends: String = (0..70).rev().map(|at| format!("setp.lt.u32 %p1, %r1, {at};\n@%p1 bra $L{at};\n")).collect();
    let text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry nested()\n{{\n.reg .pred %p<2>;\n.reg .b32 %r<2>;\nmov.u32 %r1, %tid.x;\n{loops}{ends}ret;\n}}\n"
    );
    folder.write("nested.ptx", text);
    let said = lint(&folder.0, &["-v", "nested.ptx"]).out;
    assert!(said.contains("1 function was not followed, `nested` (nested.ptx:4)"), "{said}");
}

/// Runs warplint over what is piped in.
fn pipe(text: &[u8]) -> Said {
    use std::io::Write as _;
    let mut command = Command::new(env!("CARGO_BIN_EXE_warplint"));
    command.args(["--isolated", "--passthrough", "none"]).stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // It may stop to read.
    let _ = child.stdin.take().unwrap().write_all(text);
    let output = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Said { status: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
}

const KERNEL: &str = "__global__ void k(float* p) { p[0] = 1; }\n";

#[test]
fn a_head_of_many_parameters_and_a_long_expression_are_read() {
    let folder = Folder::new("long");
    let many = |one: &dyn Fn(usize) -> String, by: &str| (0..3000).map(one).collect::<Vec<_>>().join(by);
    let parameters = many(&|at| format!("float* p{at}"), ", ");
    let sum = many(&|_| "1".to_owned(), " + ");
    let text = format!("__global__ void k({parameters}) {{}}\nvoid f() {{ k<<<{sum}, 64>>>(); }}\n");
    folder.write("k.cu", text);
    let json: serde_json::Value = serde_json::from_str(&lint(&folder.0, &["-f", "json", "k.cu"]).out).unwrap();
    assert_eq!(json["kernels"][0]["launches"][0]["block"], serde_json::json!([64, 1, 1]));
}

#[test]
fn sources_that_are_piped_in_are_no_log() {
    let said = pipe(format!("// licence\n#include <cstdio>\n{KERNEL}").as_bytes());
    assert_eq!(said.status, Some(2));
    assert!(said.err.contains("`<stdin>` is CUDA source"), "{}", said.err);
    // An error of a compiler quotes one.
    let said = pipe(format!("k.cu(1): error: x\n  {KERNEL}").as_bytes());
    assert!(!said.err.contains("is CUDA source"), "{}", said.err);
}

#[test]
fn a_source_of_any_name_and_encoding_is_read() {
    let folder = Folder::new("names");
    folder.write("k.cu.in", KERNEL);
    let wide: Vec<u8> = [0xfeff].into_iter().chain(KERNEL.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    folder.write("wide.cu", wide);
    folder.write("mac.cu", format!("// a\r{KERNEL}").replace('\n', "\r"));
    for name in ["k.cu.in", "wide.cu", "mac.cu"] {
        let said = lint(&folder.0, &["-f", "json", name]);
        let json: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        let line = if name == "mac.cu" { 2 } else { 1 };
        assert_eq!(json["kernels"][0]["declared_at"], serde_json::json!({"path": name, "line": line}), "{}", said.err);
    }
}

#[test]
fn that_no_kernel_was_there_is_told_and_no_fault() {
    let folder = Folder::new("host");
    folder.write("host.cu", "int main() {}\n");
    folder.write("empty.cu", "");
    let said = lint(&folder.0, &["."]);
    assert_eq!((said.status, said.out.as_str()), (Some(0), "no kernels in 2 sources: nothing to report\n"));
    assert_eq!(lint(&folder.0, &["-q", "host.cu"]).out, "");
    let said = lint(&folder.0, &["kernels", "host.cu"]);
    assert!(said.status == Some(2) && said.err.contains("no kernel is declared in `host.cu`"), "{}", said.err);
    assert!(!said.err.contains("-Xptxas"), "{}", said.err);
    // Others may have the kernel: the sources that someone named tell nothing of names.
    folder.write("w.toml", "[[kernel]]\nname = \"gone\"\nblock = 64\n");
    folder.write("k.cu", KERNEL);
    let command = ["--config", "w.toml", "k.cu"];
    let output = Command::new(env!("CARGO_BIN_EXE_warplint")).current_dir(&folder.0).args(command).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "1 kernel: nothing to report\n");
}

#[test]
fn a_large_header_is_passed_over_only_if_it_holds_no_device_code() {
    let folder = Folder::new("large");
    let mut text = vec![b' '; (16 << 20) + (1 << 19)];
    folder.write("k.cu", KERNEL);
    folder.write("large.h", &text);
    assert_eq!(lint(&folder.0, &["."]).status, Some(0));
    // Across the end of a piece.
    text[(16 << 20) - 5..][..10].copy_from_slice(b"__global__");
    folder.write("large.h", &text);
    let said = lint(&folder.0, &["."]);
    assert_eq!(said.status, Some(2));
    assert!(said.err.contains("`large.h` has 17301504 bytes"), "{}", said.err);
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::symlink;

    use super::*;

    fn shell(folder: &Path, script: &str) {
        let status = Command::new("sh").args(["-c", script]).current_dir(folder).status().unwrap();
        assert!(status.success(), "{script}");
    }

    #[test]
    fn what_a_walk_cannot_read_is_told() {
        let folder = Folder::new("hidden");
        folder.write("k.cu", KERNEL);
        // Longer than a path may be, whoever asks; what may not be read is read by an administrator all the same.
        let deep = |first: &str| folder.0.join(first).join(vec!["d".repeat(200); 15].join("/"));
        fs::create_dir_all(deep("one")).unwrap();
        fs::create_dir_all(deep("other")).unwrap();
        fs::rename(folder.0.join("other"), deep("one").join("in")).unwrap();
        let said = lint(&folder.0, &["."]);
        assert_eq!(said.status, Some(2));
        assert!(said.err.contains("cannot read all of"), "{}", said.err);
        assert!(said.out.starts_with("1 kernel"), "{}", said.out);
    }

    #[test]
    fn pipes_that_lie_in_a_folder_are_passed_over_and_links_told() {
        let folder = Folder::new("pipes");
        folder.write("in/k.cu", KERNEL);
        shell(&folder.0, "mkfifo in/p.cu in/p.ptx in/p.h");
        symlink("k.cu", folder.0.join("in/l.cu")).unwrap();
        let said = lint(&folder.0, &["-v", "in"]);
        assert_eq!((said.status, said.out.as_str()), (Some(0), "1 kernel: nothing to report\n"));
        assert!(said.err.starts_with("1 link to a source or PTX was not followed"), "{}", said.err);
        assert_eq!(lint(&folder.0, &["in"]).err, "");
        assert_eq!(lint(&folder.0, &["in/l.cu"]).out, "1 kernel: nothing to report\n");
    }

    #[test]
    fn a_pipe_that_is_named_is_read_once() {
        let folder = Folder::new("named");
        // A macro of it means something, so that files are read again.
        folder.write("k.cu", format!("#define ENTRY __global__\n{KERNEL}"));
        shell(&folder.0, "mkfifo p.cu; cat k.cu > p.cu &");
        let said = lint(&folder.0, &["p.cu"]);
        assert_eq!(said.out, "1 kernel: nothing to report\n", "{}", said.err);
    }
}

#[test]
fn of_very_many_launches_the_first_are_listed_and_all_counted() {
    use std::fmt::Write as _;
    let folder = Folder::new("launches");
    let mut text = "template <int N> __global__ void k(float* p) {}\nvoid f(float* p) {\n".to_owned();
    let mut log = String::new();
    for at in 0..150 {
        writeln!(text, "k<M{at}><<<1, {}>>>(p); k<{at}><<<1, 64>>>(p);", 32 * (1 + at % 8)).unwrap();
        writeln!(log, "ptxas info    : Compiling entry function '_Z1kILi{at}EEvPf' for 'sm_90'").unwrap();
        writeln!(log, "ptxas info    : Used 10 registers, used 0 barriers, 400 bytes cmem[0]").unwrap();
    }
    folder.write("k.cu", text + "}\n");
    folder.write("build.log", log);
    let said = lint(&folder.0, &["-f", "json", "k.cu", "build.log"]).out;
    let json: serde_json::Value = serde_json::from_str(&said).unwrap();
    let kernel = &json["kernels"][7];
    // Those of constants that nobody knows, and the one of this instantiation, whose block is told by that.
    assert_eq!(kernel["launches"].as_array().unwrap().len(), 100);
    assert_eq!((&kernel["launch_count"], &kernel["launches"][0]["line"]), (&151.into(), &3.into()));
    assert_eq!((&kernel["launch"]["block"][0], &kernel["launch"]["block_source"]), (&64.into(), &"launch-site".into()));
}
