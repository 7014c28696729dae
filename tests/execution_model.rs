//! The worked figures of the execution model that warplint applies, asked of `launch`, `occupancy` and `gpus`. Each test quotes
//! the sentence that its figures stand in.

#![allow(clippy::unwrap_used, reason = "a failed command should stop the test")]

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use warplint::outcome::Outcome;
use warplint::run::{Streams, run};

/// What the program prints for these arguments.
fn printed(arguments: &str) -> String {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let outcome = run(
        std::iter::once("warplint").chain(arguments.split_whitespace()).map(Into::into).collect(),
        &mut Streams {
            stdin: &mut std::io::empty(),
            stdin_is_terminal: true,
            stderr_is_terminal: false,
            stdout: &mut stdout,
            stderr: &mut stderr,
            terminal: None,
        },
    );
    assert_eq!(String::from_utf8(stderr).unwrap(), "", "{arguments}");
    assert_eq!(outcome, Outcome::Clean, "{arguments}");
    String::from_utf8(stdout).unwrap()
}

/// The first entry of a command's JSON.
fn answer(command: &str, arguments: &str) -> Value {
    let report: Value = serde_json::from_str(&printed(&format!("{command} {arguments} -f json"))).unwrap();
    assert_eq!(report["version"], 1);
    let noun = if command.starts_with("gpus") { "gpus" } else { command };
    report[noun][0].clone()
}

fn launch(arguments: &str) -> Value {
    answer("launch", arguments)
}

fn occupancy(arguments: &str) -> Value {
    answer("occupancy", arguments)
}

/// A file as a person's small program prints it: `name value` lines of `cudaDeviceProp`.
fn device_file(name: &str, sms: u32) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{sms}.txt"));
    let text = format!(
        "device name  Example\nSMs  {sms}\nwarp size  32\nmax threads per SM  2048\nmax threads per block  1024\n\
         max blocks per SM  32\nregisters per SM  65536\n"
    );
    std::fs::write(&path, text).unwrap();
    path
}

fn keys(value: &Value, keys: &[&str]) -> Value {
    keys.iter().map(|key| value[*key].clone()).collect()
}

/// The lanes that work, warp by warp, in the block at `x`, `y`.
fn lanes_of(launch: &Value, x: u64, y: u64) -> Value {
    let within = |range: &Value, place: u64| (range[0].as_u64().unwrap()..=range[1].as_u64().unwrap()).contains(&place);
    let kinds = launch["map"].as_array().unwrap();
    let found: Vec<&Value> = kinds.iter().filter(|kind| within(&kind["x"], x) && within(&kind["y"], y)).collect();
    assert_eq!(found.len(), 1, "one kind for each block");
    found[0]["lanes_working"].clone()
}

const CUT: [&str; 2] = ["warps_per_block", "idle_lanes_per_block"];

#[test]
fn threads_are_flattened_x_first_and_cut_every_32() {
    // "Threads are flattened x first, flat = x + nx·(y + ny·z), and cut every 32. So a 16×16 block's warp is two rows."
    let square = launch("--gpu sm_80 --grid 1 --block 16,16");
    let warps = square["warps"].as_array().unwrap();
    assert_eq!(warps.len(), 8);
    for (number, warp) in warps.iter().enumerate() {
        assert_eq!(keys(warp, &["lanes", "rows"]), json!([32, 2]));
        assert_eq!(keys(warp, &["first", "last"]), json!([[0, 2 * number, 0], [15, 2 * number + 1, 0]]));
    }
    let text = printed("launch --gpu sm_80 --grid 1 --block 16,16");
    assert!(text.contains("a warp is 2 rows of 16 threads: warp 0 is y 0-1, 1 is y 2-3"), "{text}");
}

#[test]
fn a_block_that_is_no_multiple_of_32_idles_lanes_of_its_last_warp() {
    // "33 threads: 2 warps, 31 idle lanes of 64. 40: 2 warps, 24 idle. 200: 7 warps, 24 idle of 224."
    for (threads, warps, idle, lanes) in [(33, 2, 31, 64), (40, 2, 24, 64), (200, 7, 24, 224)] {
        let cut = launch(&format!("--gpu sm_80 --grid 1 --block {threads}"));
        assert_eq!(keys(&cut, &CUT), json!([warps, idle]), "{threads}");
        assert_eq!(keys(&cut, &["lanes_total", "lanes_working"]), json!([lanes, threads]));
    }
    let text = printed("launch --gpu sm_80 --grid 1 --block 200");
    assert!(text.starts_with("200 of 224 lanes work, 24 idle (11 %): 1 block of 7 warps\n"), "{text}");
}

