//! Occupancy beyond the golden tables: worked examples, published tricky cases, and laws that hold everywhere.

#![allow(clippy::unwrap_used, reason = "a failed lookup should stop the test")]

use proptest::prelude::*;
use warplint::gpu::{
    Change, Gpu, Launch, Limiter, Occupancy, SharedLimit, Step, Target, available_dynamic_shared, block_sweep,
    largest_block, level_at, most_shared, next, occupancy, refusals, register_levels, register_sweep, shared_levels,
    suggest_block_size,
};
use warplint::model::{Arch, Bytes};

fn target(name: &str) -> &'static Target {
    Target::of(name.parse().unwrap()).unwrap()
}

fn compute(name: &str, launch: Launch) -> Occupancy {
    occupancy(target(name), &launch).unwrap()
}

fn blocks(name: &str, registers: u32, threads: u32) -> u32 {
    compute(name, Launch::new(registers, threads)).blocks_per_sm
}

fn shared(dynamic: u32) -> Launch {
    Launch::new(32, 128).with_shared(Bytes::ZERO, Bytes(dynamic))
}

#[test]
fn the_worked_example_of_an_a100_is_limited_by_registers_to_half() {
    let a100 = Gpu::resolve("a100").unwrap();
    let launch = Launch::new(64, 256).with_shared(Bytes(8192), Bytes::ZERO);
    let answer = occupancy(&a100.target, &launch).unwrap();
    assert_eq!(answer.limits.registers, Some(4));
    assert_eq!(answer.limits.warps, Some(8));
    // 20 by the plain formula; 1 KiB is reserved of each block.
    assert_eq!(answer.limits.shared_memory, Some(18));
    assert_eq!((answer.blocks_per_sm, answer.active_warps, answer.fraction()), (4, 32, 0.5));
    assert_eq!(answer.limiters.iter().collect::<Vec<Limiter>>(), [Limiter::Registers]);
    let leaner = occupancy(&a100.target, &launch.with_registers(32)).unwrap();
    assert_eq!((leaner.blocks_per_sm, leaner.fraction()), (8, 1.0));
}

#[test]
fn twelve_registers_are_given_as_sixteen() {
    let answer = compute("sm_80", Launch::new(12, 256));
    assert_eq!(answer.allocated_registers_per_block, 16 * 256);
    assert_eq!((answer.limits.registers, answer.limits.warps), (Some(16), Some(8)));
}

#[test]
fn sixty_four_registers_leave_two_thirds_of_an_ada_sm() {
    let best = block_sweep(target("sm_89"), &Launch::new(64, 32)).unwrap();
    let most = best.iter().map(|point| point.occupancy.active_warps).max();
    assert_eq!(most, Some(32));
    assert_eq!(compute("sm_89", Launch::new(64, 256)).active_warps * 32, 1024);
}

#[test]
fn devices_have_the_figures_of_the_worked_examples() {
    for (name, sms, lanes, shared) in [("a100", 108, 64, 164), ("h100-sxm5", 132, 128, 228)] {
        let gpu = Gpu::resolve(name).unwrap();
        assert_eq!(gpu.device.sm_count, Some(sms));
        let target = &gpu.target;
        assert_eq!((target.fp32_lanes_per_sm, target.tensor_cores_per_sm, target.sub_partitions), (lanes, 4, 4));
        assert_eq!((target.registers_per_sm, target.max_registers_per_thread), (65_536, 255));
        assert_eq!((target.max_threads_per_sm, target.max_blocks_per_sm), (2048, 32));
        assert_eq!((target.max_threads_per_block, target.shared_per_sm), (1024, shared * 1024));
    }
}

#[test]
fn where_the_plain_register_formula_goes_wrong_the_answer_is_right() {
    for (name, registers, threads, expected) in [
        ("sm_80", 92, 224, 2),
        ("sm_80", 36, 96, 16),
        ("sm_75", 255, 33, 4),
        ("sm_80", 224, 288, 0),
        ("sm_80", 255, 257, 0),
        ("sm_89", 162, 404, 0),
        ("sm_90", 168, 384, 1),
        ("sm_90", 169, 384, 0),
        ("sm_53", 33, 1024, 0),
        ("sm_37", 64, 256, 8),
        ("sm_61", 256, 32, 0),
        ("sm_70", 256, 32, 8),
        ("sm_86", 32, 1024, 1),
        ("sm_60", 40, 160, 10),
        ("sm_61", 40, 160, 9),
        ("sm_60", 88, 672, 0),
    ] {
        assert_eq!(blocks(name, registers, threads), expected, "{name} {registers} {threads}");
    }
    assert_eq!(compute("sm_80", Launch::new(40, 32)).limits.registers, Some(48));
}

