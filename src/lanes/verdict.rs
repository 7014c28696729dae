//! The verdict on a branch: how the lanes of a warp part there, why, and whether that is worth a word. Shared by all front
//! ends: it knows values and costs, and no PTX.

use super::cost::{Side, Traits, is_predicated};
use super::steps::Spread;
use super::value::{Extent, LANES, Span, Value};

/// What the lanes of a warp do at a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// All lanes of a warp go the same way.
    WarpUniform,
    /// A threshold runs through the block or the grid, and few warps are parted by it.
    BoundarySplit,
    /// One side never has more than one lane of a warp.
    LeaderLane,
    /// Lanes part, but the sides are so short that no branch is left in the machine code.
    PredicatedShort,
    /// Lanes part because of the index of the thread.
    DivergentIndex,
    /// Lanes part because of data.
    DivergentData,
    /// Not all threads of the block come to a barrier that is for all of them.
    BarrierInDivergent,
}

impl Verdict {
    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Verdict::WarpUniform => "warp-uniform",
            Verdict::BoundarySplit => "boundary-split",
            Verdict::LeaderLane => "leader-lane",
            Verdict::PredicatedShort => "predicated-short",
            Verdict::DivergentIndex => "divergent-index",
            Verdict::DivergentData => "divergent-data",
            Verdict::BarrierInDivergent => "barrier-in-divergent",
        }
    }
}

/// How sure a verdict is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Confidence {
    /// It depends on numbers that are known when the kernel runs, or on a shape that nothing tells.
    Low,
    /// It was read off a source, without what the compiler made of it.
    Medium,
    /// It holds for most of what a kernel may be run with.
    High,
}

impl Confidence {
    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Confidence::Low => "low",
            Confidence::Medium => "medium",
            Confidence::High => "high",
        }
    }
}

/// How loud a rule may be about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Advice {
    /// Not worth a word.
    Silent,
    /// A note.
    Note,
    /// A warning.
    Warn,
}

impl Advice {
    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Advice::Silent => "silent",
            Advice::Note => "note",
            Advice::Warn => "warn",
        }
    }
}

/// How warps part at a branch, over all environments.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Split {
    /// Mean share of warps that part, of those that come there.
    pub mean: f64,
    /// Largest share.
    pub most: f64,
    /// Share of environments in which a quarter of the warps or more part.
    pub robust: f64,
    /// One fixed side never has more than one lane of a warp.
    pub leader: bool,
    /// In some environment the threads of the block part.
    pub block: bool,
    /// Mean share of lanes that take the branch, in warps that part.
    pub taking: f64,
    /// Data have a part in the condition that each lane has its own of, whether warps part here or not.
    pub by_data: bool,
    /// A comparison in the condition would part lanes with other numbers than any that were looked at.
    pub at_edge: bool,
    /// A warp that parts.
    pub witness: Option<Witness>,
}

/// The lanes of one warp at a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Witness {
    /// The warp in its block.
    pub warp: u32,
    /// Lanes that come there.
    pub active: u32,
    /// Lanes that take the branch.
    pub taken: u32,
}

impl Split {
    /// Counts where the lanes of `active` part on `condition`; `several` for a table, whose index it then is.
    #[must_use]
    pub fn count(condition: &Value, active: &Value, extent: Extent, several: bool) -> Split {
        let (by_data, at_edge) = (condition.is_by_data(), condition.is_at_edge());
        let start = Split { by_data, at_edge, ..Split::default() };
        if condition.span() == Span::Block && active.span() == Span::Block {
            return start;
        }
        let rows = condition.rows().max(active.rows());
        let mut all = start;
        let (mut most_taking, mut most_others) = (0, 0);
        let (mut environments, mut parting, mut taking) = (0.0_f64, 0.0_f64, 0.0);
        for environment in 0..rows {
            let (mut warps, mut split) = (0.0_f64, 0.0_f64);
            let mut first = None;
            for warp in 0..extent.warps() {
                let lanes = lanes_of(condition, active, environment, warp, extent, several);
                if lanes.active == 0 {
                    continue;
                }
                warps += 1.0;
                let (yes, no) = (lanes.taken.count_ones(), (lanes.active & !lanes.taken).count_ones());
                (most_taking, most_others) = (most_taking.max(yes), most_others.max(no));
                let way = if yes > 0 && no > 0 { None } else { Some(yes > 0) };
                all.block |= way.is_none() || *first.get_or_insert(way) != way;
                if yes > 0 && no > 0 {
                    split += 1.0;
                    parting += 1.0;
                    taking += f64::from(yes) / f64::from(yes + no);
                    // One that parts in the middle of the block says more than one at its edge.
                    all.witness.get_or_insert(lanes);
                }
            }
            if warps > 0.0 {
                let counts = super::eval::share(extent.environments[environment]);
                environments += counts;
                let share = split / warps;
                all.mean += counts * share;
                all.most = all.most.max(share);
                all.robust += if share >= SPLIT { counts } else { 0.0 };
            }
        }
        if environments > 0.0 {
            all.mean /= environments;
            all.robust /= environments;
        }
        all.taking = if parting > 0.0 { taking / parting } else { 0.0 };
        all.leader = !several && most_taking.min(most_others) <= 1;
        all
    }
}

