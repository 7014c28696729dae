//! The README is true: every transcript in it is what the program prints, and its rule table is what the pages say.
//!
//! `SNAPSHOTS=overwrite cargo test --test readme` writes them.
#![allow(clippy::unwrap_used, reason = "a broken README should stop the test where it is broken")]

#[path = "common/transcripts.rs"]
mod transcripts;

use std::path::Path;

#[test]
fn the_readme_shows_what_the_program_prints() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    std::env::set_current_dir(root).unwrap();
    let path = root.join("README.md");
    let readme = std::fs::read_to_string(&path).unwrap();
    let remade = transcripts::remade(&readme, root, "rules/");
    if std::env::var_os("SNAPSHOTS").is_some_and(|value| value == "overwrite") {
        std::fs::write(&path, &remade).unwrap();
    }
    snapbox::assert_data_eq!(remade, readme);
}
