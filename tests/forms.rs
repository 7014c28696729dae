//! One kernel, in every dress that a log may wear: each gives the same facts.

// Each test program uses a part of it.
#[allow(dead_code)]
mod facts;

const RECORDS: &str = "\
ptxas info    : Compiling entry function '_Z1kPf' for 'sm_80'
ptxas info    : Function properties for _Z1kPf
    8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 20 registers, 64 bytes smem, 360 bytes cmem[0]
";

fn read(log: &[u8]) -> Vec<String> {
    let report = facts::read(log).report;
    report.kernels.iter().map(|kernel| facts::kernel(&report, kernel)).collect()
}

/// Every line of the records after `line`.
fn each(line: impl Fn(&str) -> String) -> String {
    RECORDS.lines().map(line).collect()
}

#[test]
fn prefixes_and_suffixes_of_every_kind_are_seen_through() {
    let dresses = [
        ("quoted in Markdown", each(|line| format!("> {line}\n"))),
        ("a list in Markdown", each(|line| format!("- {line}\n"))),
        ("numbered by cat", each(|line| format!("    12\t{line}\n"))),
        ("numbered by grep", each(|line| format!("build.log:12:{line}\n"))),
        ("a patch", each(|line| format!("+{line}\n"))),
        ("docker-compose", each(|line| format!("build_1  | {line}\n"))),
        ("TeamCity", each(|line| format!("[12:33:44] :\t [Step 1/2] {line}\n"))),
        ("GitLab", each(|line| format!("2026-02-07T13:17:49.749232Z 01O {line}\n"))),
        ("MSBuild", each(|line| format!("1>  {line} [C:\\a b\\x.vcxproj]\r\n"))),
        ("a coloured prefix", each(|line| format!("\x1b[32m[job]\x1b[0m {line}\x1b[K\n"))),
        ("glued to another tool's line", format!("[1/2] cc a.o{RECORDS}")),
        ("a byte order mark", format!("\u{feff}{RECORDS}")),
        ("carriage returns", RECORDS.replace('\n', "\r")),
        ("tabs", RECORDS.replace("    8", "\t8")),
        ("non-breaking blanks", RECORDS.replace("    8 bytes", "&nbsp;&nbsp; 8\u{a0}bytes")),
        (
            "colours inside",
            RECORDS.replace("_Z1kPf", "\x1b[31m_Z1kPf\x1b[0m").replace("8 bytes", "\x1b[1m8\x1b[0m bytes"),
        ),
    ];
    for (dress, log) in dresses {
        assert_eq!(read(log.as_bytes()), read(RECORDS.as_bytes()), "{dress}:\n{log}");
    }
    assert_eq!(read(RECORDS.as_bytes()).len(), 1);
}

#[test]
fn names_that_a_browser_damaged_are_mended_in_every_record() {
    let name = "void k<f()::'lambda'(int), 3>(int&)";
    let plain = RECORDS.replace("_Z1kPf", name);
    assert!(read(plain.as_bytes())[0].starts_with(&format!("entry {name} sm_80: 20 registers")));
    let escaped = plain.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('\'', "&#39;");
    assert_eq!(read(escaped.as_bytes()), read(plain.as_bytes()));
    assert_eq!(read(plain.replace('\'', "’").as_bytes()), read(plain.as_bytes()));
    let linked =
        "nvlink info    : Function properties for 'k':\nnvlink info    : used 20 registers, 8 stack, 0 bytes lmem\n";
    assert_eq!(read(linked.replace('\'', "’").as_bytes()), read(linked.as_bytes()));
}

#[test]
fn records_that_a_comment_wraps_are_put_together() {
    let wrapped = "\
// ptxas info    : Compiling entry function '_Z1kPf'
// for 'sm_80'
// ptxas info    : Function properties for
// _Z1kPf
//     8 bytes stack frame, 4 bytes spill stores,
// 4 bytes spill loads
// ptxas info    : Used 20 registers, 64 bytes
// smem, 360 bytes cmem[0]
";
    assert_eq!(read(wrapped.as_bytes()), read(RECORDS.as_bytes()));
}

#[test]
fn what_windows_powershell_writes_is_read() {
    let units = [0xfeff].into_iter().chain(RECORDS.encode_utf16());
    let log: Vec<u8> = units.flat_map(u16::to_le_bytes).collect();
    assert_eq!(read(&log), read(RECORDS.as_bytes()));
}

