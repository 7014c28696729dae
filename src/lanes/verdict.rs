//! The verdict on a branch: why the lanes of a warp part there, and whether that is worth a word. Shared by all front ends: it
//! knows how lanes part and what that costs, and no PTX.

use super::cost::{Side, Traits, is_predicated};
use super::loss::{IDLE, LOSS, are_worth_a_word, is_mostly_one, loss_of_parted};
use super::split::{PARTED, Split};
use super::spread::Spread;

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

/// All that a verdict rests on; by default nothing speaks for anything.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Evidence {
    /// How warps part because of the index.
    pub index: Split,
    /// How they part when data differ from lane to lane.
    pub data: Split,
    /// The branch leaves a loop, and this is how far apart lanes do so, where that can be told.
    pub spread: Option<Spread>,
    /// Whether it leaves a loop.
    pub is_loop: bool,
    /// The weight of a turn of that loop.
    pub body: f64,
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
    /// Whether it stands in a loop.
    pub in_loop: bool,
    /// It is a step of a scan: what the lanes below hand up stands right before it.
    pub is_scan: bool,
    /// It decides how many turns a lane takes of a loop whose lanes start no more than a step apart.
    pub is_strided: bool,
    /// It compares a place with a number that is known only when the kernel runs.
    pub is_bound: bool,
    /// Each lane looks at a bit of its own of a number that is known only when the kernel runs, and may be all zeros or ones.
    pub is_masked: bool,
    /// Numbers that are known only when the kernel runs have to be no multiples of a block's threads for any warp to part.
    pub is_offset: bool,
    /// The first block, which every launch has, comes there and parts, whatever the kernel is run with.
    pub in_every_launch: bool,
    /// Parameters of the kernel that the condition is made of.
    pub parameters: u32,
}

/// What becomes of threads that do not come to a barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Missed {
    /// They run straight to the end of the kernel.
    Exits,
    /// They go on to more code.
    GoesOn,
    /// They come to other ones, as many as stand on this side.
    Paired,
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

/// The side of a leader from which on a note is worth it.
const LEADER: f64 = 64.0;

/// Share of the environments in which some warp has to come to a branch, for what it does there to be told surely.
const REACHED: f64 = 0.15;

/// Share of environments in which the block has to part before a barrier, for an error.
const PARTS: f64 = 0.5;

/// The side of the leaders of groups of lanes up to which it is no news.
const GROUP_LEADER: f64 = 32.0;

/// Whether a branch that was looked at in some environments may be worth a word when it is looked at in all.
#[must_use]
pub fn may_matter(evidence: &Evidence) -> bool {
    let parts = evidence.index.mean >= PARTED / 2.0 || evidence.index.robust > 0.0;
    let spreads = match evidence.spread {
        Some(spread) => spread.share > 0.0,
        None => evidence.is_loop,
    };
    let leads = evidence.index.leader && leader_side(evidence) >= LEADER && evidence.index.most > 0.0;
    parts || spreads || leads
}

/// Whether the threads of the block part because of the index, where a barrier stands on a side.
fn parts_block(evidence: &Evidence) -> bool {
    let own = evidence.index.block && !evidence.index.guessed;
    own || loop_parts(evidence) || evidence.spread.is_some_and(|spread| evidence.is_loop && spread.parts > 0.0)
}

/// Judges a branch.
#[must_use]
pub fn judge(evidence: &Evidence) -> Judgement {
    let judged = judge_compiled(evidence);
    if evidence.is_source { super::source::of_source(evidence, judged) } else { judged }
}

/// The judgement that would hold for compiled code.
fn judge_compiled(evidence: &Evidence) -> Judgement {
    let cause = cause(evidence);
    if let Some(missed) = evidence.barrier.filter(|_| parts_block(evidence) && cause != Verdict::DivergentData) {
        return at_barrier(evidence, missed);
    }
    let confidence = confidence(evidence);
    let silent = |verdict, reason| Judgement { verdict, confidence, advice: Advice::Silent, reason };
    match cause {
        Verdict::DivergentIndex | Verdict::DivergentData if is_left_to_predicates(evidence) => {
            silent(Verdict::PredicatedShort, "the sides are so short that they are predicated")
        }
        Verdict::WarpUniform => silent(cause, "all lanes of a warp go the same way"),
        Verdict::BoundarySplit => silent(cause, of_boundary(evidence)),
        Verdict::LeaderLane => at_leader(evidence),
        Verdict::DivergentData => {
            let advice = if is_worth_a_word(evidence) { Advice::Note } else { Advice::Silent };
            Judgement { verdict: cause, confidence, advice, reason: "lanes part where their data do" }
        }
        _ => match usual(evidence) {
            Some(reason) => silent(cause, reason),
            None => at_index(evidence, confidence),
        },
    }
}

