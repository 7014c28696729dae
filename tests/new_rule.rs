//! Starting a rule writes what compiles, and nothing where it should not.

use std::fs;
use std::path::{Path, PathBuf};

#[path = "../examples/new-rule.rs"]
mod new_rule;

use new_rule::create;

/// A copy of what the program reads, in a folder of its own.
fn tree(test: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("new-rule-{test}"));
    let _ = fs::remove_dir_all(&root);
    let ours = Path::new(env!("CARGO_MANIFEST_DIR"));
    for file in ["rules/_template.md", "src/rules/template.rs", "rules/register-spill.md"] {
        let copy = root.join(file);
        fs::create_dir_all(copy.parent().expect("a folder")).expect("a folder for tests");
        fs::copy(ours.join(file), copy).expect("a file of the source tree");
    }
    root
}

#[test]
fn a_new_rule_is_the_template_under_its_own_name() {
    let root = tree("written");
    let said = create(&root, "my-rule").expect("a good id");
    let page = fs::read_to_string(root.join("rules/my-rule.md")).expect("the page");
    let code = fs::read_to_string(root.join("src/rules/my_rule.rs")).expect("the module");
    // The template itself is compiled and run as a rule by the tests of `rules`.
    assert!(page.contains("warning[my-rule] `k_texref` binds 2 textures"), "{page}");
    assert!(code.starts_with("//! `my-rule`: "), "{code}");
    assert!(!page.contains("template") && !code.contains("template"));
    assert!(said.contains("mod my_rule;") && said.contains("rule!(\"my-rule\", my_rule),"), "{said}");
}

#[test]
fn what_is_no_id_or_exists_is_refused_and_nothing_is_written() {
    let root = tree("refused");
    for id in ["", "My-Rule", "my_rule", "-rule", "my--rule", "my-rule-", "2-rules", "loop", "../x", "régle"] {
        assert!(create(&root, id).is_err(), "{id}");
    }
    let error = create(&root, "register-spill").expect_err("the page exists");
    assert!(error.ends_with("register-spill.md exists already"), "{error}");
    assert!(create(&root, "template").expect_err("the module exists").ends_with("template.rs exists already"));
    let files = |folder: &str| fs::read_dir(root.join(folder)).expect("a folder").count();
    assert_eq!((files("rules"), files("src/rules")), (2, 1));
}