#[test]
fn the_plain_register_formula_is_wrong_as_often_as_was_counted() {
    let target = target("sm_80");
    let (mut wrong, mut refused) = (0, 0);
    for registers in 1..=255 {
        for threads in (32..=1024).step_by(32) {
            let answer = occupancy(target, &Launch::new(registers, threads)).unwrap();
            let plain = 65_536 / (registers * threads);
            wrong += u32::from(answer.limits.registers != Some(plain));
            refused += u32::from(plain > 0 && answer.blocks_per_sm == 0);
        }
    }
    assert_eq!((wrong, refused), (1889, 303));
}

#[test]
fn published_questions_about_registers_get_the_right_answer() {
    for threads in [404, 416, 512] {
        assert_eq!(blocks("sm_89", 162, threads), 0, "{threads}");
    }
    assert_eq!(blocks("sm_89", 162, 384), 1);
    assert_eq!([256, 384, 512].map(|threads| blocks("sm_103", 156, threads)), [1, 1, 0]);
    let hopper = compute("sm_90", Launch::new(168, 384));
    assert_eq!((hopper.blocks_per_sm, hopper.allocated_registers_per_block), (1, 64_512));
    assert_eq!((blocks("sm_50", 85, 128), blocks("sm_52", 85, 128)), (5, 5));
}

#[test]
fn published_questions_about_shared_memory_get_the_right_answer() {
    let with = |name, dynamic| compute(name, shared(dynamic)).blocks_per_sm;
    assert_eq!(with("sm_120", 33_792), 2);
    assert_eq!((with("sm_120", 50_176), with("sm_86", 50_177), with("sm_86", 51_200)), (2, 1, 1));
    let h200 = |fixed| compute("sm_90", shared(232_448).with_shared(Bytes(fixed), Bytes(232_448))).blocks_per_sm;
    assert_eq!((h200(0), h200(16)), (1, 0));
    assert_eq!(with("sm_110", 37_888), 6);
    let standard = Launch { shared_limit: SharedLimit::Standard, ..Launch::new(32, 128) };
    let launch = standard.with_shared(Bytes(256), Bytes::ZERO);
    assert_eq!(available_dynamic_shared(target("sm_120"), &launch, 1), Ok(Bytes(48_896)));
    // A listing that already holds the reservation counts it twice.
    let reserved = |bytes| compute("sm_90", Launch::new(32, 128).with_shared(Bytes(bytes), Bytes::ZERO)).blocks_per_sm;
    assert_eq!((reserved(13_312), reserved(14_336)), (16, 15));
}

#[test]
fn published_questions_about_blocks_and_barriers_get_the_right_answer() {
    assert_eq!(blocks("sm_120", 32, 32), 24);
    for (threads, ampere, ada) in [(32, 16, 24), (64, 32, 48)] {
        assert_eq!(compute("sm_86", Launch::new(32, threads)).active_warps, ampere);
        assert_eq!(compute("sm_89", Launch::new(32, threads)).active_warps, ada);
    }
    let two_barriers = Launch { barriers: 2, ..Launch::new(32, 32) };
    assert_eq!(compute("sm_103", two_barriers).blocks_per_sm, 16);
    let consumer = compute("sm_120", two_barriers);
    assert_eq!((consumer.blocks_per_sm, consumer.limiters.bits()), (12, 24));
    assert_eq!(target("sm_120").max_cluster_portable, 8);
}

#[test]
fn the_largest_l1_cache_still_holds_eight_blocks() {
    let small = Launch { carveout: Some(0), ..Launch::new(32, 64) };
    assert_eq!((compute("sm_80", small).blocks_per_sm, compute("sm_80", small).active_warps), (8, 16));
    assert_eq!(compute("sm_70", small).blocks_per_sm, 32);
    // What there is of it is what the carveout leaves, or what one block needs.
    assert_eq!(compute("sm_80", small).shared_per_sm, Bytes(8 * 1024));
    assert_eq!(compute("sm_80", Launch::new(32, 64)).shared_per_sm, Bytes(164 * 1024));
    let half = Launch { carveout: Some(50), ..Launch::new(32, 256).with_shared(Bytes(40_000), Bytes::ZERO) };
    assert_eq!((compute("sm_80", half).shared_per_sm, compute("sm_80", half).blocks_per_sm), (Bytes(100 * 1024), 2));
}

#[test]
fn static_memory_above_48_kib_opts_in_by_itself_and_not_where_the_host_does_not() {
    let launch = Launch::new(32, 128).with_shared(Bytes(100 * 1024), Bytes::ZERO);
    assert_eq!(compute("sm_90a", launch).blocks_per_sm, 2);
    assert_eq!(compute("sm_90a", Launch { shared_limit: SharedLimit::Standard, ..launch }).blocks_per_sm, 0);
}