#[test]
fn a_listing_goes_on_after_lines_of_other_tools_and_its_architecture_ends_with_its_file() {
    let log = "\
Fatbin elf code:
================
arch = sm_80

Resource usage:
 Common:
  GLOBAL:0
 Function a:
[1/3] other
  REG:20 STACK:8 SHARED:64 LOCAL:0 CONSTANT[0]:360
[2/3] other
 Function b:
  REG:21 STACK:0 SHARED:0 LOCAL:0 CONSTANT[0]:360

Resource usage:
 Common:
  GLOBAL:0
 Function c:
  REG:22 STACK:0 SHARED:0 LOCAL:0 CONSTANT[0]:360
";
    let told: Vec<String> = read(log.as_bytes())
        .iter()
        .map(|facts| facts.split(" registers").next().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(told, ["entry a sm_80: 20", "entry b sm_80: 21", "entry c ?: 22"]);
}

#[test]
fn numbers_that_cannot_be_true_are_said_and_cost_no_other_record() {
    let log = format!(
        "{}{RECORDS}",
        RECORDS
            .replace("_Z1kPf", "_Z1hPf")
            .replace("Used 20", "Used 99999999999")
            .replace("4 bytes", "44444444444 bytes")
    );
    let report = facts::read(log.as_bytes()).report;
    assert!(facts::messages(&report).contains("Unread(Number)"), "{}", facts::messages(&report));
    assert_eq!(read(log.as_bytes()).last(), read(RECORDS.as_bytes()).last());
}

#[test]
fn a_damaged_frame_does_not_move_the_line_of_its_function() {
    let log = "ptxas info    : Function properties for _Z1ff\n    8 bytes stack frame, \u{b}0 bytes spill stores, 0 bytes spill loads\n";
    let report = facts::read(log.as_bytes()).report;
    let lines: Vec<_> =
        report.kernels.iter().filter_map(|kernel| kernel.evidence.name).map(|place| place.line).collect();
    assert_eq!(lines, [1]);
}

#[test]
fn a_line_before_a_listing_of_windows_keeps_its_end() {
    let log = "x.cu(3): error: bad\r\nFatbin elf code:\r\n================\r\narch = sm_80\r\nResource usage:\r\n Common:\r\n  GLOBAL:0\r\n Function k:\r\n  REG:10 STACK:0 SHARED:0 LOCAL:0 CONSTANT[0]:364 TEXTURE:0 SURFACE:0 SAMPLER:0\r\nnext\r\n";
    let reading = facts::read(log.as_bytes());
    assert_eq!(reading.report.kernels.len(), 1);
    assert_eq!(String::from_utf8_lossy(&reading.echoed), "x.cu(3): error: bad\r\nnext\r\n");
}

#[test]
fn a_sentence_is_counted_for_each_kernel_whoever_says_it() {
    let said = |severity: &str, name: &str| {
        format!(
            "ptxas {severity} : Value of threads per SM for entry {name} is out of range. .minnctapersm will be ignored\n"
        )
    };
    let log =
        said("warning", "_Z1av") + &said("info   ", "_Z1av") + &said("warning", "_Z1bv") + &said("warning", "_Z1av");
    let report = facts::read(log.as_bytes()).report;
    let counts: Vec<_> = report
        .messages
        .iter()
        .map(|one| (String::from_utf8_lossy(&report.said(one)).into_owned(), one.count))
        .collect();
    let text =
        |name: &str| format!("Value of threads per SM for entry {name} is out of range. .minnctapersm will be ignored");
    assert_eq!(counts, [(text("_Z1av"), 3), (text("_Z1bv"), 1)]);
}

#[test]
fn sentences_without_room_are_counted_and_known_ones_still_are() {
    const ROOM: u64 = 1 << 16;
    let said = |number: u64| {
        format!(
            "ptxas warning : Value of threads per SM for entry k{number} is out of range. .minnctapersm will be ignored\n"
        )
    };
    let log: String = (0..ROOM + 64).chain([0]).map(said).collect();
    let report = facts::read(log.as_bytes()).report;
    assert_eq!(report.messages.len() as u64, ROOM + 1);
    assert_eq!((report.messages[0].count, report.messages.last().map(|lost| lost.count)), (2, Some(64)));
    assert!(report.names.len() as u64 <= ROOM, "a name without a message fills the memory");
}
