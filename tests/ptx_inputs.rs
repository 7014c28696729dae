//! PTX as an input: piped, linked, unreadable, and with names in it that lead elsewhere.
#![allow(clippy::unwrap_used, reason = "a test stops where it is broken")]

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const PARITY: &str = include_str!("../fixtures/ptx/13.5/parity-branch/input.ptx");
const SOURCE: &str = include_str!("../fixtures/kernels/parity.cu");

/// A folder of a test's own, empty at first.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("ptx-inputs-{name}"));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(path.join(".git")).unwrap();
    path
}

fn run_in(folder: &Path, args: &[&str], stdin: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_warplint"))
        .args(args)
        .current_dir(folder)
        .env("NO_COLOR", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A run that reads a file does not wait for its input.
    let _ = child.stdin.take().unwrap().write_all(stdin);
    child.wait_with_output().unwrap()
}

fn report(output: &Output) -> Value {
    let error = || String::from_utf8_lossy(&output.stderr).into_owned();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", error()))
}

/// The one finding of a report.
fn finding(output: &Output) -> Value {
    let report = report(output);
    let found = report["findings"].as_array().unwrap();
    assert_eq!(found.len(), 1, "{found:#?}");
    found[0].clone()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).replace("\n  | ", " ")
}

#[test]
fn ptx_is_told_from_a_log_that_is_piped_in() {
    let place = folder("piped");
    let output = run_in(&place, &["-f", "json"], PARITY.as_bytes());
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(1), ""), "nothing of it is passed on");
    assert_eq!(finding(&output)["rule"], "index-divergent-branch");
    // Behind comments, and a mark of the encoding.
    for head in ["\u{feff}", &"// a line of a comment\n".repeat(400), "/* one\n   comment */"] {
        assert_eq!(run_in(&place, &["-q"], format!("{head}{PARITY}").as_bytes()).status.code(), Some(1), "{head:.20}");
    }
}

#[test]
fn a_log_that_begins_with_comments_is_a_log() {
    let place = folder("comments");
    let log = "// a comment\n// another\nptxas info    : Compiling entry function 'k' for 'sm_90'\n\
               ptxas info    : Used 10 registers, used 0 barriers\nmake: done\n";
    let output = run_in(&place, &["-f", "json"], log.as_bytes());
    assert_eq!(report(&output)["kernels"][0]["registers"], 10);
    assert_eq!(stderr(&output), "// a comment\n// another\nmake: done\n");
    let output = run_in(&place, &["-f", "json"], b"// nothing but a comment");
    assert_eq!(stderr(&output), "// nothing but a comment");
}

#[test]
fn a_finding_with_its_source_has_a_place_in_it_and_the_line_of_the_ptx() {
    let place = folder("source");
    fs::write(place.join("k.ptx"), PARITY).unwrap();
    fs::write(place.join("parity.cu"), SOURCE).unwrap();
    let found = finding(&run_in(&place, &["-f", "json", "k.ptx"], b""));
    let line = SOURCE.lines().position(|line| line.contains("threadIdx.x % 2")).unwrap() + 1;
    let at = &found["location"];
    assert_eq!((&at["path"], &at["line"], &at["column"]), (&"parity.cu".into(), &line.into(), &5.into()));
    let text = SOURCE.as_bytes();
    let range = ["byte_start", "byte_end"].map(|key| usize::try_from(at[key].as_u64().unwrap()).unwrap());
    assert!(text[range[0]..range[1]].starts_with(b"if (threadIdx.x"), "{at}");
    let ptx_line = PARITY.lines().position(|line| line.contains("@%p4 bra")).unwrap() + 1;
    assert_eq!((&found["ptx_line"], &found["confidence"]), (&ptx_line.into(), &"high".into()));
    assert_eq!((&found["kernel"], &found["arch"]), (&"by_parity".into(), &"sm_80".into()));
}

#[test]
fn a_finding_without_its_source_has_the_line_that_the_compiler_tells_and_no_bytes() {
    let place = folder("sourceless");
    fs::write(place.join("k.ptx"), PARITY).unwrap();
    let found = finding(&run_in(&place, &["-f", "json", "k.ptx"], b""));
    let at = &found["location"];
    assert_eq!((&at["path"], &at["line"]), (&"/build/parity.cu".into(), &6.into()));
    assert!(at["byte_start"].is_null() && at["byte_end"].is_null(), "{at}");
    assert!(found["ptx_line"].is_u64() && found["confidence"] == "high", "{found}");
    // Neither has a finding of PTX without lines: its place is in the PTX.
    let bare: String = PARITY.lines().filter(|line| !line.contains(".loc\t")).map(|line| format!("{line}\n")).collect();
    fs::write(place.join("k.ptx"), bare).unwrap();
    let found = finding(&run_in(&place, &["-f", "json", "k.ptx"], b""));
    assert_eq!((&found["location"]["path"], &found["location"]["line"]), (&"k.ptx".into(), &found["ptx_line"]));
    assert!(found["location"]["byte_start"].is_u64());
}

