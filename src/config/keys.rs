//! The keys of a configuration, each told once: the reader, `init` and the schema for editors have them from here.

/// A key.
pub(super) struct Key {
    pub(super) name: &'static str,
    /// What it is for, in one line.
    pub(super) about: &'static str,
    pub(super) kind: Kind,
    /// What `init` shows as its value, in TOML: the default; where there is none, an example.
    pub(super) shown: &'static str,
}

/// What the value of a key can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A string, or a list of them.
    Names,
    /// A level that fails a run.
    FailOn,
    /// True or false.
    Flag,
    /// A string.
    Text,
    /// A string that is not empty.
    Glob,
    /// The path of a file.
    Path,
    /// `256`, `[16, 16]` or `"16x16"`.
    Block,
    /// A number of bytes, or a string with a unit.
    Size,
    /// A whole number.
    Count,
    /// A number from 0 to 1.
    Share,
    /// A list of rules and groups.
    Targets,
    /// The table of rules.
    Rules,
    /// A list of tables, one for each name of kernels.
    Kernels,
}

const fn key(name: &'static str, kind: Kind, shown: &'static str, about: &'static str) -> Key {
    Key { name, about, kind, shown }
}

/// The keys of a configuration.
pub(super) const TOP: &[Key] = &[
    key(
        "gpu",
        Kind::Names,
        "[]",
        "GPUs to lint for: products, sm_90, 9.0, files of device figures in this folder or below; else each kernel's own",
    ),
    key("fail-on", Kind::FailOn, "\"warn\"", "Lowest level that makes the exit status 1: deny, warn, note, never"),
    key(
        "baseline",
        Kind::Path,
        "\"warplint-baseline.json\"",
        "What was accepted, in this folder or below: only what is new or worse is reported once the file exists",
    ),
    key("ratchet", Kind::Flag, "false", "An improvement fails too, until the baseline is written anew"),
    key(
        "require-reason",
        Kind::Flag,
        "false",
        "Report comments and [[kernel]] entries that allow a rule and do not say why",
    ),
    key(
        "source",
        Kind::Names,
        "[]",
        "Folders in this one with the sources of the kernels of logs and PTX; else the folders given, and the working folder",
    ),
    key(
        "exclude",
        Kind::Names,
        "[]",
        "Files and folders that are left out of folders: `third_party` anywhere, `src/gen/*.cu` from this folder on",
    ),
    key("rules", Kind::Rules, "", "Levels of rules and groups, and options of rules"),
    key(
        "kernel",
        Kind::Kernels,
        "",
        "What only the host code knows of kernels, what they may cost, and what is allowed",
    ),
];

/// The keys of a `[[kernel]]` entry.
pub(super) const KERNEL: &[Key] = &[
    key("name", Kind::Glob, "\"gemm_*\"", "Which kernels: a glob on the mangled, the demangled or the short name"),
    key("block", Kind::Block, "[16, 16]", "The block that they are launched with: 256, [16, 16] or \"16x16\""),
    key("dynamic-shared", Kind::Size, "\"48KiB\"", "Dynamic shared memory a block; K, KB and KiB are 1024 bytes"),
    key("max-registers", Kind::Count, "128", "Budget of registers a thread"),
    key("max-spill-bytes", Kind::Size, "0", "Budget of spill stores, and of spill loads, a thread"),
    key("max-stack-bytes", Kind::Size, "0", "Budget of the stack frame a thread"),
    key(
        "max-shared-bytes",
        Kind::Size,
        "\"96KiB\"",
        "Budget of shared memory a block: static, and dynamic where that is known",
    ),
    key("min-occupancy", Kind::Share, "0.25", "Budget of occupancy, 0 to 1, on each GPU that is linted for"),
    key("allow", Kind::Targets, "[\"register-limited-occupancy\"]", "Rules and groups that are fine for these kernels"),
    key("reason", Kind::Text, "\"two stages in flight\"", "Why they are"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_words_are_what_a_line_has_room_for() {
        for key in TOP.iter().chain(KERNEL) {
            assert!(key.about.chars().count() <= 118 && !key.about.ends_with('.'), "{}", key.about);
            assert!(key.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{}", key.name);
        }
    }
}
