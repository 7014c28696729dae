//! The `launch` command: what it says where something is wrong or not known, and laws that hold for every launch.

#![allow(clippy::unwrap_used, reason = "a failed command should stop the test")]

use clap::{Args, FromArgMatches};
use proptest::prelude::*;
use serde_json::{Value, json};
use warplint::command::launch::{LaunchArgs, run};
use warplint::gpu::cut::{Cut, warps_of};
use warplint::model::{BlockSize, Extent, GridSize};
use warplint::report::Style;

const UNICODE: Style = Style { unicode: true, ..Style::PLAIN };
const WIDE: Style = Style { width: 300, ..Style::PLAIN };

fn parse(arguments: &str) -> Result<LaunchArgs, clap::Error> {
    let command = LaunchArgs::augment_args(clap::Command::new("test").no_binary_name(true));
    LaunchArgs::from_arg_matches(&command.try_get_matches_from(arguments.split_whitespace())?)
}

fn show(arguments: &str, style: Style) -> String {
    let mut out = Vec::new();
    run(&parse(arguments).unwrap(), &style, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn entries(arguments: &str) -> Value {
    serde_json::from_str::<Value>(&show(&format!("{arguments} -f json"), Style::PLAIN)).unwrap()["launch"].clone()
}

fn entry(arguments: &str) -> Value {
    entries(arguments)[0].clone()
}

fn refused(arguments: &str) -> String {
    parse(&format!("--gpu a100 {arguments}")).unwrap_err().to_string()
}

const LARGEST: &str = "--grid 2147483647,65535,65535 --block 16,8,8";

#[test]
fn the_json_answer_has_every_key_that_was_promised() {
    let found = entry("--gpu a100 --grid 2,2 --block 16,16 --extent 28,28 --registers 32");
    for (key, value) in [
        ("gpu", json!("a100-sxm4-40gb")),
        ("grid", json!([2, 2, 1])),
        ("block", json!([16, 16, 1])),
        ("extent", json!([28, 28, null])),
        ("warps_per_block", json!(8)),
        ("idle_lanes_per_block", json!(0)),
        ("lanes_total", json!(1024)),
        ("lanes_working", json!(784)),
        ("blocks_per_sm", json!(8)),
        ("blocks_at_once", json!(864)),
        ("fills", json!(1)),
        ("bounds", Value::Null),
    ] {
        assert_eq!(found[key], value, "{key}");
    }
    assert!((found["tail_idle_share"].as_f64().unwrap() - 860.0 / 864.0).abs() < 1e-12);
    assert_eq!(
        found["map"][3],
        json!({"x": [1, 1], "y": [1, 1], "z": [0, 0], "blocks": 1, "lanes_working": [24, 24, 24, 24, 24, 24, 0, 0]})
    );
}

#[test]
fn an_architecture_has_no_number_of_sms_and_so_no_fills() {
    let found = entry("--gpu sm_90 --grid 4096 --block 256 --registers 32");
    assert_eq!(found["blocks_per_sm"], 8);
    for key in
        ["sms", "sms_without_block", "blocks_at_once", "fills", "full_fills", "waves", "tail_blocks", "tail_idle_share"]
    {
        assert_eq!(found[key], Value::Null, "{key}");
    }
    let text = show("--gpu sm_90 --grid 4096 --block 256 --registers 32", Style::PLAIN);
    assert!(text.contains("sm_90: 8 blocks an SM; fills unknown: name a product"), "{text}");
    assert!(text.lines().any(|line| line.contains("blocks at once") && line.contains("unknown")), "{text}");
}

#[test]
fn without_registers_what_an_sm_holds_is_a_bound_and_null() {
    let found = entry("--gpu a100 --grid 5000 --block 256");
    for key in [
        "registers",
        "blocks_per_sm",
        "active_warps",
        "occupancy",
        "limiters",
        "blocks_at_once",
        "fills",
        "tail_idle_share",
    ] {
        assert_eq!(found[key], Value::Null, "{key}");
    }
    // 864 at once with up to 32 registers a thread, 108 with 255.
    assert_eq!(
        found["bounds"],
        json!({"blocks_per_sm_at_most": 8, "blocks_at_once_at_most": 864, "fills_at_least": 6, "fills_at_most": 47, "up_to_registers": 32})
    );
    let text = show("--gpu a100 --grid 5000 --block 256", WIDE);
    assert!(text.contains("at most 864 blocks at once, 6 to 47 fills"), "{text}");
    assert!(text.contains("holds for up to 32 registers a thread; --registers tells how many"), "{text}");
    // One fill is one, whatever the registers.
    assert_eq!(entry("--gpu a100 --grid 100 --block 256")["fills"], 1);
}

#[test]
fn registers_that_cannot_matter_need_not_be_told() {
    // One block an SM by shared memory, and 128 threads may have all the registers that there are.
    let found = entry("--gpu a100 --grid 216 --block 128 --dynamic-shared 100K");
    assert_eq!((&found["blocks_per_sm"], &found["fills"], &found["bounds"]), (&json!(1), &json!(2), &Value::Null));
}

#[test]
fn the_tail_is_what_the_last_fill_leaves_idle() {
    let found = entry("--gpu h100-sxm5 --grid 140 --block 1024 --registers 64");
    assert_eq!(
        [&found["fills"], &found["full_fills"], &found["tail_blocks"], &found["blocks_at_once"]],
        [&json!(2), &json!(1), &json!(8), &json!(132)]
    );
    assert!((found["tail_idle_share"].as_f64().unwrap() - 124.0 / 132.0).abs() < 1e-12);
    assert!((found["waves"].as_f64().unwrap() - 140.0 / 132.0).abs() < 1e-12);
    assert!((found["tail_efficiency"].as_f64().unwrap() - 140.0 / 264.0).abs() < 1e-12);
    let text = show("--gpu h100-sxm5 --grid 140 --block 1024 --registers 64", WIDE);
    assert!(text.contains("132 blocks at once, 2 fills, the last 94 % idle"), "{text}");
    assert!(text.contains("help: 264 blocks take as many fills of h100-sxm5 as 140, and 132 take one fewer"), "{text}");
}

#[test]
fn elements_beyond_the_grid_are_the_first_thing_said() {
    let text = show("--gpu a100 --grid 1 --block 256 --extent 1000", WIDE);
    let first = "not covered: 744 of 1000 elements have no thread, x 256-999; the grid must be 4, unless each thread takes several";
    assert_eq!(text.lines().next(), Some(first));
    let found = entry("--gpu a100 --grid 2,1 --block 16,16 --extent 40,28");
    assert_eq!(found["elements_without_thread"], 40 * 28 - 32 * 16);
    assert_eq!(
        found["uncovered"],
        json!([{"axis": "x", "first": 32, "last": 39}, {"axis": "y", "first": 16, "last": 27}])
    );
    let text = show("--gpu a100 --grid 2,1 --block 16,16 --extent 40,28", WIDE);
    assert!(
        text.starts_with("not covered: 608 of 1120 elements have no thread, x 32-39 or y 16-27; the grid must be 3x2,"),
        "{text}"
    );
    let one = show("--gpu a100 --grid 1 --block 256 --extent 257", WIDE);
    assert!(one.starts_with("not covered: 1 of 257 elements has no thread, x 256;"), "{one}");
    let none = show("--gpu a100 --grid 1,65535 --block 1 --extent 1,65536", WIDE);
    assert!(none.contains("and no grid of such blocks has one for each"), "{none}");
}

#[test]
fn an_extent_may_be_nothing_or_less_than_a_block() {
    let nothing = entry("--gpu a100 --grid 3 --block 256 --extent 0");
    assert_eq!(
        [
            &nothing["lanes_working"],
            &nothing["warps_without_work"],
            &nothing["blocks_without_work"],
            &nothing["elements"]
        ],
        [&json!(0), &json!(24), &json!(3), &json!(0)]
    );
    assert!(show("--gpu a100 --grid 3 --block 256 --extent 0", WIDE).starts_with("none of 768 lanes has work"));
    let little = entry("--gpu a100 --grid 3 --block 256 --extent 5");
    assert_eq!(little["map"][0]["lanes_working"], json!([5, 0, 0, 0, 0, 0, 0, 0]));
    let text = show("--gpu a100 --grid 3 --block 256 --extent 5", WIDE);
    assert!(text.contains("help: a grid of 1 has a thread for each element, and no block without work"), "{text}");
}

#[test]
fn a_dimension_that_the_extent_does_not_tell_is_not_checked() {
    let found = entry("--gpu a100 --grid 2,2,5 --block 16,16 --extent 28,28");
    assert_eq!((&found["lanes_working"], &found["elements"]), (&json!(784 * 5), &json!(784 * 5)));
    assert!(show("--gpu a100 --grid 2,2,5 --block 16,16 --extent 28,28", WIDE).contains("28x28, all of z"));
    assert_eq!(entry("--gpu a100 --grid 2,2,5 --block 16,16 --extent 28,28,1")["lanes_working"], 784);
}

#[test]
fn the_largest_launch_is_counted_exactly_and_at_once() {
    let text = show(&format!("--gpu h100-sxm5 {LARGEST} --extent 100000,7 --registers 33"), WIDE);
    assert!(text.contains("366996000000 of 9444444733164249676800 lanes work"), "{text}");
    let found = entry(&format!("--gpu h100-sxm5 {LARGEST} --registers 32"));
    assert_eq!(found["blocks"], 9_223_090_559_730_712_575_u64);
    assert_eq!(found["fills"], 9_223_090_559_730_712_575_u64.div_ceil(264));
    let json = show(&format!("--gpu h100-sxm5 {LARGEST} -f json"), WIDE);
    assert!(json.contains("\"lanes_total\": 9444444733164249676800,"), "{json}");
}

#[test]
fn what_no_gpu_launches_is_refused_as_an_option() {
    assert!(refused("--grid 1 --block 1025").contains("1025 threads, and no GPU launches more than 1024"));
    assert!(refused("--grid 1 --block 1,1,65").contains("64 threads in z at most"));
    assert!(
        refused("--grid 2147483648 --block 1").contains("a grid has 2147483647 blocks in x at most, not 2147483648")
    );
    assert!(refused("--grid 1,65536 --block 1").contains("a grid has 65535 blocks in y at most, not 65536"));
    assert!(refused("--grid 1,1,65536 --block 1").contains("a grid has 65535 blocks in z at most, not 65536"));
    assert!(refused("--grid 0 --block 1").contains("a grid of 0 has no blocks"));
    assert!(refused("--grid 1 --block 1 --extent 1,2,3,4").contains("is no extent"));
    assert!(refused("--grid 1 --block 1 --registers 256").contains("256 is not in 1..=255"));
    assert!(refused("--block 1").contains("--grid"));
}

#[test]
fn a_launch_that_the_gpu_refuses_says_so_first_and_what_would_run() {
    let arguments = "--gpu rtx4090 --grid 100 --block 404 --registers 162";
    let text = show(arguments, WIDE);
    assert!(
        text.starts_with("cannot be launched on rtx-4090 (sm_89): 13 warps of 5376 registers, counted as 16"),
        "{text}"
    );
    assert!(text.contains("\nthe largest block that fits has 384 threads\n40400 of 41600 lanes would work"), "{text}");
    assert!(!text.contains("warps a scheduler") && !text.contains("help:"), "{text}");
    let found = entry(arguments);
    assert_eq!(
        [&found["blocks_per_sm"], &found["blocks_at_once"], &found["largest_block"]],
        [&json!(0), &json!(0), &json!(384)]
    );
    assert_eq!([&found["fills"], &found["tail_idle_share"], &found["bounds"]], [&Value::Null; 3]);
    // More shared memory than any block may have, registers told or not.
    let greedy = entry("--gpu t4 --grid 100 --block 128 --shared 70000");
    assert_eq!(greedy["refusals"], json!(["70000 B of shared memory, and a block may take 65536 B"]));
}

#[test]
fn clusters_bound_what_the_gpu_holds() {
    let found = entry("--gpu h100-sxm5 --grid 1024 --block 1024 --registers 64 --cluster 8");
    assert_eq!(
        [&found["blocks_per_sm"], &found["blocks_at_once"], &found["fills"]],
        [&json!(1), &Value::Null, &Value::Null]
    );
    // 132 SMs hold at most 16 clusters of 8.
    assert_eq!(found["bounds"]["blocks_at_once_at_most"], 128);
    assert_eq!(found["bounds"]["fills_at_least"], 8);
    let uneven = entry("--gpu h100-sxm5 --grid 100 --block 128 --registers 32 --cluster 8");
    assert_eq!(uneven["refusals"], json!(["no cluster of 8 blocks divides a grid of 100 evenly in each dimension"]));
    assert_eq!(entry("--gpu a100 --grid 8 --block 128 --registers 32 --cluster 2")["blocks_per_sm"], 0);
    assert_eq!(entry("--gpu a100 --grid 8 --block 128 --registers 32 --cluster 1")["fills"], 1);
}

#[test]
fn several_gpus_stand_in_the_order_asked_for_under_one_cut() {
    let arguments = "--gpu h100 --gpu 8.9 --grid 4096 --block 256 --registers 40";
    let names: Vec<Value> = entries(arguments).as_array().unwrap().iter().map(|entry| entry["gpu"].clone()).collect();
    assert_eq!(names, ["h100-sxm5", "sm_89"]);
    let text = show(arguments, Style::PLAIN);
    assert_eq!(text.matches("lanes that work").count(), 1, "{text}");
    assert_eq!(text.matches("warps a scheduler needs").count(), 1, "{text}");
    assert_eq!(text.matches("hides a load from").count(), 2, "{text}");
}

#[test]
fn a_map_of_many_kinds_of_warps_is_drawn_in_few_lines() {
    // Nine kinds of blocks in two dimensions and each warp unlike the others.
    for arguments in [
        "--gpu a100 --grid 5,5,5 --block 7,11,13 --extent 18,37,31",
        "--gpu a100 --grid 500,500,500 --block 31,33 --extent 1000,1000",
        "--gpu a100 --grid 90,90 --block 3,341 --extent 100,10000",
    ] {
        let text = show(arguments, Style::PLAIN);
        let drawn = text.lines().filter(|line| line.starts_with("    warp")).count();
        assert!((1..=24).contains(&drawn), "{text}");
    }
}

#[test]
fn every_line_fits_80_columns_and_plain_text_is_ascii() {
    for arguments in [
        "--gpu a100 --grid 2,2 --block 16,16 --extent 28,28",
        "--gpu h100-sxm5 --gpu sm_120 --grid 5,5,5 --block 7,11,13 --extent 18,37,31 --registers 40",
        "--gpu h100-sxm5 --grid 2147483647,65535,65535 --block 16,8,8 --extent 30000000000,70000,7 --registers 33",
        "--gpu rtx-pro-6000-blackwell-workstation --grid 100 --block 404 --registers 162",
        "--gpu sm_90 --grid 8000 --block 128 --cluster 8 --independent 100000",
        "--gpu t4 --grid 3 --block 10,10 --extent 25,9 --registers 24 --shared 3K --dynamic-shared 20K",
    ] {
        let plain = show(arguments, Style::PLAIN);
        assert!(plain.is_ascii(), "{plain}");
        for text in [plain, show(arguments, UNICODE)] {
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
            assert!(text.lines().all(|line| line.trim_end() == line), "{text}");
        }
    }
}

#[test]
fn a_report_goes_to_a_file_without_the_colours_of_the_terminal() {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("launch.txt");
    let arguments = format!("--gpu a100 --grid 4 --block 200 -o {}", path.display());
    let colored = Style { color: true, ..Style::PLAIN };
    assert_eq!(show(&arguments, colored), "");
    let written = std::fs::read_to_string(&path).unwrap();
    assert_eq!(written, show("--gpu a100 --grid 4 --block 200", Style::PLAIN));
    show(&format!("{arguments} --color always"), colored);
    assert!(std::fs::read_to_string(&path).unwrap().contains('\u{1b}'));
}

fn any_block() -> impl Strategy<Value = [u32; 3]> {
    (1..=40_u32, 1..=8_u32, 1..=3_u32).prop_map(|(x, y, z)| [x, y, z])
}

fn any_extent() -> impl Strategy<Value = [Option<u64>; 3]> {
    let along = || prop::option::weighted(0.8, prop_oneof![0..=12_u64, 0..=150_u64]);
    (along(), along(), along()).prop_map(|(x, y, z)| [x, y, z])
}

fn cut_of(grid: [u32; 3], block: [u32; 3], extent: [Option<u64>; 3]) -> Cut {
    let [x, y, z] = block;
    Cut::new(GridSize::new(grid).unwrap(), BlockSize::new(x, y, z).unwrap(), Extent::new(extent).ok())
}

/// The lanes that work in each warp of the block at `place`, thread by thread.
fn by_hand(place: [u32; 3], block: [u32; 3], extent: [Option<u64>; 3]) -> Vec<u32> {
    let [nx, ny, nz] = block;
    let mut lanes = vec![0; (nx * ny * nz).div_ceil(32) as usize];
    for flat in 0..nx * ny * nz {
        let thread = [flat % nx, flat / nx % ny, flat / (nx * ny)];
        assert_eq!(flat, thread[0] + nx * (thread[1] + ny * thread[2]));
        let at = |axis: usize| u64::from(place[axis]) * u64::from(block[axis]) + u64::from(thread[axis]);
        if (0..3).all(|axis| extent[axis].is_none_or(|elements| at(axis) < elements)) {
            lanes[(flat / 32) as usize] |= 1 << (flat % 32);
        }
    }
    lanes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_map_is_what_counting_thread_by_thread_gives(
        grid in (1..=5_u32, 1..=4_u32, 1..=3_u32), block in any_block(), extent in any_extent(),
    ) {
        let grid = [grid.0, grid.1, grid.2];
        let cut = cut_of(grid, block, extent);
        let (mut working, mut idle, mut split, mut empty) = (0_u128, 0_u128, 0_u128, 0_u64);
        let threads: Vec<u32> = warps_of(cut.block).iter().map(|warp| warp.lanes).collect();
        for z in 0..grid[2] {
            for y in 0..grid[1] {
                for x in 0..grid[0] {
                    let place = [x, y, z];
                    let here = |axis: usize, first: u32, last: u32| (first..=last).contains(&place[axis]);
                    let kinds = cut.kinds.iter().filter(|kind| {
                        kind.place.iter().enumerate().all(|(axis, segment)| here(axis, segment.first, segment.last))
                    });
                    let kinds: Vec<_> = kinds.collect();
                    prop_assert_eq!(kinds.len(), 1);
                    let expected = by_hand(place, block, extent);
                    prop_assert_eq!(&kinds[0].lanes, &expected);
                    let counts: Vec<u32> = expected.iter().map(|lanes| lanes.count_ones()).collect();
                    working += u128::from(counts.iter().sum::<u32>());
                    idle += counts.iter().filter(|count| **count == 0).count() as u128;
                    split += counts.iter().zip(&threads).filter(|(count, all)| **count > 0 && count < all).count() as u128;
                    empty += u64::from(counts.iter().all(|count| *count == 0));
                }
            }
        }
        prop_assert_eq!(cut.working_lanes(), working);
        prop_assert_eq!(cut.idle_warps(), idle);
        prop_assert_eq!(cut.split_warps(), split);
        prop_assert_eq!(cut.idle_blocks(), empty);
    }

    #[test]
    fn lanes_add_up_for_grids_of_any_size(
        grid in (1..=2_147_483_647_u32, 1..=65_535_u32, 1..=65_535_u32), block in any_block(), extent in any_extent(), far in any::<bool>(),
    ) {
        let scaled = extent.map(|elements| elements.map(|elements| if far { elements << 32 } else { elements }));
        let cut = cut_of([grid.0, grid.1, grid.2], block, scaled);
        prop_assert!(cut.kinds.len() <= 27);
        prop_assert_eq!(cut.kinds.iter().map(|kind| kind.blocks()).sum::<u64>(), cut.grid.blocks());
        prop_assert!(cut.working_lanes() <= cut.threads() && cut.threads() <= cut.lanes());
        prop_assert_eq!(cut.lanes() - cut.threads(), u128::from(cut.idle_lanes_per_block()) * u128::from(cut.grid.blocks()));
        prop_assert_eq!(cut.elements().unwrap(), cut.working_lanes() + cut.elements_without_thread());
        prop_assert_eq!(cut.beyond().is_empty(), cut.elements_without_thread() == 0);
        prop_assert!(cut.idle_warps() + cut.split_warps() <= cut.warps());
    }

    #[test]
    fn the_grid_that_fits_covers_all_and_wastes_no_block(grid in 1..=9_u32, block in any_block(), extent in any_extent()) {
        let cut = cut_of([grid, grid, grid], block, extent);
        if let Some(fitting) = cut.fitting_grid() {
            let fitted = cut_of(fitting.dimensions(), block, extent);
            prop_assert_eq!((fitted.elements_without_thread(), fitted.idle_blocks()), (0, 0));
        }
    }

    #[test]
    fn warps_cover_a_block_without_gaps(block in any_block()) {
        let [x, y, z] = block;
        let size = BlockSize::new(x, y, z).unwrap();
        let flat = |thread: [u32; 3]| thread[0] + x * (thread[1] + y * thread[2]);
        let mut next = 0;
        for warp in warps_of(size) {
            prop_assert_eq!(flat(warp.first), next);
            prop_assert_eq!(flat(warp.last) + 1 - next, warp.lanes);
            let rows: std::collections::BTreeSet<u32> = (next..=flat(warp.last)).map(|flat| flat / x).collect();
            prop_assert_eq!(warp.rows(size) as usize, rows.len());
            next += warp.lanes;
        }
        prop_assert_eq!(next, size.threads());
    }
}