#[test]
fn findings_of_a_log_have_neither_a_line_of_ptx_nor_a_confidence() {
    let place = folder("log");
    let log = "ptxas info    : Compiling entry function 'k' for 'sm_90'\nptxas info    : Function properties for k\n    \
               8 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads\nptxas info    : Used 10 registers\n";
    let found = finding(&run_in(&place, &["-f", "json"], log.as_bytes()));
    assert!(found["ptx_line"].is_null() && found["confidence"].is_null());
    assert!(
        found.as_object().unwrap().contains_key("ptx_line") && found.as_object().unwrap().contains_key("confidence")
    );
}

#[test]
fn no_name_within_the_ptx_opens_a_file_outside_of_the_folders() {
    let place = folder("hostile");
    fs::create_dir(place.join("in")).unwrap();
    let secret = "// a secret\n".repeat(30);
    fs::write(place.join("secret.cu"), &secret).unwrap();
    let absolute = place.join("secret.cu").display().to_string();
    let names: [&[u8]; 9] = [
        absolute.as_bytes(),
        b"../secret.cu",
        b"../../ptx-inputs-hostile/secret.cu",
        b"in/../secret.cu",
        b"",
        b"..",
        b"/",
        b"\xff\xfe/secret\xff.cu",
        b"\x1b[31m/dev/stdin",
    ];
    for name in names {
        let (before, after) = PARITY.split_once("/build/parity.cu").unwrap();
        fs::write(place.join("in/k.ptx"), [before.as_bytes(), name, after.as_bytes()].concat()).unwrap();
        for args in [&["--source", "in", "in/k.ptx"][..], &["-f", "json", "--source", "in", "in/k.ptx"]] {
            let output = run_in(&place, args, b"");
            let shown = String::from_utf8_lossy(&output.stdout);
            assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
            assert!(shown.contains("by_parity") && !shown.contains("a secret") && !shown.contains('\u{1b}'), "{shown}");
        }
    }
}

#[test]
fn the_working_folder_is_searched_without_what_is_not_the_users_own() {
    let place = folder("own");
    fs::write(place.join("k.ptx"), PARITY).unwrap();
    for other in [".git", ".cache", "target", "node_modules"] {
        fs::create_dir_all(place.join(other)).unwrap();
        fs::write(place.join(other).join("parity.cu"), SOURCE).unwrap();
    }
    let path =
        |args: &[&str]| finding(&run_in(&place, &[&["-f", "json"], args].concat(), b""))["location"]["path"].clone();
    assert_eq!(path(&["k.ptx"]), "/build/parity.cu");
    assert_eq!(path(&["--source", "target", "k.ptx"]), "target/parity.cu");
    assert_eq!(path(&["--source", ".cache/parity.cu", "k.ptx"]), ".cache/parity.cu");
}

#[test]
fn a_place_for_sources_that_holds_none_is_refused() {
    let place = folder("empty-source");
    fs::create_dir_all(place.join("empty/deep")).unwrap();
    fs::write(place.join("k.ptx"), PARITY).unwrap();
    for (named, says) in [
        ("empty", "`--source empty` is a folder without a file in it"),
        ("nowhere", "`--source nowhere` names nothing that can be read: there is no such file"),
    ] {
        for command in [&["k.ptx"][..], &["kernels", "k.ptx"], &["branches", "k.ptx"]] {
            let output = run_in(&place, &[command, &["--source", named]].concat(), b"");
            assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
            assert!(stderr(&output).contains(says), "{}", stderr(&output));
        }
    }
}

#[test]
fn a_file_that_is_named_twice_is_read_once() {
    let place = folder("twice");
    fs::create_dir(place.join("d")).unwrap();
    fs::write(place.join("d/k.ptx"), PARITY).unwrap();
    fs::write(place.join("build.log"), "ptxas info    : 0 bytes gmem\n").unwrap();
    let args = ["-f", "json", "d", "build.log", "d/k.ptx", "./d/../d/k.ptx", "build.log"];
    let output = run_in(&place, &args, b"");
    assert_eq!(report(&output)["summary"]["files"], 2);
    assert_eq!(finding(&output)["count"], 1);
}