#[test]
fn the_edge_of_a_picture_idles_lanes_in_the_warps_that_it_runs_through() {
    // "28×28 image, 16×16 blocks, grid 2×2: 1,024 lanes for 784 pixels, 240 idle. Right-hand blocks: 24 of 32 lanes work in
    // every warp with work. Lower blocks: the last two of eight warps have no work at all; the other six have 32 of 32 lanes
    // lower left, 24 of 32 lower right."
    let arguments = "--gpu a100 --grid 2,2 --block 16,16 --extent 28,28";
    let picture = launch(arguments);
    assert_eq!(keys(&picture, &["lanes_total", "lanes_working", "lanes_idle"]), json!([1024, 784, 240]));
    assert_eq!(lanes_of(&picture, 0, 0), json!([32, 32, 32, 32, 32, 32, 32, 32]));
    assert_eq!(lanes_of(&picture, 1, 0), json!([24, 24, 24, 24, 24, 24, 24, 24]));
    assert_eq!(lanes_of(&picture, 0, 1), json!([32, 32, 32, 32, 32, 32, 0, 0]));
    assert_eq!(lanes_of(&picture, 1, 1), json!([24, 24, 24, 24, 24, 24, 0, 0]));
    assert_eq!(keys(&picture, &["warps_without_work", "warps_at_edge"]), json!([4, 14]));
    let text = printed(&format!("launch {arguments}"));
    let map = "\
                 x 0                  x 1
  y 0
    warps 0-7    32 ################  24 ######..######..
  y 1
    warps 0-5    32 ################  24 ######..######..
    warps 6-7     0 ................   0 ................
";
    assert!(text.contains(map), "{text}");
}

#[test]
fn an_a100_is_limited_by_registers_to_half() {
    // "A100, 256 threads, 64 registers, 8 KiB shared: registers 4 blocks, threads 8, shared 20 by the plain formula (18 with the
    // 1 KiB that is really reserved per block: say so), so 4 blocks, 32 warps, 50 %, register-limited. With 32 registers: 8
    // blocks, 100 %."
    let half = occupancy("--gpu a100 --block 256 --registers 64 --shared 8K");
    assert_eq!(half["limits"], json!({"warps": 8, "registers": 4, "shared_memory": 18, "blocks": 32}));
    assert_eq!(keys(&half, &["blocks_per_sm", "active_warps", "max_warps", "occupancy"]), json!([4, 32, 64, 0.5]));
    assert_eq!(half["limiters"], json!(["registers"]));
    let text = printed("occupancy --gpu a100 --block 256 --registers 64 --shared 8K");
    assert!(text.contains("9216 B of 164 KiB, 1024 B of it reserved"), "{text}");
    let full = occupancy("--gpu a100 --block 256 --registers 32 --shared 8K");
    assert_eq!(keys(&full, &["blocks_per_sm", "occupancy"]), json!([8, 1.0]));
    let held = launch("--gpu a100 --grid 1000 --block 256 --registers 64 --shared 8K");
    assert_eq!(
        keys(&held, &["blocks_per_sm", "active_warps", "occupancy", "limiters", "warps_per_scheduler"]),
        json!([4, 32, 0.5, ["registers"], 8.0])
    );
}

#[test]
fn twelve_registers_are_allocated_as_sixteen() {
    // "12 registers are allocated as 16 (groups of 8 a thread): 16 blocks by registers at 256 threads, 8 by threads."
    // "12 registers (16 allocated), no spills"
    let small = occupancy("--gpu a100 --block 256 --registers 12");
    assert_eq!(small["allocated_registers_per_block"], 16 * 256);
    assert_eq!(keys(&small["limits"], &["registers", "warps"]), json!([16, 8]));
}