/// Whether a compiler makes predicates of a branch.
fn is_left_to_predicates(evidence: &Evidence) -> bool {
    let sides = evidence.sides.filter(|_| !evidence.is_loop && !evidence.several);
    sides.is_some_and(|(taken, other)| is_predicated(taken, other, false))
}

/// Judges a branch one side of which never has more than one lane of a warp.
fn at_leader(evidence: &Evidence) -> Judgement {
    let heavy = leader_side(evidence) >= LEADER;
    // One lane starts what the hardware then does by itself.
    let starts = evidence.sides.is_some_and(|(taken, other)| taken.has.and(other.has).any(Traits::ASYNC));
    let (advice, reason) = match (heavy, starts) {
        _ if evidence.is_bound => (Advice::Silent, "a threshold leaves out one lane at most"),
        _ if evidence.index.reached == 0.0 => (Advice::Silent, "no number that was tried leads there"),
        (true, true) => (Advice::Silent, "one lane starts a copy or a tensor operation, or waits for one"),
        (true, false) => (Advice::Note, "one side never has more than one lane"),
        (false, _) => (Advice::Silent, "one side never has more than one lane"),
    };
    let confidence = if evidence.shape_known { Confidence::High } else { Confidence::Low };
    Judgement { verdict: Verdict::LeaderLane, confidence, advice, reason }
}

/// Judges a branch at which lanes part because of their index, for no usual reason.
fn at_index(evidence: &Evidence, confidence: Confidence) -> Judgement {
    let verdict = Verdict::DivergentIndex;
    if !is_worth_a_word(evidence) {
        return Judgement { verdict, confidence, advice: Advice::Silent, reason: "lanes part, and lose too little" };
    }
    let advice = if confidence == Confidence::High { Advice::Warn } else { Advice::Note };
    Judgement { verdict, confidence, advice, reason: "lanes part because of their index" }
}

/// Why few warps part.
fn of_boundary(evidence: &Evidence) -> &'static str {
    match evidence.spread.filter(|_| evidence.is_loop) {
        Some(spread) if spread.share > 0.0 => "few warps have lanes that leave the loop apart",
        Some(_) => "lanes leave the loop within one iteration",
        None => "a threshold parts few warps",
    }
}

/// Judges a branch on a side of which stands a barrier, where the block parts.
fn at_barrier(evidence: &Evidence, missed: Missed) -> Judgement {
    let spread = evidence.spread.filter(|_| evidence.is_loop);
    let parts = evidence.index.parts.max(spread.map_or(0.0, |spread| spread.parts));
    let rare = (evidence.index.reached < REACHED || parts < PARTS) && !evidence.in_every_launch;
    let confidence = if rare || !evidence.shape_known { Confidence::Low } else { Confidence::High };
    let (advice, reason) = match missed {
        Missed::Exits => (Advice::Note, "a part of the block reaches the barrier, and the rest exits"),
        Missed::Paired => (Advice::Warn, "a part of the block reaches one barrier, and the rest another one"),
        Missed::GoesOn => (Advice::Warn, "a part of the block reaches the barrier, and the rest goes on"),
    };
    let advice = if confidence == Confidence::High { advice } else { advice.min(Advice::Note) };
    Judgement { verdict: Verdict::BarrierInDivergent, confidence, advice, reason }
}

