//! Every transcript in `tests/cmd` is what the program prints: streams, words and exit status.
//!
//! `TRYCMD=overwrite cargo test --test cli` writes them.

#[test]
fn transcripts_are_what_the_program_prints() {
    trycmd::TestCases::new().case("tests/cmd/*.md").env("NO_COLOR", "1");
}