#[cfg(unix)]
#[test]
fn what_cannot_be_opened_is_told_and_the_others_are_linted() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let place = folder("unreadable");
    fs::write(place.join("k.ptx"), PARITY).unwrap();
    symlink("nowhere", place.join("dangling.ptx")).unwrap();
    let output = run_in(&place, &["-f", "json", "dangling.ptx", "k.ptx"], b"");
    assert_eq!((output.status.code(), finding(&output)["rule"].as_str()), (Some(2), Some("index-divergent-branch")));
    assert!(stderr(&output).contains("cannot read `dangling.ptx`: there is no such file"), "{}", stderr(&output));

    fs::write(place.join("closed.ptx"), PARITY).unwrap();
    fs::set_permissions(place.join("closed.ptx"), fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(place.join("closed.ptx")).is_ok() {
        // The superuser reads everything.
        return;
    }
    let output = run_in(&place, &["closed.ptx"], b"");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("cannot read `closed.ptx`: permission denied"), "{}", stderr(&output));
}

#[cfg(unix)]
#[test]
fn a_pipe_with_a_path_may_hold_either() {
    let place = folder("named-pipe");
    let log = b"ptxas info    : Compiling entry function 'k' for 'sm_90'\nptxas info    : Used 10 registers\n";
    let output = run_in(&place, &["-f", "json", "/dev/stdin"], PARITY.as_bytes());
    assert_eq!((finding(&output)["rule"].as_str(), stderr(&output).as_str()), (Some("index-divergent-branch"), ""));
    assert_eq!(report(&run_in(&place, &["-f", "json", "/dev/stdin"], log))["kernels"][0]["registers"], 10);
}

#[test]
fn a_table_and_a_list_are_written_to_a_file() {
    let place = folder("output");
    fs::write(place.join("k.ptx"), PARITY).unwrap();
    let table = run_in(&place, &["kernels", "-f", "json", "-o", "kernels.json", "k.ptx"], b"");
    assert_eq!((table.status.code(), table.stdout.len()), (Some(0), 0));
    let table: Value = serde_json::from_slice(&fs::read(place.join("kernels.json")).unwrap()).unwrap();
    let kernels = table["kernels"].as_array().unwrap();
    assert_eq!(kernels.len(), 2);
    for key in ["registers", "stack_bytes", "spill_store_bytes", "spill_load_bytes", "static_shared_bytes", "barriers"]
    {
        assert!(kernels.iter().all(|kernel| kernel[key].is_null()), "{key} is not known: {kernels:#?}");
    }
    assert_eq!(kernels[0]["launch"]["max_threads"], 256);
    let list = run_in(&place, &["branches", "-f", "json", "-o", "branches.json", "k.ptx"], b"");
    assert_eq!((list.status.code(), list.stdout.len()), (Some(0), 0));
    let list: Value = serde_json::from_slice(&fs::read(place.join("branches.json")).unwrap()).unwrap();
    assert_eq!(list["branches"].as_array().unwrap().len(), 6);
    // A list of nothing does not replace one of something.
    fs::write(place.join("build.log"), "ptxas info    : 0 bytes gmem\n").unwrap();
    assert_eq!(run_in(&place, &["branches", "-o", "branches.json", "build.log"], b"").status.code(), Some(2));
    assert!(fs::metadata(place.join("branches.json")).unwrap().len() > 0);
}

/// A kernel whose parting branch stands in a helper, with a barrier that a part of the block misses.
const INLINED: &str = r#".version 8.5
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p)
{
	.reg .pred %p<3>;
	.reg .b32 %r<5>;
	.loc 1 3 5
	mov.u32 %r1, %tid.x;
	.loc 2 2 5, function_name $L__info_string0, inlined_at 1 3 5
	setp.gt.u32 %p1, %r1, 99;
	.loc 3 80 9, function_name $L__info_string1, inlined_at 2 2 5
	@%p1 bra $L__BB0_2;
	bar.sync 0;
$L__BB0_2:
	.loc 1 4 1
	st.global.u32 [%rd1], %r1;
	ret;
}
	.file 1 "/build/k.cu"
	.file 2 "/build/helper.cuh"
	.file 3 "/usr/local/cuda/include/cub/cub.cuh"
	.section .debug_str
	{
$L__info_string0:
.b8 95,90,52,109,101,101,116,80,102,105,0
$L__info_string1:
.b8 120,0
	}
"#;

#[test]
fn a_branch_of_a_helper_is_shown_where_it_was_called_and_where_it_stands() {
    let place = folder("inlined");
    fs::write(place.join("k.ptx"), INLINED).unwrap();
    fs::write(place.join("k.cu"), "#include \"helper.cuh\"\n__global__ void k(float *p) {\n    meet(p, 99);\n}\n")
        .unwrap();
    fs::write(
        place.join("helper.cuh"),
        "void meet(float *p, int n) {\n    if (threadIdx.x <= n) __syncthreads();\n}\n",
    )
    .unwrap();
    let found = finding(&run_in(&place, &["-f", "json", "k.ptx"], b""));
    assert_eq!((&found["location"]["path"], &found["location"]["line"]), (&"k.cu".into(), &3.into()));
    let labels = found["labels"].as_array().unwrap();
    let helper = labels.iter().find(|label| label["text"] == "inlined from `meet`").unwrap();
    assert_eq!((&helper["path"], &helper["line"], &helper["column"]), (&"helper.cuh".into(), &2.into(), &5.into()));
    // The branch itself is a library's, of which a user is told in a note.
    let output = run_in(&place, &["-v", "k.ptx"], b"");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("\n  inlined from `meet`: helper.cuh:2: if (threadIdx.x <= n) __syncthreads();\n"), "{text}");
}