#[test]
fn a_refused_launch_says_why_and_what_would_run() {
    let ada = target("sm_89");
    let launch = Launch::new(162, 404);
    let reasons: Vec<String> = refusals(ada, &launch).iter().map(ToString::to_string).collect();
    let expected =
        "13 warps of 5376 registers, counted as 16 at launch, need 86016 registers, and a block may take 65536";
    assert_eq!(reasons, [expected]);
    assert_eq!(largest_block(ada, &launch), Some(384));
    assert!(refusals(ada, &launch.with_threads(384)).is_empty());
    let greedy = refusals(target("sm_75"), &Launch::new(32, 128).with_shared(Bytes(70_000), Bytes::ZERO));
    assert_eq!(greedy[0].to_string(), "70000 B of shared memory, and a block may take 65536 B");
    assert_eq!(largest_block(target("sm_75"), &Launch::new(32, 128).with_shared(Bytes(70_000), Bytes::ZERO)), None);
}

#[test]
fn nine_warps_are_three_on_the_fullest_scheduler() {
    let answer = compute("sm_90", Launch { barriers: 64, ..Launch::new(32, 288) });
    assert_eq!((answer.active_warps, answer.warps_per_scheduler(), answer.warps_of_fullest_scheduler()), (9, 2.25, 3));
}

#[test]
fn sweeps_cover_every_block_of_whole_warps_and_every_register_step() {
    let hopper = target("sm_90");
    let launch = Launch::new(64, 256);
    let threads: Vec<u32> = block_sweep(hopper, &launch).unwrap().iter().map(|point| point.threads).collect();
    assert_eq!(threads, (1..=32).map(|warps| warps * 32).collect::<Vec<u32>>());
    let registers: Vec<u32> = register_sweep(hopper, &launch).unwrap().iter().map(|point| point.registers).collect();
    assert_eq!((registers.len(), registers[0], registers[30], registers[31]), (32, 8, 248, 255));
}

#[test]
fn launch_bounds_cap_the_suggested_block_size() {
    let best = suggest_block_size(target("sm_90"), &Launch::new(32, 1), Some(200)).unwrap();
    assert_eq!((best.threads, best.blocks_per_sm), (128, 16));
}

#[test]
fn the_cliffs_of_shared_memory_lie_where_a_block_fewer_fits() {
    let levels = shared_levels(target("sm_80"), &Launch::new(64, 256)).unwrap();
    let told: Vec<(u32, u32)> = levels.iter().map(|level| (level.up_to, level.occupancy.blocks_per_sm)).collect();
    // 164 KiB over the blocks, in units of 128 bytes, less the 1 KiB that is reserved of each.
    let share = |blocks: u32| 164 * 1024 / blocks / 128 * 128 - 1024;
    assert_eq!(told, [(share(4), 4), (share(3), 3), (share(2), 2), (163 * 1024, 1)]);
    assert!(shared_levels(target("sm_80"), &Launch::new(255, 1024)).unwrap().is_empty());
}

fn any_target() -> impl Strategy<Value = &'static Target> {
    let known: Vec<Arch> = Target::known().collect();
    prop::sample::select(known).prop_map(|arch| Target::of(arch).unwrap())
}

fn any_launch() -> impl Strategy<Value = Launch> {
    let sizes = prop_oneof![Just(0_u32), 0..4096_u32, 0..240_000_u32];
    let carveout = prop::option::weighted(0.3, 0..=100_u8);
    (1..=256_u32, 1..=1056_u32, sizes.clone(), sizes, carveout, 0..6_u32).prop_map(
        |(registers, threads, fixed, dynamic, carveout, barriers)| Launch {
            carveout,
            barriers,
            ..Launch::new(registers, threads).with_shared(Bytes(fixed), Bytes(dynamic))
        },
    )
}

fn warps(target: &Target, launch: &Launch) -> u32 {
    occupancy(target, launch).unwrap().active_warps
}

/// The launch with another amount of shared memory in all.
fn with_total(launch: &Launch, bytes: u32) -> Launch {
    launch.with_shared(Bytes(launch.static_shared.0.min(bytes)), Bytes(bytes - launch.static_shared.0.min(bytes)))
}