fn lanes_of(
    condition: &Value,
    active: &Value,
    environment: usize,
    warp: usize,
    extent: Extent,
    several: bool,
) -> Witness {
    let mut lanes = Witness { warp: u32::try_from(warp).unwrap_or(u32::MAX), active: 0, taken: 0 };
    let (conditions, actives) = (condition.of_warp(environment, warp), active.of_warp(environment, warp));
    let count = (extent.threads - warp * LANES).min(LANES);
    let mut first = None;
    for lane in 0..count {
        if actives[lane.min(actives.len() - 1)] == 0 {
            continue;
        }
        let bit = 1_u32 << lane;
        lanes.active |= bit;
        let value = conditions[lane.min(conditions.len() - 1)];
        let taken = if several { *first.get_or_insert(value) == value } else { value != 0 };
        lanes.taken |= if taken { bit } else { 0 };
    }
    lanes
}

/// All that a verdict rests on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evidence {
    /// How warps part because of the index.
    pub index: Split,
    /// How they part when data differ from lane to lane.
    pub data: Split,
    /// The branch leaves a loop, and this is how far apart lanes do so, where that can be told.
    pub spread: Option<Spread>,
    /// Whether it leaves a loop.
    pub is_loop: bool,
    /// The guard before a loop whose own branch is judged: it says nothing new.
    pub is_guard: bool,
    /// The sides.
    pub sides: Option<(Side, Side)>,
    /// Whether there are more than two sides.
    pub several: bool,
    /// A barrier for the whole block on a side, and whether the threads that miss it go on to more than the end.
    pub barrier: Option<Missed>,
    /// Whether the block's shape is known.
    pub shape_known: bool,
    /// Whether a source shows it, and no compiled code.
    pub is_source: bool,
}

/// What becomes of threads that do not come to a barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Missed {
    /// They run straight to the end of the kernel.
    Exits,
    /// They go on to more code.
    GoesOn,
}

/// What there is to say of a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// How sure it is.
    pub confidence: Confidence,
    /// How loud.
    pub advice: Advice,
    /// Why, in a word or two.
    pub reason: &'static str,
}

/// Share of warps from which on a split is no boundary.
const SPLIT: f64 = 0.25;

/// Share of lane-iterations lost from which on a loop is worth a word.
const IDLE: f64 = 0.10;

/// The smaller of two sides, and the only one, from which on a split is worth a word.
const TWO_SIDED: f64 = 8.0;
const ONE_SIDED: f64 = 16.0;

/// The side of a leader from which on a note is worth it.
const LEADER: f64 = 64.0;

/// Whether a branch that was looked at in some environments may be worth a word when it is looked at in all.
#[must_use]
pub fn may_matter(evidence: &Evidence) -> bool {
    let parts = evidence.index.mean >= SPLIT / 2.0 || evidence.index.robust > 0.0;
    let spreads = match evidence.spread {
        Some(spread) => spread.share > 0.0,
        None => evidence.is_loop,
    };
    let leads = evidence.index.leader && leader_side(evidence) >= LEADER && evidence.index.most > 0.0;
    parts || spreads || leads || (evidence.barrier.is_some() && evidence.index.block)
}

/// Judges a branch.
#[must_use]
pub fn judge(evidence: &Evidence) -> Judgement {
    let judged = judge_compiled(evidence);
    if evidence.is_source { super::source::of_source(evidence, judged) } else { judged }
}

