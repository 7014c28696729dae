//! Every transcript in `tests/cmd` is what the program prints: streams, words and exit status.
//!
//! `TRYCMD=overwrite cargo test --test cli` writes them.

#[test]
fn transcripts_are_what_the_program_prints() {
    let cases = trycmd::TestCases::new();
    cases.case("tests/cmd/*.md").env("NO_COLOR", "1");
    if cfg!(unix) {
        cases.case("tests/cmd/unix/*.md");
    }
}
