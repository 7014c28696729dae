//! A configuration as written: what is in the file, each value with its place.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::kernel::{self, KernelEntry};
use super::keys;
use super::paths::{self, Excluded};
use super::problem::Fault;
use super::rule::{self, RuleEntry};
use super::walk::{Keys, Value, Walk, in_order};
use crate::settle::{FailOn, did_you_mean};

/// What is in a file.
#[derive(Debug, Clone, Default)]
pub(super) struct ConfigFile {
    pub(super) gpus: Vec<Spanned<String>>,
    pub(super) fail_on: Option<FailOn>,
    pub(super) require_reason: bool,
    pub(super) sources: Vec<Spanned<String>>,
    pub(super) excluded: Vec<Excluded>,
    pub(super) baseline: Option<Spanned<String>>,
    pub(super) ratchet: bool,
    pub(super) rules: Vec<RuleEntry>,
    pub(super) kernels: Vec<KernelEntry>,
}

const KEYS: Keys = Keys { of: "of a configuration", known: keys::TOP };

/// Reads the text of a file: what could be understood of it, and everything that is wrong with it.
pub(super) fn read(text: &str) -> (ConfigFile, Vec<Fault>) {
    let mut walk = Walk { text, faults: Vec::new() };
    let (root, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let span = error.span().unwrap_or(text.len()..text.len());
        let message = error.message().lines().collect::<Vec<_>>().join("; ");
        walk.fault(span, format!("this is no TOML: {message}"), "", None);
    }
    // What the parser made of a broken text says nothing about what was meant.
    if !errors.is_empty() {
        return (ConfigFile::default(), walk.faults);
    }
    let file = top(&mut walk, root.get_ref());
    (file, walk.faults)
}

fn top(walk: &mut Walk<'_>, root: &DeTable<'_>) -> ConfigFile {
    let mut file = ConfigFile::default();
    for (key, value) in in_order(root) {
        match key.get_ref().as_ref() {
            "gpu" => file.gpus = walk.strings("`gpu`", "the name of a GPU", value),
            "fail-on" => file.fail_on = fail_on(walk, value),
            "require-reason" => file.require_reason = walk.flag("`require-reason`", value).unwrap_or_default(),
            "source" => file.sources = walk.strings("`source`", "the path of a folder", value),
            "exclude" => file.excluded = paths::excluded(walk, value),
            "baseline" => file.baseline = baseline(walk, value),
            "ratchet" => match value.get_ref() {
                DeValue::Boolean(ratchet) => file.ratchet = *ratchet,
                _ => walk.wrong_kind("`ratchet`", "true or false", value),
            },
            "kernel" => file.kernels = kernel::read(walk, value),
            "rules" => match value.get_ref() {
                DeValue::Table(table) => file.rules = rule::read(walk, table),
                _ => walk.wrong_kind("`rules`", "a table", value),
            },
            _ => walk.unknown_key(key, &KEYS),
        }
    }
    file
}

/// The path of a file.
fn baseline(walk: &mut Walk<'_>, value: &Value<'_>) -> Option<Spanned<String>> {
    let path = walk.string("`baseline`", "the path of a file", value)?;
    if path.is_empty() {
        let help = "write it as baseline = \"warplint-baseline.json\"".to_owned();
        walk.fault(value.span(), "`baseline` names no file", "", help);
        return None;
    }
    Some(Spanned::new(value.span(), path.to_owned()))
}