/// Holds `step`, if any, against every nearer value, none of which may do what it does.
fn is_nearest(step: Option<Step>, candidates: impl Iterator<Item = u32>, does: impl Fn(u32) -> bool) -> bool {
    candidates.into_iter().find(|value| does(*value)) == step.map(|step| step.value)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_is_resident_never_exceeds_the_sm(target in any_target(), launch in any_launch()) {
        let answer = occupancy(target, &launch).unwrap();
        prop_assert!(answer.active_warps <= answer.max_warps);
        prop_assert_eq!(answer.blocks_per_sm * launch.warps(target), answer.active_warps);
        prop_assert!((0.0..=1.0).contains(&answer.fraction()));
        prop_assert!(!answer.limiters.is_empty());
        prop_assert_eq!(answer.blocks_per_sm == 0, !refusals(target, &launch).is_empty());
    }

    #[test]
    fn more_registers_never_give_more_occupancy(target in any_target(), launch in any_launch(), more in 1..100_u32) {
        let heavier = launch.with_registers(launch.registers + more);
        prop_assert!(warps(target, &heavier) <= warps(target, &launch));
    }

    #[test]
    fn more_shared_memory_never_gives_more_occupancy(
        target in any_target(), launch in any_launch(), more in 1..50_000_u32,
    ) {
        let heavier = launch.with_shared(launch.static_shared, Bytes(launch.dynamic_shared.0 + more));
        prop_assert!(warps(target, &heavier) <= warps(target, &launch));
    }

    #[test]
    fn levels_are_what_the_model_says_at_every_value(
        target in any_target(), launch in any_launch(), bytes in prop::collection::vec(0..340_000_u32, 40),
    ) {
        let registers = register_levels(target, &launch).unwrap();
        for value in 1..=target.max_registers_per_thread {
            let told = level_at(&registers, value).map_or(0, |level| level.occupancy.active_warps);
            prop_assert_eq!(told, warps(target, &launch.with_registers(value)), "{} registers", value);
        }
        let shared = shared_levels(target, &launch).unwrap();
        prop_assert!(shared.len() <= 32 && shared.is_sorted_by_key(|level| level.up_to));
        let edges = shared.iter().flat_map(|level| [level.up_to, level.up_to + 1]);
        for value in edges.chain(bytes.into_iter().map(|bytes| bytes % (most_shared(target) + 1))) {
            let told = level_at(&shared, value).map_or(0, |level| level.occupancy.active_warps);
            prop_assert_eq!(told, warps(target, &with_total(&launch, value)), "{} bytes", value);
        }
    }

    #[test]
    fn the_nearest_register_step_is_the_nearest(target in any_target(), launch in any_launch()) {
        let now = warps(target, &launch);
        let found = next(target, &launch).unwrap();
        let at = |registers| warps(target, &launch.with_registers(registers));
        prop_assert!(is_nearest(found.raises.registers, (1..launch.registers).rev(), |value| at(value) > now));
        let more = launch.registers + 1..=target.max_registers_per_thread;
        prop_assert!(is_nearest(found.lowers.registers, more, |value| at(value) < now));
    }

    #[test]
    fn the_nearest_block_is_the_nearest(target in any_target(), launch in any_launch()) {
        let now = warps(target, &launch);
        let found = next(target, &launch).unwrap();
        let mut sizes: Vec<u32> = (1..=32).map(|warps| warps * 32).filter(|size| *size != launch.threads).collect();
        sizes.sort_by_key(|size| (size.abs_diff(launch.threads), *size));
        let at = |threads| warps(target, &launch.with_threads(threads));
        prop_assert!(is_nearest(found.raises.block, sizes.iter().copied(), |value| at(value) > now));
        prop_assert!(is_nearest(found.lowers.block, sizes.iter().copied(), |value| at(value) < now));
    }

    #[test]
    fn every_step_does_what_it_says(target in any_target(), launch in any_launch()) {
        let now = warps(target, &launch);
        let found = next(target, &launch).unwrap();
        let steps = |change: &Change| [change.registers, change.shared_memory, change.block];
        prop_assert!(steps(&found.raises).iter().flatten().all(|step| step.occupancy.active_warps > now));
        prop_assert!(steps(&found.lowers).iter().flatten().all(|step| step.occupancy.active_warps < now));
    }

    #[test]
    fn what_is_available_fits_and_a_byte_more_does_not(
        target in any_target(), launch in any_launch(), wanted in 1..=32_u32,
    ) {
        let launch = Launch { carveout: None, ..launch };
        if let Ok(bytes) = available_dynamic_shared(target, &launch, wanted) {
            let at = |bytes| occupancy(target, &launch.with_shared(launch.static_shared, Bytes(bytes))).unwrap();
            prop_assert!(at(bytes.0).blocks_per_sm >= wanted);
            prop_assert!(at(bytes.0 + 1).blocks_per_sm < wanted);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn the_nearest_shared_memory_step_is_the_nearest(target in any_target(), launch in any_launch()) {
        let now = warps(target, &launch);
        let found = next(target, &launch).unwrap();
        let total = u32::try_from(launch.shared_bytes()).unwrap();
        let at = |bytes| warps(target, &with_total(&launch, bytes));
        prop_assert!(is_nearest(found.raises.shared_memory, (0..total).rev(), |value| at(value) > now));
        let more = total + 1..=target.shared_per_block_optin;
        prop_assert!(is_nearest(found.lowers.shared_memory, more, |value| at(value) < now));
    }
}
