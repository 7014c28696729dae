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
    assert!(all.contains("3 functions were not followed, first `k` (./deep.cu:1)"), "{all}");
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