/// Why nobody wants to hear of a branch at which lanes part, if that is so.
fn usual(evidence: &Evidence) -> Option<&'static str> {
    let sides = evidence.sides.filter(|_| !evidence.is_loop && !evidence.several);
    let only = sides.filter(|(taken, other)| is_mostly_one(taken.weight.min(other.weight)));
    let only = only.map(|(taken, other)| taken.weight.max(other.weight));
    if evidence.is_guard {
        return Some("the loop behind it is judged");
    }
    if !evidence.is_loop && !evidence.several && (evidence.index.of_all() < PARTED || evidence.index.lone) {
        return Some("few of the block's warps come there and part");
    }
    if evidence.is_strided {
        return Some("lanes take turns of the loop in equal steps, and at most one more than others");
    }
    if only.is_some() && evidence.index.reached == 0.0 {
        return Some("no number that was tried leads there, and lanes only idle");
    }
    if only.is_some() && evidence.is_scan && evidence.index.threshold {
        return Some("a step of a scan over the lanes");
    }
    if only.is_some_and(|weight| weight < GROUP_LEADER) && evidence.index.group.is_some() && !evidence.in_loop {
        return Some("the leader of each group of lanes does little");
    }
    None
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
            share if share >= PARTED && !spread.lone => Verdict::DivergentIndex,
            _ => Verdict::BoundarySplit,
        };
    }
    if index.leader && !evidence.is_loop {
        return if data.leader { Verdict::LeaderLane } else { Verdict::DivergentData };
    }
    if index.mean >= PARTED && !(index.lone && index.among >= 1.0) {
        return Verdict::DivergentIndex;
    }
    let is_edge = data.mean < 0.5 || index.mean >= 0.02;
    if is_edge { Verdict::BoundarySplit } else { Verdict::DivergentData }
}

fn loop_parts(evidence: &Evidence) -> bool {
    evidence.is_loop && evidence.spread.is_some_and(|spread| spread.share >= PARTED)
}

fn confidence(evidence: &Evidence) -> Confidence {
    let index = &evidence.index;
    let spread = evidence.spread.filter(|_| evidence.is_loop);
    let spreads = spread.is_some_and(|spread| spread.share >= 0.5);
    // Lanes that leave in the first turn are no longer there in the turns that are looked at.
    let leaves = spread.is_some_and(|spread| spread.share >= PARTED && !spread.is_fixed);
    let unclear = (index.most > 0.0 || leaves) && !(index.robust >= 0.5 || spreads);
    let is_edge = index.mean < PARTED && !loop_parts(evidence);
    let rare = index.reached < REACHED || spread.is_some_and(|spread| spread.reached < REACHED);
    // Numbers that the caller chooses together decide more than any that are drawn can tell.
    let steady =
        if evidence.is_loop { spread.is_some_and(|spread| spread.share >= STEADY) } else { index.robust >= STEADY };
    let chosen = evidence.parameters >= 2 && !steady;
    let hangs =
        unclear || rare || chosen || index.guessed || evidence.is_bound || evidence.is_masked || evidence.is_offset;
    let is_low = (!is_edge && hangs) || !evidence.shape_known;
    if is_low { Confidence::Low } else { Confidence::High }
}

/// Share of environments, or of warps, from which on a condition does not hang on parameters.
const STEADY: f64 = 0.95;

/// The weight of the side that one lane runs.
fn leader_side(evidence: &Evidence) -> f64 {
    let Some((taken, other)) = evidence.sides else { return 0.0 };
    if evidence.index.taking <= 0.5 { taken.weight } else { other.weight }
}

/// Whether what is lost is more than the compiler's choices decide anyway.
fn is_worth_a_word(evidence: &Evidence) -> bool {
    let by_data = evidence.index.most == 0.0 && !loop_parts(evidence);
    if evidence.is_loop {
        // A turn or two of a short body, as what is left over of an unrolled loop, is soon made up for.
        let loses = |spread: Spread| spread.behind() >= 1.0 && spread.loss(evidence.body) >= 2.0 * LOSS;
        return by_data || evidence.spread.is_some_and(|spread| spread.idle >= IDLE && loses(spread));
    }
    if evidence.is_guard {
        return false;
    }
    let Some((taken, other)) = evidence.sides else { return evidence.several };
    // A side that ends in a trap is not meant to run.
    if taken.has.any(Traits::TRAP) || other.has.any(Traits::TRAP) {
        return false;
    }
    let loses = by_data || loss_of_parted(&evidence.index, evidence.sides) >= LOSS;
    are_worth_a_word(taken, other) && loses
}