fn fail_on(walk: &mut Walk<'_>, value: &Value<'_>) -> Option<FailOn> {
    let name = walk.string("`fail-on`", "a string: deny, warn, note or never", value)?;
    let found = FailOn::ALL.into_iter().find(|level| level.name() == name);
    if found.is_none() {
        let help =
            did_you_mean(rule::meant(name), FailOn::ALL.map(FailOn::name), "it is one of deny, warn, note and never");
        walk.fault(value.span(), format!("`fail-on` cannot be `{name}`"), "", help);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is wrong with a text: each message with the part of the text that it is about.
    fn faults(text: &str) -> Vec<String> {
        let (_, mut faults) = read(text);
        faults.sort_by_key(|fault| fault.span.start);
        faults.iter().map(|fault| format!("{} [{}]", fault.message, &text[fault.span.clone()])).collect()
    }

    #[test]
    fn an_empty_file_and_one_of_comments_say_nothing() {
        for text in ["", "\n", "# gpu = 3\n", "[rules]\n", "kernel = []\n", "gpu = []\n"] {
            assert!(faults(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn all_faults_are_found_at_once_each_at_its_place() {
        let text = "gpus = 1\nfail-on = 3\n[rules]\nspils = \"warn\"\nlaunch = 1\n[[kernel]]\nblok = 1\n";
        assert_eq!(
            faults(text),
            [
                "unknown key `gpus` [gpus]",
                "`fail-on` must be a string: deny, warn, note or never [3]",
                "no rule or group is called `spils` [spils]",
                "`launch` must be a level, or a table of a level and options [1]",
                "this [[kernel]] entry has no `name` [[[kernel]]]",
                "unknown key `blok` [blok]",
            ]
        );
    }

    #[test]
    fn a_broken_text_has_no_other_faults_than_that() {
        let found = faults("gpus = 1\nfail-on = \n");
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("this is no TOML: "), "{found:?}");
    }

    #[test]
    fn a_key_given_twice_is_a_fault() {
        assert_eq!(faults("gpu = []\ngpu = []\n"), ["this is no TOML: duplicate key [gpu]"]);
        let twice = faults("[rules]\nspills = \"warn\"\nspills = \"deny\"\n");
        assert_eq!(twice, ["this is no TOML: duplicate key [spills]"]);
        let entries = "[[kernel]]\nname = \"a\"\n[[kernel]]\nname = \"a\"\n";
        assert_eq!(faults(entries), ["a second entry for `a` [\"a\"]"]);
    }

    #[test]
    fn every_key_of_the_tables_is_read_as_it_is_shown() {
        for key in keys::TOP.iter().filter(|key| !key.shown.is_empty()) {
            assert!(faults(&format!("{} = {}\n", key.name, key.shown)).is_empty(), "{}", key.name);
        }
        for key in keys::KERNEL.iter().filter(|key| key.name != "name") {
            let text = format!("[[kernel]]\nname = \"k\"\n{} = {}\n", key.name, key.shown);
            assert!(faults(&text).is_empty(), "{} {:?}", key.name, faults(&text));
        }
    }

    #[test]
    fn a_budget_is_of_its_kind_and_in_its_range() {
        let entry = |line: &str| faults(&format!("[[kernel]]\nname = \"k\"\n{line}\n"));
        for right in ["max-registers = 0x80", "max-spill-bytes = \"1K\"", "min-occupancy = 1", "min-occupancy = 0.5"] {
            assert!(entry(right).is_empty(), "{right}");
        }
        for (wrong, said) in [
            ("max-registers = 1.5", "`max-registers` must be a whole number, 0 or more [1.5]"),
            ("max-registers = -1", "`max-registers` must be a whole number from 0 to 4294967295 [-1]"),
            ("max-registers = 4294967296", "`max-registers` must be a whole number from 0 to 4294967295 [4294967296]"),
            (
                "max-stack-bytes = true",
                "`max-stack-bytes` must be a number of bytes, or a string such as \"48KiB\" [true]",
            ),
            ("min-occupancy = 25", "`min-occupancy` must be a number from 0 to 1 [25]"),
            ("min-occupancy = nan", "`min-occupancy` must be a number from 0 to 1 [nan]"),
            ("min-occupancy = \"50 %\"", "`min-occupancy` must be a number from 0 to 1 [\"50 %\"]"),
            ("max-register = 128", "unknown key `max-register` [max-register]"),
        ] {
            assert_eq!(entry(wrong), [said]);
        }
    }

    #[test]
    fn what_is_left_out_is_named_by_patterns_that_can_match() {
        assert!(faults("exclude = [\"third_party/**\", \"*.gen.cu\", \"/build/\", \"a/**/b\"]\n").is_empty());
        assert_eq!(
            faults("exclude = [\"a[\", \"../x\", \"!keep.cu\", \"\", \"/\", 3, \"**\"]\n"),
            [
                "`a[` is no pattern [\"a[\"]",
                "`../x` leaves the folder of the configuration [\"../x\"]",
                "`!keep.cu` does not take back what another pattern leaves out [\"!keep.cu\"]",
                "an empty pattern leaves nothing out [\"\"]",
                "`/` would leave everything out [\"/\"]",
                "each item of `exclude` must be a pattern of paths [3]",
                "`**` would leave everything out [\"**\"]",
            ]
        );
    }

    #[test]
    fn a_block_is_a_number_a_list_or_a_string() {
        let block = |value: &str| {
            let text = format!("[[kernel]]\nname = \"k\"\nblock = {value}\n");
            let (file, faults) = read(&text);
            let block = file.kernels.first().and_then(|kernel| kernel.block).map(|block| block.dimensions());
            (block, faults.into_iter().map(|fault| fault.message).next())
        };
        assert_eq!(block("256"), (Some([256, 1, 1]), None));
        assert_eq!(block("0x100"), (Some([256, 1, 1]), None));
        assert_eq!(block("[16, 16]"), (Some([16, 16, 1]), None));
        assert_eq!(block("\"8x8x4\""), (Some([8, 8, 4]), None));
        for wrong in ["-1", "0", "[]", "[1, 2, 3, 4]", "2.5", "[32, 33]", "[1.5]", "99999999999999999999", "\"x\""] {
            let (block, fault) = block(wrong);
            assert!(block.is_none() && fault.is_some(), "{wrong}");
        }
        assert!(block("1025").1.is_some_and(|fault| fault.contains("no GPU launches more than 1024")));
    }

    #[test]
    fn a_size_is_a_number_of_bytes_or_a_string_with_a_unit() {
        let size = |value: &str| {
            let text = format!("[[kernel]]\nname = \"k\"\ndynamic-shared = {value}\n");
            let (file, faults) = read(&text);
            assert_eq!(faults.is_empty(), file.kernels[0].dynamic_shared.is_some(), "{value}");
            file.kernels[0].dynamic_shared.map(crate::model::Bytes::get)
        };
        assert_eq!([size("1_024"), size("\"48KiB\""), size("0")], [Some(1024), Some(49152), Some(0)]);
        assert_eq!([size("-1"), size("\"48Q\""), size("1.5"), size("[1]")], [None; 4]);
    }

    #[test]
    fn an_option_is_of_the_kind_and_in_the_range_of_its_default() {
        let options = |text: &str| faults(&format!("[rules]\n{text}\n"));
        assert!(options("register-cliff = { gain = 0, within = 16 }").is_empty());
        for wrong in ["gain = 1.5", "gain = nan", "gain = \"x\"", "within = -1", "within = 0.5", "within = 99999999999"]
        {
            assert_eq!(options(&format!("register-cliff = {{ {wrong} }}")).len(), 1, "{wrong}");
        }
        assert_eq!(
            options("[rules.register-cliff]\nwithing = 3\nlevel = \"loud\""),
            ["`register-cliff` has no option `withing` [withing]", "`loud` is no level [\"loud\"]"]
        );
    }
}
