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

const LISTING: &str = "\
Fatbin elf code:
================
arch = sm_90
code version = [1,8]
host = linux
compile_size = 64bit

Resource usage:
 Common:
  GLOBAL:0
 Function _Z1kPf:
  REG:168 STACK:0 SHARED:9216 LOCAL:0 CONSTANT[0]:536 TEXTURE:0 SURFACE:0 SAMPLER:0
 Function _Z1jPf:
  REG:16 STACK:8 SHARED:1024 LOCAL:0 CONSTANT[0]:536 TEXTURE:0 SURFACE:0 SAMPLER:0
";

/// The lines of the listing, each made by `line` of its number and its text.
fn listed(line: impl Fn(usize, &str) -> String) -> String {
    LISTING.lines().zip(1..).map(|(text, number)| line(number, text)).collect()
}

#[test]
fn a_listing_is_seen_behind_prefixes_of_every_kind() {
    let plain = read(LISTING.as_bytes());
    assert_eq!(plain.len(), 2);
    assert!(plain[0].starts_with("entry _Z1kPf sm_90: 168 registers") && plain[0].contains("8192"), "{plain:?}");
    let dresses = [
        ("BuildKit", listed(|n, line| format!("#7 {}.{n} {line}\n", n / 3))),
        ("MSBuild", listed(|_, line| format!("1>{line}\r\n"))),
        ("GitHub", listed(|n, line| format!("2026-03-04T05:00:{n:02}.0022657Z {line}\n"))),
        ("GitLab", listed(|n, line| format!("2026-03-04T05:00:{n:02}.002265Z 01O {line}\n"))),
        ("Jenkins", listed(|n, line| format!("[2026-03-04T05:00:{n:02}.002Z] {line}\n"))),
        ("docker-compose", listed(|_, line| format!("build-1  | {line}\n"))),
        ("ninja", listed(|n, line| format!("[{n}/14] {line}\n"))),
        ("progress", listed(|n, line| format!("[{:3}%] {line}\n", n * 8))),
        ("ninja, once", format!("[1/2] {LISTING}")),
        ("cat -n", listed(|n, line| format!("{n:6}\t{line}\n"))),
        ("grep -n", listed(|n, line| format!("build.log:{n}:{line}\n"))),
        ("grep -n -A", listed(|n, line| format!("x.log{0}{n}{0}{line}\n", if n % 2 == 0 { ':' } else { '-' }))),
        ("colours", listed(|_, line| format!("\x1b[32m[job]\x1b[0m {line}\x1b[K\n"))),
        ("a quote", listed(|_, line| format!("> {line}\n"))),
        ("a comment", listed(|_, line| format!(" * {line}\n"))),
        ("another comment", listed(|_, line| format!("// {line}\n"))),
        ("a patch", listed(|_, line| format!("+{line}\n"))),
        ("blanks", listed(|_, line| format!("    {line}\n"))),
        ("a browser", LISTING.replace("  ", "&nbsp; ")),
    ];
    for (dress, log) in dresses {
        assert_eq!(read(log.as_bytes()), plain, "{dress}:\n{log}");
    }
}

#[test]
fn listings_of_two_jobs_that_write_in_turn_are_told_apart() {
    let other = LISTING.replace("sm_90", "sm_80").replace("Pf", "Pd");
    let both: String =
        LISTING.lines().zip(other.lines()).map(|(one, other)| format!("#7 1.2 {one}\n#8 1.3 {other}\n")).collect();
    let names = |log: &str| -> Vec<String> {
        let mut names: Vec<String> = read(log.as_bytes())
            .iter()
            .map(|facts| facts.split(" registers").next().unwrap_or_default().into())
            .collect();
        names.sort();
        names
    };
    assert_eq!(names(&both), names(&format!("{LISTING}{other}")));
}