fn judge_compiled(evidence: &Evidence) -> Judgement {
    let by_index = cause(evidence);
    let confidence = confidence(evidence);
    let silent = |verdict, reason| Judgement { verdict, confidence, advice: Advice::Silent, reason };
    let parts_block = evidence.index.block && by_index != Verdict::DivergentData;
    if let (Some(missed), true) = (evidence.barrier, parts_block || loop_parts(evidence)) {
        let (advice, reason) = match missed {
            Missed::Exits => (Advice::Note, "a part of the block reaches the barrier, and the rest exits"),
            Missed::GoesOn => (Advice::Warn, "a part of the block reaches the barrier, and the rest goes on"),
        };
        return Judgement { verdict: Verdict::BarrierInDivergent, confidence, advice, reason };
    }
    let divergent = matches!(by_index, Verdict::DivergentIndex | Verdict::DivergentData);
    if let Some((taken, other)) = evidence.sides
        && divergent
        && !evidence.is_loop
        && !evidence.several
        && is_predicated(taken, other, false)
    {
        return silent(Verdict::PredicatedShort, "the sides are so short that they are predicated");
    }
    match by_index {
        Verdict::WarpUniform => silent(by_index, "all lanes of a warp go the same way"),
        Verdict::BoundarySplit if evidence.is_loop => silent(by_index, "lanes leave the loop within one iteration"),
        Verdict::BoundarySplit => silent(by_index, "a threshold parts few warps"),
        Verdict::LeaderLane => {
            let heavy = evidence.sides.is_some_and(|(taken, other)| taken.weight.max(other.weight) >= LEADER);
            let advice = if heavy && leader_side(evidence) >= LEADER { Advice::Note } else { Advice::Silent };
            Judgement { verdict: by_index, confidence, advice, reason: "one side never has more than one lane" }
        }
        Verdict::DivergentData => {
            let advice = if is_worth_a_word(evidence) { Advice::Note } else { Advice::Silent };
            Judgement { verdict: by_index, confidence, advice, reason: "lanes part where their data do" }
        }
        _ => {
            let loud = if confidence == Confidence::High { Advice::Warn } else { Advice::Note };
            let advice = if is_worth_a_word(evidence) { loud } else { Advice::Silent };
            let reason = match advice {
                Advice::Silent if evidence.is_guard => "the loop behind it is judged",
                Advice::Silent => "lanes part, and lose too little",
                _ => "lanes part because of their index",
            };
            Judgement { verdict: by_index, confidence, advice, reason }
        }
    }
}

/// Why lanes part, whatever it costs.
fn cause(evidence: &Evidence) -> Verdict {
    let (index, data) = (&evidence.index, &evidence.data);
    let spreads = loop_parts(evidence);
    if index.most == 0.0 && !spreads {
        return match (data.most > 0.0 || data.by_data, index.at_edge) {
            (true, _) => Verdict::DivergentData,
            (false, true) => Verdict::BoundarySplit,
            (false, false) => Verdict::WarpUniform,
        };
    }
    if evidence.is_loop
        && let Some(spread) = evidence.spread
    {
        return match spread.share {
            share if share >= SPLIT => Verdict::DivergentIndex,
            _ => Verdict::BoundarySplit,
        };
    }
    if index.leader && !evidence.is_loop {
        return if data.leader { Verdict::LeaderLane } else { Verdict::DivergentData };
    }
    if index.mean >= SPLIT {
        return Verdict::DivergentIndex;
    }
    let is_edge = data.mean < 0.5 || index.mean >= 0.02;
    if is_edge { Verdict::BoundarySplit } else { Verdict::DivergentData }
}

fn loop_parts(evidence: &Evidence) -> bool {
    evidence.is_loop && evidence.spread.is_some_and(|spread| spread.share >= SPLIT)
}

fn confidence(evidence: &Evidence) -> Confidence {
    let spreads = evidence.spread.is_some_and(|spread| spread.share >= 0.5);
    let unclear = evidence.index.most > 0.0 && !(evidence.index.robust >= 0.5 || spreads);
    let is_edge = evidence.index.mean < SPLIT && !loop_parts(evidence);
    if (unclear && !is_edge) || !evidence.shape_known { Confidence::Low } else { Confidence::High }
}

/// The weight of the side that one lane runs.
fn leader_side(evidence: &Evidence) -> f64 {
    let Some((taken, other)) = evidence.sides else { return 0.0 };
    if evidence.index.taking <= 0.5 { taken.weight } else { other.weight }
}

