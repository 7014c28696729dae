//! The `occupancy` and `gpus` commands, from their arguments to what they print.

#![allow(clippy::unwrap_used, reason = "a failed command should stop the test")]

use clap::{Args, FromArgMatches};
use serde_json::{Value, json};
use warplint::command::{gpus, occupancy};
use warplint::report::Style;

const UNICODE: Style = Style { unicode: true, ..Style::PLAIN };

fn parse<A: Args + FromArgMatches>(arguments: &str) -> Result<A, clap::Error> {
    let command = A::augment_args(clap::Command::new("test").no_binary_name(true));
    A::from_arg_matches(&command.try_get_matches_from(arguments.split(' ').filter(|word| !word.is_empty()))?)
}

fn calculate(arguments: &str, style: Style) -> String {
    let mut out = Vec::new();
    occupancy::run(&parse(arguments).unwrap(), &style, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn calculate_json(arguments: &str) -> Value {
    serde_json::from_str(&calculate(&format!("{arguments} -f json"), Style::PLAIN)).unwrap()
}

fn show(arguments: &str, style: Style) -> String {
    let mut out = Vec::new();
    gpus::run(&parse(arguments).unwrap(), &style, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn widest(text: &str) -> usize {
    text.lines().map(|line| line.chars().count()).max().unwrap()
}

#[test]
fn the_json_answer_has_every_key_of_the_interface() {
    let answer = calculate_json("--gpu a100 --block 16,16 --registers 64 --shared 8KiB");
    assert_eq!(answer["version"], 1);
    let entry = &answer["occupancy"][0];
    assert_eq!(entry["gpu"], "a100-sxm4-40gb");
    assert_eq!(entry["block"], json!([16, 16, 1]));
    assert_eq!(entry["limiters"], json!(["registers"]));
    assert_eq!(entry["limits"], json!({"warps": 8, "registers": 4, "shared_memory": 18, "blocks": 32}));
    for (key, value) in [
        ("blocks_per_sm", json!(4)),
        ("active_warps", json!(32)),
        ("max_warps", json!(64)),
        ("occupancy", json!(0.5)),
        ("warps_per_scheduler", json!(8.0)),
        ("allocated_registers_per_block", json!(16384)),
        ("allocated_shared_per_block", json!(9216)),
    ] {
        assert_eq!(entry[key], value, "{key}");
    }
    assert_eq!(entry["next"]["raises"]["registers"]["value"], 48);
    assert_eq!(entry["next"]["lowers"]["registers"]["change"], 1);
    assert_eq!(entry["next"]["raises"]["shared_memory"], Value::Null);
    assert_eq!(entry["sweep"].as_array().unwrap().len(), 64);
}

#[test]
fn barriers_are_a_limit_only_where_they_are_known_and_count() {
    let limits = |arguments: &str| calculate_json(arguments)["occupancy"][0]["limits"].clone();
    assert_eq!(limits("--gpu sm_90 --block 256 --registers 32").get("barriers"), None);
    assert_eq!(limits("--gpu sm_90 --block 256 --registers 32 --barriers 2")["barriers"], 32);
    assert_eq!(limits("--gpu sm_80 --block 256 --registers 32 --barriers 2").get("barriers"), None);
}

#[test]
fn several_gpus_stand_in_the_order_asked_for() {
    let answer = calculate_json("--gpu h100 --gpu 8.9 --block 64 --registers 40");
    let names: Vec<&Value> = answer["occupancy"].as_array().unwrap().iter().map(|entry| &entry["gpu"]).collect();
    assert_eq!(names, ["h100-sxm5", "sm_89"]);
    let text = calculate("--gpu h100 --gpu 8.9 --block 64 --registers 40", UNICODE);
    assert!(text.lines().any(|line| line.contains("h100-sxm5") && line.contains("sm_89")), "{text}");
}

#[test]
fn long_steps_stand_apart() {
    let plain = calculate("--gpu a100 --block 256 --registers 64 --shared 300K", Style::PLAIN);
    assert!(plain.contains("166912 (-140288): 12.5 %, 1 block  -"), "{plain}");
}

#[test]
fn every_line_fits_80_columns_and_plain_text_is_ascii() {
    for arguments in [
        "--gpu a100 --block 256 --registers 64 --shared 8K",
        "--gpu sm_107 --block 33 --registers 255 --dynamic-shared 200K --barriers 2 --cluster 16 --carveout 50",
        "--gpu rtx4090 --block 404 --registers 162",
        "--gpu a100 --gpu rtx-pro-6000-blackwell-workstation --gpu t4 --block 1024 --registers 255 --cluster 8",
    ] {
        let plain = calculate(arguments, Style::PLAIN);
        assert!(plain.is_ascii(), "{plain}");
        assert!(widest(&plain) <= 80, "{plain}");
        assert!(widest(&calculate(arguments, UNICODE)) <= 80, "{arguments}");
    }
}

#[test]
fn the_kernels_own_point_is_marked_in_both_sweeps() {
    let text = calculate("--gpu a100 --block 200 --registers 41", UNICODE);
    assert!(text.contains("▲ 200 threads, "), "{text}");
    assert!(text.contains("▲ 41 registers, "), "{text}");
    let narrow = calculate("--gpu a100 --block 200 --registers 41", Style { width: 60, ..Style::PLAIN });
    assert!(narrow.contains("^ 200 threads"), "{narrow}");
    assert!(narrow.lines().filter(|line| line.contains('|')).all(|line| line.len() <= 60), "{narrow}");
}

#[test]
fn the_plot_of_shared_memory_shows_the_kernels_own_point_and_its_cliffs() {
    let text = calculate("--gpu a100 --block 256 --registers 64 --shared 8K", UNICODE);
    let plot = "\
  50 % ┤█████████████▂▂▂▂
       ┤█████████████████▄▄▄▄▄▄▄▄▄▄
       ┤███████████████████████████▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆
     0 ┼───────────────────────────────────────────────────────
              24      48      72      96     120     144    163
          ▲ 8 KiB, 50 %
  50 % up to 40 KiB, 37.5 % up to 54912 B, 25 % up to 81 KiB, 12.5 % up to 163
    KiB
";
    assert!(text.ends_with(plot), "{text}");
    // A size between two cliffs of one column is shown as what it is.
    let plain = calculate("--gpu a100 --block 256 --registers 64 --dynamic-shared 54912", Style::PLAIN);
    assert!(plain.contains("^ 54912 B, 37.5 %"), "{plain}");
    let narrow = calculate("--gpu h100 --block 256 --registers 64 --shared 8K", Style { width: 60, ..Style::PLAIN });
    assert!(narrow.lines().filter(|line| line.contains('|')).all(|line| line.len() <= 60), "{narrow}");
}

#[test]
fn what_cannot_be_launched_is_no_low_bar() {
    let text = calculate("--gpu rtx4090 --block 404 --registers 162", UNICODE);
    assert!(text.contains("█ █ █ █ █ █ ▇ █ █ █ █ █ × × ×"), "{text}");
    assert_eq!(text.matches("× cannot be launched").count(), 2, "{text}");
    assert!(!text.contains("KiB of shared memory a block"), "no size of it helps: {text}");
    assert!(!calculate("--gpu a100 --block 256 --registers 32", UNICODE).contains("cannot be launched"));
}

#[test]
fn the_json_answer_has_the_cliffs_with_their_exact_places() {
    let entry = &calculate_json("--gpu a100 --block 256 --registers 64 --shared 8KiB")["occupancy"][0];
    let registers = entry["levels"]["registers"].as_array().unwrap();
    let told: Vec<u64> = registers.iter().map(|level| level["up_to"].as_u64().unwrap()).collect();
    assert_eq!(told, [32, 40, 48, 64, 80, 128, 255]);
    assert_eq!(
        entry["levels"]["shared_memory"][0],
        json!({"up_to": 40960, "blocks_per_sm": 4, "active_warps": 32, "occupancy": 0.5})
    );
}

#[test]
fn a_launch_that_cannot_run_says_why_and_what_would() {
    let text = calculate("--gpu rtx4090 --block 404 --registers 162", Style { width: 200, ..Style::PLAIN });
    assert!(text.contains("counted as 16 at launch, need 86016 registers, and a block may take 65536"), "{text}");
    assert!(text.contains("the largest block that fits has 384 threads"), "{text}");
    let entry = &calculate_json("--gpu rtx4090 --block 404 --registers 162")["occupancy"][0];
    assert_eq!((&entry["blocks_per_sm"], &entry["largest_block"]), (&json!(0), &json!(384)));
}

#[test]
fn clusters_are_bounded_by_the_device() {
    let text = |arguments: &str| calculate(arguments, Style { width: 200, ..Style::PLAIN });
    let one_block = "--block 1024 --registers 64";
    assert!(text(&format!("--gpu h100 --cluster 8 {one_block}")).contains("clusters of 8: at most 16 at once"));
    assert!(text(&format!("--gpu sm_90 --cluster 8 {one_block}")).contains("so name a product"));
    assert!(
        text(&format!("--gpu a100 --cluster 2 {one_block}")).contains("clusters start with compute capability 9.0")
    );
    let refused = text(&format!("--gpu rtx5090 --cluster 16 {one_block}"));
    assert!(refused.contains("cannot be launched: clusters of 16 blocks, and 8 is the most"), "{refused}");
    assert!(refused.contains("the largest cluster has 8 blocks") && !refused.contains('%'), "{refused}");
    let entry = &calculate_json(&format!("--gpu a100 --cluster 2 {one_block}"))["occupancy"][0];
    assert_eq!((&entry["blocks_per_sm"], &entry["occupancy"]), (&json!(0), &json!(0.0)));
    assert_eq!(entry["refusals"], json!(["clusters start with compute capability 9.0"]));
    assert!(text(&format!("--gpu a100 --cluster 1 {one_block}")).contains("50 % occupancy"));
}

#[test]
fn what_no_gpu_launches_is_refused_as_an_option() {
    let refused = |arguments: &str| {
        let text = format!("--gpu sm_90 {arguments}");
        parse::<occupancy::OccupancyArgs>(&text).expect_err("a bad option").to_string()
    };
    assert!(refused("--block 256 --registers 256").contains("256 is not in 1..=255"));
    assert!(refused("--block 256 --registers 0").contains("0 is not in 1..=255"));
    assert!(refused("--block 256 --registers 32 --barriers 17").contains("17 is not in 0..=16"));
    assert!(refused("--block 256 --registers 32 --cluster 17").contains("17 is not in 1..=16"));
    assert!(refused("--block 256 --registers 32 --dynamic-shared 18446744073709551615").contains("4294967295 bytes"));
    assert!(refused("--registers 32 --block 4294967296").contains("1024 threads at most"));
}

#[test]
fn figures_that_nothing_backs_are_said_to_be_unverified() {
    let text = calculate("--gpu sm_107 --block 256 --registers 32", Style { width: 300, ..Style::PLAIN });
    assert!(text.contains("note: unverified for 10.7: warps an SM, threads an SM"), "{text}");
    assert!(show("sm_107", UNICODE).lines().any(|line| line.contains("warps an SM") && line.contains("unverified")));
}

#[test]
fn arguments_that_make_no_sense_are_refused_with_the_reason() {
    let refused = |arguments: &str| parse::<occupancy::OccupancyArgs>(arguments).unwrap_err().to_string();
    assert!(refused("--gpu a100 --block 33,32 --registers 32").contains("1056 threads"));
    assert!(refused("--gpu a100 --block 0 --registers 32").contains("has no threads"));
    assert!(refused("--gpu a100 --block 32 --registers 32 --shared lots").contains("`lots` is no size"));
    assert!(refused("--gpu a100 --block 32 --registers 32 --carveout 101").contains("101"));
    assert!(refused("--block 32 --registers 32").contains("--gpu"));
}

#[test]
fn the_list_of_gpus_holds_every_product_in_80_columns() {
    let text = show("", UNICODE);
    assert!(widest(&text) <= 80, "{text}");
    assert!(show("", Style::PLAIN).is_ascii());
    for product in warplint::gpu::products() {
        assert!(text.contains(&format!("  {} ", product.id)), "{}", product.id);
    }
}

#[test]
fn the_list_as_json_holds_compute_capabilities_and_products() {
    let list: Value = serde_json::from_str(&show("-f json", UNICODE)).unwrap();
    assert_eq!(list["gpus"].as_array().unwrap().len(), 26 + 131);
}

#[test]
fn one_gpu_as_json_has_every_figure_with_its_sources_and_null_for_the_unknown() {
    let text = show("b300 --format json", UNICODE);
    let gpu = &serde_json::from_str::<Value>(&text).unwrap()["gpus"][0];
    assert_eq!((&gpu["name"], &gpu["compute_capability"]), (&json!("b300"), &json!("10.3")));
    assert_eq!(gpu["device"]["sms"]["value"], Value::Null);
    assert_eq!(
        gpu["device"]["boost_mhz"],
        json!({"value": 2032, "unit": "MHz", "sources": ["D"], "unverified": false})
    );
    let warps = &gpu["limits"]["max_warps_per_sm"];
    assert_eq!((&warps["value"], &warps["unit"]), (&json!(64), &json!("warps")));
    assert_eq!(gpu["limits"]["max_cluster_non_portable"]["unverified"], true);
    let figures = gpu["limits"].as_object().unwrap();
    let mut sources = figures.values().flat_map(|figure| figure["sources"].as_array().unwrap());
    assert!(sources.all(|source| gpu["sources"][source.as_str().unwrap()].is_string()));
}