#[test]
fn prose_and_code_around_figures_name_no_kernel() {
    let figures = "#7 1.2   REG:16 STACK:8 SHARED:0 LOCAL:0 CONSTANT[0]:536 TEXTURE:0 SURFACE:0 SAMPLER:0\n";
    for before in [
        "the arch = sm_90 build\nsee Function foo:\n",
        "// arch = sm_90\n// Function foo:\n",
        "#7 int arch = sm_90\n#7 1.2 see Function foo:\n",
        "arch = sm_90\n Function foo:\n",
    ] {
        assert!(read(format!("{before}{figures}").as_bytes())[0].starts_with("entry ? ?"), "{before}");
        assert!(read(before.as_bytes()).is_empty(), "{before}");
    }
}

#[test]
fn a_log_that_starts_within_a_number_does_not_tell_it() {
    let rest = " bytes stack frame, 12 bytes spill stores, 16 bytes spill loads\nptxas info    : Used 20 registers, used 0 barriers\n";
    let figures = |log: &str| {
        let report = facts::read(log.as_bytes()).report;
        let resources = report.kernels[0].resources.clone();
        (
            resources.stack,
            resources.spill_stores,
            resources.spill_loads,
            facts::messages(&report).contains("Unread(Cut)"),
        )
    };
    let bytes = |n| Some(warplint::model::Bytes(n));
    assert_eq!(figures(&format!("6{rest}")), (None, bytes(12), bytes(16), true));
    for whole in ["    6", "\t6", "1>    6", "x\n6", "\n6"] {
        assert_eq!(figures(&format!("{whole}{rest}")), (bytes(6), bytes(12), bytes(16), false), "{whole}");
    }
}

#[test]
fn a_log_that_ends_within_the_beginning_of_a_message_is_cut() {
    let is_cut = |log: &str| facts::messages(&facts::read(log.as_bytes()).report).contains("Unread(Cut)");
    let next = "ptxas info    : Compiling entry function";
    for end in 3..=next.len() {
        assert!(is_cut(&format!("{RECORDS}{}", &next[..end])), "{}", &next[..end]);
        let behind = &next[..end.max("ptxas i".len())];
        assert!(is_cut(&format!("{RECORDS}#7 1.2 {behind}")), "{behind}");
    }
    for stub in ["nvlink warn", "ptxas warning : ", "ptxas info    : 12 by", "ptxas info    : (C75", "info    : Func"] {
        assert!(is_cut(&format!("{RECORDS}{stub}")), "{stub}");
    }
    for whole in ["", "make: done", "$ which ptxas", "ptxas info    : 0 bytes gmem", "info    : of other tools"] {
        assert!(!is_cut(&format!("{RECORDS}{whole}")), "{whole}");
        assert!(!is_cut(&format!("{RECORDS}{}\n", &next[..18])), "a line that has its end");
    }
}

#[test]
fn what_an_item_that_is_not_understood_may_say_is_unknown() {
    let shared = |items: &str| {
        let log = RECORDS.replace("64 bytes smem, 360 bytes cmem[0]", items).replace("sm_80", "sm_90");
        let report = facts::read(log.as_bytes()).report;
        (report.kernels[0].resources.static_shared, facts::messages(&report).contains("Unread(Item)"))
    };
    let bytes = |n| Some(warplint::model::Bytes(n));
    for items in ["512B smem", "1 024 bytes smem", "1,024 bytes smem", "1,234 bytes smem", "used 1 barriers, 512B smem"]
    {
        assert_eq!(shared(items), (None, true), "{items}");
    }
    assert_eq!(shared("used 1 barriers; 512 bytes smem"), (None, true));
    assert_eq!(shared("used 1 barriers"), (bytes(0), false));
    assert_eq!(shared("64 bytes smem, 12 bytes tmem"), (bytes(64), true));
}

#[test]
fn a_frame_with_grouped_digits_is_unknown() {
    for stack in ["1,008", "1,234", "1.234", "1'234", "1\u{a0}234", "1 234", "008"] {
        let log = RECORDS.replace("    8 bytes", &format!("    {stack} bytes"));
        let report = facts::read(log.as_bytes()).report;
        assert_eq!(report.kernels[0].resources.stack, None, "{stack}");
        assert!(facts::messages(&report).contains("Unread("), "{stack}");
    }
}
