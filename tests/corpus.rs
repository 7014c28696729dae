//! Replays what fuzzing found once, so that it stays mended.

#![allow(clippy::unwrap_used, reason = "a failed expectation is how a test reports")]

#[path = "../fuzz/targets.rs"]
mod targets;

use std::fs;
use std::path::Path;

fn replay(target: &str, run: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/regressions").join(target);
    let mut count = 0;
    for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        run(&fs::read(entry.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count > 0, "{} is empty", folder.display());
}

#[test]
fn logs_that_once_were_read_wrongly_give_the_same_facts_in_any_pieces() {
    replay("log", targets::log);
}

#[test]
fn names_that_once_were_trouble_are_shown_safely() {
    replay("names", targets::names);
}

#[test]
fn files_of_device_figures_that_once_were_trouble_are_read_or_refused() {
    replay("device", targets::device);
}

#[test]
fn patterns_that_once_were_trouble_are_a_filter_or_refused() {
    replay("filter", targets::filter);
}

#[test]
fn logs_that_once_were_trouble_are_linted_to_the_end() {
    replay("log", targets::lint);
    replay("lint", targets::lint);
}

#[test]
fn configurations_that_once_were_trouble_are_read_back_or_refused() {
    replay("config", targets::config);
}

#[test]
fn baselines_and_reports_that_are_damaged_anywhere_are_read_back_or_refused() {
    replay("baseline", targets::baseline);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/regressions/baseline");
    for name in ["accepted.json", "report.json"] {
        let whole = fs::read(folder.join(name)).unwrap();
        for at in (0..whole.len()).step_by(3) {
            for byte in *b"9\"]\xff" {
                let mut damaged = whole.clone();
                damaged[at] = byte;
                targets::baseline(&damaged);
            }
            targets::baseline(&whole[..at]);
        }
    }
}

#[test]
fn modules_that_once_were_trouble_are_read_or_refused() {
    replay("ptx", targets::ptx);
    replay("lanes", targets::ptx);
}

#[test]
fn modules_whose_branches_once_were_trouble_are_judged_to_the_end() {
    replay("lanes", targets::lanes);
}

#[test]
fn sources_that_once_were_trouble_are_read_to_their_end() {
    replay("cuda", targets::cuda);
}

#[test]
fn what_fuzzing_found_in_the_join_of_logs_and_sources_stays_fixed() {
    replay("join", targets::joined);
}

#[test]
fn a_log_and_a_source_that_are_torn_anywhere_are_joined_all_the_same() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/regressions/join/stencil");
    let whole = fs::read(path).unwrap();
    // A generator of its own, so that each run tears at the same places.
    let mut state = 7_u64;
    let mut next = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    };
    for _ in 0..300 {
        let mut torn = whole.clone();
        for _ in 0..1 + next(4) {
            let (from, length) = (next(torn.len()), next(60));
            let to = (from + length).min(torn.len());
            let piece = torn[from..to].to_vec();
            if next(2) == 0 {
                torn.drain(from..to);
            }
            let at = next(torn.len());
            torn.splice(at..at, piece);
        }
        targets::joined(&torn);
    }
}

#[test]
fn sources_of_every_kind_of_statement_become_ptx_that_is_judged() {
    replay("lower", targets::lower);
}