#[cfg(test)]
mod tests {
    use super::super::split::testing::{EXTENT, split};
    use super::super::testing::{SHAPE, judged};
    use super::super::value::{Extent, Value};
    use super::*;

    #[test]
    fn data_part_no_lane_from_another_where_it_is_alone() {
        let of = |guard: &str| {
            let text = format!(
                "mov.u32 %t, %tid.x; and.b32 %r1, %t, 31; {guard} @!%p1 bra E; mul.wide.u32 %rd2, %t, 4;
                 ld.global.u32 %r2, [%rd2]; setp.gt.u32 %p2, %r2, 3; @!%p2 bra E; bar.warp.sync -1; E: ret;"
            );
            judged(SHAPE, &text)[1].judgement.expect("a judgement").verdict
        };
        assert_eq!(of("setp.eq.u32 %p1, %r1, 0;"), Verdict::WarpUniform);
        assert_eq!(of("setp.le.u32 %p1, %r1, 1;"), Verdict::DivergentData);
    }

    fn evidence(index: Split) -> Evidence {
        let side = Side { weight: 20.0, ..Side::default() };
        Evidence { index, data: index, body: 16.0, sides: Some((side, side)), shape_known: true, ..Evidence::default() }
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
            let side = |weight| Side { weight, has, ..Side::default() };
            told(&Evidence { sides: Some((side(one), side(two))), ..evidence(odd) })
        };
        assert_eq!(sides(3.0, 3.0, Traits::default()).0, Verdict::PredicatedShort);
        assert_eq!(sides(9.0, 9.0, Traits::default()).2, Advice::Warn);
        assert_eq!(sides(15.0, 0.0, Traits::default()), (Verdict::DivergentIndex, Confidence::High, Advice::Silent));
        assert_eq!(sides(16.0, 0.0, Traits::default()).2, Advice::Warn);
        assert_eq!(sides(3.0, 3.0, Traits::CALL).2, Advice::Silent);
        assert_eq!(sides(16.0, 9.0, Traits::CALL).2, Advice::Warn);
        assert_eq!(sides(30.0, 30.0, Traits::TRAP).2, Advice::Silent);
    }

    #[test]
    fn one_warp_of_several_that_parts_is_not_worth_a_word() {
        let first_warp = Value::of_threads(EXTENT, |thread| u64::from(thread < 32));
        let lanes = Value::of_threads(EXTENT, |thread| u64::from(thread % 32 < 8));
        let found = Split::count(&lanes, &first_warp, EXTENT, false);
        assert_eq!((found.mean, found.of_all(), found.lone), (1.0, 0.125, true));
        assert_eq!(told(&evidence(found)), (Verdict::DivergentIndex, Confidence::High, Advice::Silent));
        let small = Extent { threads: 64, ..EXTENT };
        let condition = Value::of_threads(small, |thread| u64::from(thread < 40));
        let found = Split::count(&condition, &Value::constant(1), small, false);
        assert_eq!(told(&evidence(found)), (Verdict::BoundarySplit, Confidence::High, Advice::Silent));
        let alone = Extent { threads: 32, ..EXTENT };
        let half = Value::of_threads(alone, |thread| u64::from(thread < 16));
        let found = Split::count(&half, &Value::constant(1), alone, false);
        assert_eq!(told(&evidence(found)), (Verdict::DivergentIndex, Confidence::High, Advice::Warn));
    }

    #[test]
    fn the_leader_of_a_group_is_told_where_it_does_much_or_does_it_again_and_again() {
        let quads = split(|thread| u64::from(thread % 4 == 0));
        let advice = |weight: f64, in_loop| {
            let sides = Some((Side { weight, ..Side::default() }, Side::default()));
            told(&Evidence { sides, in_loop, ..evidence(quads) }).2
        };
        assert_eq!(
            (advice(24.0, false), advice(40.0, false), advice(24.0, true)),
            (Advice::Silent, Advice::Warn, Advice::Warn)
        );
        let odd = Evidence { sides: evidence(quads).sides, ..evidence(split(|thread| (thread % 2) as u64)) };
        assert_eq!(told(&odd).2, Advice::Warn);
    }

    #[test]
    fn a_step_of_a_scan_is_silent_and_half_of_a_warp_is_not() {
        let upper = split(|thread| u64::from(thread % 32 >= 16));
        let sides = Some((Side { weight: 20.0, ..Side::default() }, Side::default()));
        let step = |is_scan| told(&Evidence { is_scan, sides, ..evidence(upper) }).2;
        assert_eq!((step(true), step(false)), (Advice::Silent, Advice::Warn));
    }

    #[test]
    fn what_few_environments_or_several_parameters_show_is_a_note() {
        let odd = split(|thread| (thread % 2) as u64);
        let rare = Split { reached: 0.1, ..odd };
        assert_eq!(told(&evidence(rare)), (Verdict::DivergentIndex, Confidence::Low, Advice::Note));
        let guessed = Split { guessed: true, ..odd };
        assert_eq!(told(&evidence(guessed)).2, Advice::Note);
        assert_eq!(told(&Evidence { parameters: 2, ..evidence(odd) }).2, Advice::Warn, "whatever they are");
        let chosen = Evidence { parameters: 2, ..evidence(Split { robust: 0.8, ..odd }) };
        assert_eq!(told(&chosen).2, Advice::Note);
        assert_eq!(told(&Evidence { parameters: 1, ..chosen }).2, Advice::Warn);
    }

    #[test]
    fn little_that_is_lost_at_a_visit_is_silent() {
        let most = split(|thread| u64::from(thread % 8 != 0));
        let sides = |weight: f64| Some((Side { weight, ..Side::default() }, Side::default()));
        let advice = |weight: f64| told(&Evidence { sides: sides(weight), in_loop: true, ..evidence(most) }).2;
        assert_eq!((advice(40.0), advice(80.0)), (Advice::Silent, Advice::Warn));
    }

    #[test]
    fn a_leader_that_starts_a_copy_is_silent() {
        let leader = split(|thread| u64::from(thread % 32 == 0));
        let advice = |has| {
            let sides = Some((Side { weight: 90.0, has, ..Side::default() }, Side::default()));
            told(&Evidence { sides, ..evidence(leader) }).2
        };
        assert_eq!((advice(Traits::STORE), advice(Traits::ASYNC)), (Advice::Note, Advice::Silent));
    }

    #[test]
    fn a_barrier_is_an_error_only_where_the_block_surely_parts() {
        let roles = split(|thread| u64::from(thread < 64));
        let advice = |split, missed| {
            let judgement = judge(&Evidence { barrier: Some(missed), ..evidence(split) });
            (judgement.verdict, judgement.advice)
        };
        let found = |advice| (Verdict::BarrierInDivergent, advice);
        assert_eq!(advice(roles, Missed::GoesOn), found(Advice::Warn));
        assert_eq!(advice(roles, Missed::Paired), found(Advice::Warn));
        assert_eq!(advice(Split { parts: 0.3, ..roles }, Missed::GoesOn), found(Advice::Note));
        assert_eq!(advice(Split { reached: 0.1, ..roles }, Missed::Paired), found(Advice::Note));
        let guessed = Split { guessed: true, ..roles };
        assert_eq!(advice(guessed, Missed::GoesOn), (Verdict::WarpUniform, Advice::Silent));
        let unknown = Evidence { barrier: Some(Missed::GoesOn), shape_known: false, ..evidence(roles) };
        assert_eq!(judge(&unknown).advice, Advice::Note);
    }

    const SPREAD: Spread = Spread {
        share: 0.0,
        idle: 0.0,
        trips: (0.0, 0.0),
        paid: 0.0,
        parts: 1.0,
        reached: 1.0,
        lone: false,
        is_fixed: true,
        differs: false,
        is_cut: false,
    };

    #[test]
    fn a_loop_is_judged_by_how_far_apart_lanes_leave_it() {
        let tail = split(|thread| u64::from(thread < 40));
        let left = |share: f64, idle: f64| {
            let spread = Some(Spread { share, idle, trips: (10.0, 5.0), paid: 10.0, ..SPREAD });
            told(&Evidence { is_loop: true, spread, ..evidence(tail) })
        };
        assert_eq!(left(1.0, 0.5), (Verdict::DivergentIndex, Confidence::High, Advice::Warn));
        assert_eq!(left(1.0, 0.05).2, Advice::Silent);
        assert_eq!(left(0.1, 0.05), (Verdict::BoundarySplit, Confidence::High, Advice::Silent));
        let reason = |spread| judge(&Evidence { is_loop: true, spread, ..evidence(tail) }).reason;
        assert_eq!(reason(Some(SPREAD)), "lanes leave the loop within one iteration");
        assert_eq!(reason(Some(Spread { share: 0.1, ..SPREAD })), "few warps have lanes that leave the loop apart");
        assert_eq!(reason(None), "a threshold parts few warps");
        let short = Some(Spread { share: 1.0, idle: 0.3, trips: (2.0, 1.4), paid: 2.0, ..SPREAD });
        let short = Evidence { is_loop: true, spread: short, ..evidence(tail) };
        assert_eq!(told(&short).2, Advice::Silent, "the last lane is less than an iteration behind");
        let brief = Some(Spread { share: 1.0, idle: 0.5, trips: (3.0, 1.5), paid: 3.0, ..SPREAD });
        let brief = |body: f64| told(&Evidence { is_loop: true, spread: brief, body, ..evidence(tail) }).2;
        assert_eq!((brief(6.0), brief(60.0)), (Advice::Silent, Advice::Warn), "a turn or two of a short body");
    }

    #[test]
    fn lanes_that_some_numbers_of_the_caller_part_at_once_are_a_note() {
        // `for (…) { if (lane >= m) break; … }`: in the turns that are looked at, those that leave have left.
        let gone = Split { reached: 1.0, ..Split::default() };
        let leaves = |spread: Spread| {
            let spread = Some(Spread { idle: 0.3, trips: (8.0, 5.0), paid: 8.0, ..spread });
            told(&Evidence { is_loop: true, spread, ..evidence(gone) })
        };
        let few = Spread { share: 0.27, is_fixed: false, ..SPREAD };
        assert_eq!(leaves(few), (Verdict::DivergentIndex, Confidence::Low, Advice::Note));
        assert_eq!(leaves(Spread { is_fixed: true, ..few }).2, Advice::Warn);
        assert_eq!(leaves(Spread { share: 0.6, ..few }).2, Advice::Warn);
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

    #[test]
    fn whose_number_data_say_is_no_leader_that_is_known() {
        let long = "neg.s32 %r1, %r1;\n".repeat(20);
        let verdict = |condition: &str| {
            let text = format!(
                "mov.u32 %r2, %tid.x; and.b32 %r3, %r2, 31; mul.wide.u32 %rd2, %r2, 4; ld.global.u32 %r4, [%rd2]; {condition}
                @!%p1 bra B; {long} B: ret;"
            );
            judged(SHAPE, &text)[0].judgement.expect("a judgement").verdict
        };
        assert_eq!(verdict("setp.eq.s32 %p1, %r4, %r3;"), Verdict::DivergentData);
        assert_eq!(verdict("setp.ne.s32 %p2, %r3, %r4; not.pred %p1, %p2;"), Verdict::DivergentData);
        let leader = "setp.eq.s32 %p2, %r3, 0;";
        assert_eq!(verdict(&format!("{leader} setp.eq.and.s32 %p1, %r4, 3, %p2;")), Verdict::LeaderLane);
        // As many lanes lead as there are groups that have the same.
        let groups =
            "shr.u32 %r5, %r2, 2; match.any.sync.b32 %r6, %r5, -1; brev.b32 %r6, %r6; bfind.shiftamt.u32 %r6, %r6;";
        assert_eq!(verdict(&format!("{groups} setp.eq.s32 %p1, %r6, %r3;")), Verdict::DivergentIndex);
        let least = "redux.sync.min.s32 %r6, %r2, -1;";
        assert_eq!(verdict(&format!("{least} setp.eq.s32 %p1, %r6, %r2;")), Verdict::LeaderLane);
        let lead = judged(
            SHAPE,
            &format!("mov.u32 %r2, %tid.x; {least} setp.eq.s32 %p1, %r6, %r2; @!%p1 bra B; {long} B: ret;"),
        );
        assert_eq!((lead[0].split.mean, lead[0].split.witness.map(|lanes| lanes.taken)), (1.0, Some(!1)));
    }
}