/// Whether what is lost is more than the compiler's choices decide anyway.
fn is_worth_a_word(evidence: &Evidence) -> bool {
    if evidence.is_loop {
        let by_data = evidence.index.most == 0.0 && !loop_parts(evidence);
        return by_data || evidence.spread.is_some_and(|spread| spread.idle >= IDLE);
    }
    if evidence.is_guard {
        return false;
    }
    let Some((taken, other)) = evidence.sides else { return evidence.several };
    // A side that ends in a trap is not meant to run.
    if taken.has.any(Traits::TRAP) || other.has.any(Traits::TRAP) {
        return false;
    }
    let (less, more) = (taken.weight.min(other.weight), taken.weight.max(other.weight));
    let heavy = Traits::CALL.and(Traits::SLOW);
    let enough =
        if less > 0.0 { less >= TWO_SIDED || (more >= ONE_SIDED && is_mostly_one(less)) } else { more >= ONE_SIDED };
    enough || taken.has.any(heavy) || other.has.any(heavy)
}

/// A side of an instruction or two is no second side.
fn is_mostly_one(less: f64) -> bool {
    less <= 2.0
}

#[cfg(test)]
mod tests {
    use super::super::testing::{SHAPE, judged};
    use super::*;

    const EXTENT: Extent = Extent { threads: 256, environments: crate::lanes::value::ALL };

    fn split(condition: impl FnMut(usize) -> u64) -> Split {
        Split::count(&Value::of_threads(EXTENT, condition), &Value::constant(1), EXTENT, false)
    }

    #[test]
    fn warps_are_counted_that_part() {
        let odd = split(|thread| (thread % 2) as u64);
        assert_eq!((odd.mean, odd.most, odd.robust, odd.leader, odd.block), (1.0, 1.0, 1.0, false, true));
        assert_eq!((odd.taking, odd.witness.map(|lanes| lanes.taken)), (0.5, Some(0xaaaa_aaaa)));
        let tail = split(|thread| u64::from(thread < 40));
        assert_eq!((tail.mean, tail.robust, tail.block), (0.125, 0.0, true));
        assert_eq!(tail.witness, Some(Witness { warp: 1, active: u32::MAX, taken: 0xff }));
        let roles = split(|thread| u64::from(thread < 64));
        assert_eq!((roles.most, roles.block, roles.witness), (0.0, true, None));
        let none = split(|_| 1);
        assert_eq!((none.most, none.block), (0.0, false));
        assert!(split(|thread| u64::from(thread == 0)).leader && split(|thread| u64::from(thread % 32 != 7)).leader);
    }

    #[test]
    fn lanes_that_do_not_come_there_part_nobody() {
        let odd = Value::of_threads(EXTENT, |thread| (thread % 2) as u64);
        assert_eq!(Split::count(&odd, &odd, EXTENT, false).most, 0.0);
        let nobody = Split::count(&odd, &Value::of_threads(EXTENT, |_| 0), EXTENT, false);
        assert_eq!((nobody.mean, nobody.most), (0.0, 0.0));
    }

    #[test]
    fn a_table_parts_where_indices_differ() {
        let index = |part: usize| Value::of_threads(EXTENT, move |thread| (thread / part) as u64);
        let parted = |part| Split::count(&index(part), &Value::constant(1), EXTENT, true).mean;
        assert_eq!((parted(8), parted(32)), (1.0, 0.0));
    }

    fn evidence(index: Split) -> Evidence {
        let side = Side { weight: 20.0, ..Side::default() };
        Evidence {
            index,
            data: index,
            spread: None,
            is_loop: false,
            is_guard: false,
            sides: Some((side, side)),
            several: false,
            barrier: None,
            shape_known: true,
            is_source: false,
        }
    }

    fn told(evidence: &Evidence) -> (Verdict, Confidence, Advice) {
        let judgement = judge(evidence);
        (judgement.verdict, judgement.confidence, judgement.advice)
    }

    #[test]
    fn the_share_of_parting_warps_decides() {
        let odd = split(|thread| (thread % 2) as u64);
        assert_eq!(told(&evidence(odd)), (Verdict::DivergentIndex, Confidence::High, Advice::Warn));
        let tail = split(|thread| u64::from(thread < 40));
        assert_eq!(told(&evidence(tail)), (Verdict::BoundarySplit, Confidence::High, Advice::Silent));
        assert_eq!(told(&evidence(Split::default())), (Verdict::WarpUniform, Confidence::High, Advice::Silent));
        let leader = split(|thread| u64::from(thread % 32 == 0));
        assert_eq!(told(&evidence(leader)), (Verdict::LeaderLane, Confidence::High, Advice::Silent));
    }