#[test]
fn the_list_of_branches_has_the_level_and_the_path_of_a_lint() {
    let place = folder("as-a-lint");
    fs::write(place.join("k.ptx"), INLINED).unwrap();
    fs::write(place.join("k.cu"), "\n\n    meet(p, 99);\n").unwrap();
    let found = finding(&run_in(&place, &["-f", "json", "k.ptx"], b""));
    let list = report(&run_in(&place, &["branches", "-f", "json", "k.ptx"], b""));
    let branch = &list["branches"][0];
    assert_eq!((&branch["report"], &branch["report"]), (&found["level"], &"note".into()));
    assert_eq!((&branch["path"], &branch["path"]), (&found["location"]["path"], &"k.cu".into()));
    // Without the source both have the name that the compiler was told.
    fs::remove_file(place.join("k.cu")).unwrap();
    let list = report(&run_in(&place, &["branches", "-f", "json", "k.ptx"], b""));
    assert_eq!(list["branches"][0]["path"], "/build/k.cu");
}

#[test]
fn short_is_one_line_a_finding_with_its_place_and_the_table_tells_the_block_of_ptx_alone() {
    let place = folder("short");
    fs::write(place.join("k.ptx"), INLINED.replace("u64 p)", "u64 p)\n.reqntid 128, 2, 1")).unwrap();
    let output = run_in(&place, &["-f", "short", "k.ptx"], b"");
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(
        text.starts_with("/build/k.cu:3:5: note[barrier-in-divergent-branch] part of a block of `k` misses"),
        "{text}"
    );
    let table = run_in(&place, &["kernels", "k.ptx"], b"");
    let table = String::from_utf8_lossy(&table.stdout);
    assert!(table.lines().nth(1).is_some_and(|row| row.ends_with("  128×2")), "{table}");
}

/// A module with the kernel `work`, whose first 64 threads come to a barrier that the others miss, for blocks of so many.
fn with_block(threads: u32) -> String {
    format!(
        ".version 8.5\n.target sm_90\n.address_size 64\n.visible .entry work(.param .u64 o)\n.reqntid {threads}\n{{\n\
         \t.reg .pred %p<2>;\n\t.reg .b32 %r<3>;\n\t.reg .b64 %rd<2>;\n\tld.param.u64 %rd1, [o];\n\tmov.u32 %r1, %tid.x;\n\
         \tsetp.gt.u32 %p1, %r1, 63;\n\t@%p1 bra $E;\n\tbar.sync 0;\n$E:\n\tst.global.u32 [%rd1], %r1;\n\tret;\n}}\n"
    )
}

#[test]
fn kernels_of_one_name_in_two_files_keep_their_own_blocks() {
    let folder = folder("one-name");
    fs::write(folder.join("a.ptx"), with_block(256)).unwrap();
    fs::write(folder.join("b.ptx"), with_block(64)).unwrap();
    let alone = run_in(&folder, &["--isolated", "--format", "json", "b.ptx"], b"");
    assert_eq!(report(&alone)["findings"].as_array().unwrap().len(), 0);
    for files in [["a.ptx", "b.ptx"], ["b.ptx", "a.ptx"]] {
        let output = run_in(&folder, &[&["--isolated", "--format", "json"], &files[..]].concat(), b"");
        let found = finding(&output);
        assert_eq!(found["location"]["path"], "a.ptx", "{found:#}");
        let kernels = report(&output)["kernels"].as_array().unwrap().len();
        assert_eq!(kernels, 2);
        let listed = run_in(&folder, &[&["branches", "--isolated", "--format", "json"], &files[..]].concat(), b"");
        let blocks = |file: &str| {
            let all = report(&listed)["branches"].as_array().unwrap().clone();
            all.iter().filter(|one| one["path"] == file).map(|one| one["block"][0].clone()).collect::<Vec<_>>()
        };
        assert_eq!((blocks("a.ptx"), blocks("b.ptx")), (vec![256.into()], vec![64.into()]));
    }
    // Those of one name that say the same are one kernel.
    fs::write(folder.join("b.ptx"), with_block(256)).unwrap();
    let output = run_in(&folder, &["--isolated", "--format", "json", "a.ptx", "b.ptx"], b"");
    assert_eq!(report(&output)["kernels"].as_array().unwrap().len(), 1);
}