#[test]
fn one_more_register_can_cost_a_quarter_of_the_warps() {
    // "One more variable in a busy kernel can cross a step and cost a quarter of the warps at once (the cliff)."
    let warps = |registers: u32| occupancy(&format!("--gpu a100 --block 256 --registers {registers}"));
    assert_eq!((&warps(32)["active_warps"], &warps(33)["active_warps"]), (&json!(64), &json!(48)));
    assert_eq!(warps(32)["next"]["lowers"]["registers"]["change"], 1);
    let levels = &warps(32)["levels"]["registers"];
    assert_eq!(keys(&levels[0], &["up_to", "occupancy"]), json!([32, 1.0]));
    assert_eq!(keys(&levels[1], &["up_to", "occupancy"]), json!([40, 0.75]));
    let text = printed("occupancy --gpu a100 --block 256 --registers 32");
    assert!(text.contains("100 % up to 32, 75 % up to 40"), "{text}");
}

#[test]
fn sixty_four_registers_leave_two_thirds_of_an_ada_sm() {
    // "8.9: 64 registers a thread cap at 1,024 threads = 32 of 48 warps, 67 %."
    let ada = occupancy("--gpu 8.9 --block 256 --registers 64");
    assert_eq!(keys(&ada, &["active_warps", "max_warps"]), json!([32, 48]));
    assert_eq!(ada["blocks_per_sm"].as_u64().unwrap() * 256, 1024);
    assert!(printed("occupancy --gpu 8.9 --block 256 --registers 64").contains("67 % occupancy"));
    let sweep = ada["sweep"].as_array().unwrap().iter().filter(|point| point["over"] == "block");
    assert_eq!(sweep.map(|point| point["active_warps"].as_u64().unwrap()).max(), Some(32));
}

#[test]
fn the_example_gpu_takes_sixteen_fills_and_a_larger_one_four() {
    // "The example GPU: 32 SMs, warp 32, 2,048 threads and 32 blocks an SM, 1,024 threads a block, 65,536 registers: 256-thread
    // blocks of a 12-register kernel: 8 an SM, 256 at once; a grid of 4,096 takes 16 fills. With 128 such SMs: 1,024 at once, 4
    // fills." "`--gpu FILE` reads that."
    for (sms, at_once, fills) in [(32, 256, 16), (128, 1024, 4)] {
        let file = device_file("example", sms);
        let arguments = format!("--gpu {} --grid 4096 --block 256 --registers 12", file.display());
        let found = launch(&arguments);
        assert_eq!(
            keys(&found, &["sms", "blocks_per_sm", "blocks_at_once", "fills", "tail_idle_share"]),
            json!([sms, 8, at_once, fills, 0.0])
        );
        let text = printed(&format!("launch {arguments}"));
        assert!(text.contains(&format!("{at_once} blocks at once, {fills} fills, full to the last")), "{text}");
    }
}

#[test]
fn a_device_file_of_an_a100_is_an_a100() {
    // "A person describes a GPU with a small program that prints `cudaDeviceProp` as `name value` lines (device name, SMs, warp
    // size, max threads per SM, max threads per block, max blocks per SM, registers per SM, shared memory per SM N KB, shared mem
    // per block N KB, L2 cache, device memory)".
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("a100.txt");
    let text = "device name          NVIDIA A100-SXM4-40GB\nSMs                  108\nwarp size            32\n\
                max threads per SM   2048\nmax threads per block 1024\nmax blocks per SM    32\nregisters per SM     65536\n\
                shared memory per SM 164 KB\nshared mem per block 48 KB\nL2 cache             40 MB\ndevice memory        40 GB\n";
    std::fs::write(&path, text).unwrap();
    let of = |gpu: &str| launch(&format!("--gpu {gpu} --grid 5000 --block 192 --registers 40 --shared 12K"));
    let (from_file, product) = (of(path.to_str().unwrap()), of("a100"));
    let same =
        ["sms", "blocks_per_sm", "blocks_at_once", "fills", "tail_idle_share", "warps_per_scheduler", "limiters"];
    assert_eq!(keys(&from_file, &same), keys(&product, &same));
}