    #[test]
    fn what_parts_by_data_alone_or_rests_on_numbers_is_no_warning() {
        let odd = split(|thread| (thread % 2) as u64);
        let by_data = Evidence { data: odd, ..evidence(Split::default()) };
        assert_eq!(told(&by_data), (Verdict::DivergentData, Confidence::High, Advice::Note));
        let at_times = Split { robust: 0.3, mean: 0.4, ..odd };
        assert_eq!(told(&evidence(at_times)), (Verdict::DivergentIndex, Confidence::Low, Advice::Note));
        let unknown = Evidence { shape_known: false, ..evidence(odd) };
        assert_eq!(told(&unknown), (Verdict::DivergentIndex, Confidence::Low, Advice::Note));
    }

    #[test]
    fn short_sides_are_predicated_or_not_worth_a_word() {
        let odd = split(|thread| (thread % 2) as u64);
        let sides = |one: f64, two: f64, has: Traits| {
            let side = |weight| Side { weight, has };
            told(&Evidence { sides: Some((side(one), side(two))), ..evidence(odd) })
        };
        assert_eq!(sides(3.0, 3.0, Traits::default()).0, Verdict::PredicatedShort);
        assert_eq!(sides(9.0, 9.0, Traits::default()).2, Advice::Warn);
        assert_eq!(sides(15.0, 0.0, Traits::default()), (Verdict::DivergentIndex, Confidence::High, Advice::Silent));
        assert_eq!(sides(16.0, 0.0, Traits::default()).2, Advice::Warn);
        assert_eq!(sides(3.0, 3.0, Traits::CALL).2, Advice::Warn);
        assert_eq!(sides(30.0, 30.0, Traits::TRAP).2, Advice::Silent);
    }

    #[test]
    fn a_loop_is_judged_by_how_far_apart_lanes_leave_it() {
        let tail = split(|thread| u64::from(thread < 40));
        let left = |share: f64, idle: f64| {
            let spread = Some(Spread { share, idle, trips: (10.0, 5.0) });
            told(&Evidence { is_loop: true, spread, ..evidence(tail) })
        };
        assert_eq!(left(1.0, 0.5), (Verdict::DivergentIndex, Confidence::High, Advice::Warn));
        assert_eq!(left(1.0, 0.05).2, Advice::Silent);
        assert_eq!(left(0.1, 0.05), (Verdict::BoundarySplit, Confidence::High, Advice::Silent));
    }

    #[test]
    fn a_barrier_that_a_part_of_the_block_comes_to_is_one_even_between_warps() {
        let roles = split(|thread| u64::from(thread < 64));
        let barrier = |missed| told(&Evidence { barrier: Some(missed), ..evidence(roles) });
        assert_eq!((barrier(Missed::GoesOn).0, barrier(Missed::GoesOn).2), (Verdict::BarrierInDivergent, Advice::Warn));
        assert_eq!((barrier(Missed::Exits).0, barrier(Missed::Exits).2), (Verdict::BarrierInDivergent, Advice::Note));
        let together = Evidence { barrier: Some(Missed::GoesOn), ..evidence(Split::default()) };
        assert_eq!(told(&together).0, Verdict::WarpUniform);
    }

    #[test]
    fn a_branch_of_a_function_is_judged_from_its_text() {
        let long = "neg.s32 %r1, %r1;\n".repeat(20);
        let verdict = |condition: &str| {
            let text = format!(
                "mov.u32 %r2, %tid.x; {condition} @%p1 bra A; {long} bra B; A: {long} not.b32 %r1, %r1; B: ret;"
            );
            judged(SHAPE, &text)[0].judgement.expect("a judgement").verdict
        };
        assert_eq!(verdict("and.b32 %r3, %r2, 1; setp.eq.u32 %p1, %r3, 0;"), Verdict::DivergentIndex);
        assert_eq!(verdict("and.b32 %r3, %r2, 32; setp.eq.u32 %p1, %r3, 0;"), Verdict::WarpUniform);
        assert_eq!(verdict("setp.eq.u32 %p1, %r2, 0;"), Verdict::LeaderLane);
        assert_eq!(verdict("setp.lt.u32 %p1, %r2, 20;"), Verdict::BoundarySplit);
        assert_eq!(verdict("ld.param.u32 %r3, [n]; setp.lt.u32 %p1, %r3, 20;"), Verdict::WarpUniform);
        let load = "mul.wide.u32 %rd2, %r2, 4; ld.global.u32 %r3, [%rd2]; setp.lt.s32 %p1, %r3, 20;";
        assert_eq!(verdict(load), Verdict::DivergentData);
    }
}