#[test]
fn the_data_centre_gpus_have_their_published_figures() {
    // "A100 / H100 SXM5: SMs 108/132, FP32 lanes an SM 64/128, tensor cores 4 (3rd gen)/4 (4th gen), schedulers 4, registers
    // 65,536, 255 a thread, 2,048 threads, 32 blocks, 1,024 threads a block, shared 164/228 KB, boost about 1.41/1.98 GHz."
    for (name, sms, lanes, shared, boost) in [("a100", 108, 64, 164, 1410.0), ("h100-sxm5", 132, 128, 228, 1980.0)] {
        let gpu = answer(&format!("gpus {name}"), "");
        let limit = |key: &str| gpu["limits"][key]["value"].clone();
        assert_eq!(gpu["device"]["sms"]["value"], sms);
        assert_eq!(gpu["device"]["boost_mhz"]["value"].as_f64(), Some(boost));
        assert_eq!([limit("fp32_lanes_per_sm"), limit("tensor_cores_per_sm"), limit("sub_partitions")], [lanes, 4, 4]);
        assert_eq!([limit("registers_per_sm"), limit("max_registers_per_thread")], [65_536, 255]);
        assert_eq!([limit("max_threads_per_sm"), limit("max_blocks_per_sm")], [2048, 32]);
        assert_eq!([limit("max_threads_per_block"), limit("shared_per_sm")], [1024, shared * 1024]);
    }
    assert_eq!(launch("--gpu a100 --grid 1 --block 32")["sms"], 108);
    assert_eq!(launch("--gpu h100-sxm5 --grid 1 --block 32")["sms"], 132);
}

#[test]
fn more_warps_or_more_independent_instructions_hide_a_load() {
    // "A global load waits about 400–800 cycles, arithmetic 4–20; the SM switches to another ready warp at no cost […]. Enough to
    // hide the latency is enough".
    let found = launch("--gpu a100 --grid 10000 --block 256 --registers 64");
    let [load, arithmetic] = [0, 1].map(|index| found["latency"][index].clone());
    assert_eq!(keys(&load, &["of", "cycles"]), json!(["global load", [400, 800]]));
    assert_eq!(keys(&arithmetic, &["of", "cycles"]), json!(["arithmetic", [4, 20]]));
    let need = |entry: &Value, independent: u32| {
        let needs = entry["warps_per_scheduler"].as_array().unwrap();
        let need = needs.iter().find(|need| need["independent_instructions"] == independent);
        need.unwrap()["warps"].clone()
    };
    // Latency over the independent instructions between two waits, at an instruction a cycle.
    assert_eq!([need(&load, 1), need(&load, 16)], [json!([400, 800]), json!([25, 50])]);
    assert_eq!([need(&arithmetic, 1), need(&arithmetic, 4)], [json!([4, 20]), json!([1, 5])]);
    // 8 warps a scheduler: 400 / 8 and 800 / 8.
    assert_eq!(load["independent_instructions"], json!([50, 100]));
    let asked = launch("--gpu a100 --grid 10000 --block 256 --registers 64 --independent 10");
    assert_eq!(
        asked["latency"][0]["warps_per_scheduler"],
        json!([{"independent_instructions": 10, "warps": [40, 80]}])
    );
    let verdict = |independent: u32| {
        printed(&format!("launch --gpu a100 --grid 10000 --block 256 --registers 64 --independent {independent}"))
    };
    assert!(
        verdict(10).contains("a full SM of 8 warps a scheduler hides no load: that takes 50 independent instructions")
    );
    assert!(verdict(60).contains("a full SM of 8 warps a scheduler hides the shorter of these loads only"));
    assert!(verdict(100).contains("a full SM of 8 warps a scheduler hides a load\n"));
}

#[test]
fn a_tiny_grid_cannot_fill_the_sms_whatever_the_occupancy() {
    // "A tiny grid (decode at batch 1) cannot fill the SMs whatever the occupancy."
    let tiny = launch("--gpu h100-sxm5 --grid 40 --block 256 --registers 32");
    assert_eq!(keys(&tiny, &["occupancy", "sms", "sms_without_block"]), json!([1.0, 132, 92]));
    let text = printed("launch --gpu h100-sxm5 --grid 40 --block 256 --registers 32");
    assert!(text.contains("40 of the 1056 blocks that run at once, and 92 of 132 SMs have none"), "{text}");
}

#[test]
fn a_bounds_check_splits_at_most_the_last_warp() {
    // "A bounds check `i < n` splits at most the last warp."
    for elements in [0, 1, 31, 32, 1000, 1024, 999_999, 1_000_000, 1_048_576] {
        let found = launch(&format!("--gpu sm_80 --grid 4096 --block 256 --extent {elements}"));
        let split = u32::from(elements % 32 != 0);
        assert_eq!(found["warps_at_edge"], split, "{elements}");
        assert_eq!(found["lanes_working"], elements);
    }
}

#[test]
fn over_256_threads_there_are_eight_warps() {
    // "Over 256 threads (8 warps)".
    assert_eq!(keys(&launch("--gpu sm_80 --grid 1 --block 256"), &CUT), json!([8, 0]));
}
