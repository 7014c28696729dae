//! What the sides of a branch cost, and whether ptxas leaves a branch of it at all.
//!
//! The weights, and the limits up to which ptxas predicates a side instead of branching, were measured with CUDA 13.5 on
//! sm_80 and sm_90 over some 1,700 generated kernels; they predict 94 of 100 of them.

use super::cfg::{Block, Cfg, Loop};
use crate::parse::ptx::{CALL, Code, Instruction, Op, Operand, Space, TRIPS, Trips, is_slow, weight};

/// One side of a branch: what runs before the ways meet again.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Side {
    /// Instructions in units of one machine instruction; those of inner loops as often as constants tell, else eight times.
    pub weight: f64,
    /// As much of it as calls are taken to cost whose callees are not seen.
    pub guessed: f64,
    /// What is in it.
    pub has: Traits,
}

impl Side {
    /// Adds what is called, as far as it is seen.
    fn add_call(&mut self, callee: Option<Callee>) {
        let Some(callee) = callee else {
            self.weight += CALL;
            self.guessed += CALL;
            return;
        };
        self.weight += callee.weight;
        if callee.waits {
            self.has = self.has.and(Traits::BARRIER);
        }
    }

    /// What it weighs for sure.
    #[must_use]
    pub fn known(self) -> f64 {
        self.weight - self.guessed
    }
}

/// The sides of a branch.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sides {
    /// What runs only where the branch is taken.
    pub taken: Side,
    /// What runs only where it is not.
    pub other: Side,
    /// What both lead to, and may lead past.
    pub shared: Side,
}

/// What a side has in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traits(u16);

impl Traits {
    /// Atomics, fences, exchanges between lanes.
    pub const BRANCHING: Traits = Traits(1);
    /// A call.
    pub const CALL: Traits = Traits(2);
    /// A trap: the side is not meant to run.
    pub const TRAP: Traits = Traits(4);
    /// A loop.
    pub const LOOP: Traits = Traits(8);
    /// A division or root with a slow path.
    pub const SLOW: Traits = Traits(16);
    /// A load from global memory.
    pub const GLOBAL_LOAD: Traits = Traits(32);
    /// A store.
    pub const STORE: Traits = Traits(64);
    /// A load from any memory but that of parameters.
    pub const LOAD: Traits = Traits(128);
    /// A further branch.
    pub const NESTED: Traits = Traits(256);
    /// A barrier for the whole block.
    pub const BARRIER: Traits = Traits(512);
    /// Something that the hardware does by itself: a copy, work of the tensor cores, what waits for it.
    pub const ASYNC: Traits = Traits(1024);

    /// Whether any of `other` is among them.
    #[must_use]
    pub fn any(self, other: Traits) -> bool {
        self.0 & other.0 != 0
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Traits) -> Traits {
        Traits(self.0 | other.0)
    }
}

/// What is known of a function that is called.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Callee {
    /// The weight of its code.
    pub weight: f64,
    /// Whoever calls it comes to a barrier for the whole block.
    pub waits: bool,
}

/// Finds a function of the module by its name.
pub type Callees<'c> = dyn Fn(&[u8]) -> Option<Callee> + 'c;

/// Whether an instruction makes all threads of the block wait for each other: a barrier, or a call of what comes to one.
#[must_use]
pub fn waits(code: &Code<'_>, one: &Instruction, callees: &Callees<'_>) -> bool {
    is_block_wide(code, one) || called(code, one, callees).is_some_and(|callee| callee.waits)
}

fn called(code: &Code<'_>, one: &Instruction, callees: &Callees<'_>) -> Option<Callee> {
    match code.sources(one).first() {
        Some(Operand::Symbol(name, _)) if one.op == Op::Call => callees(code.names[*name as usize]),
        _ => None,
    }
}

/// Blocks of all sides of a function together that are looked at, for each block that it has.
const VISITS: u64 = 64;

/// The costs of a function's blocks.
#[derive(Debug)]
pub struct Costs<'c> {
    cfg: &'c Cfg,
    blocks: Vec<Side>,
    /// For each loop the turns that it is taken to have.
    trips: Vec<f64>,
    seen: Vec<u32>,
    stamp: u32,
    visits: u64,
}

/// Blocks of a side that are looked at however much was spent on others: one large `switch` leaves no short side behind it
/// without a cost, and the time stays linear.
const FEW: u32 = 64;

impl<'c> Costs<'c> {
    /// Weighs every block.
    #[must_use]
    pub fn new(code: &Code<'_>, cfg: &'c Cfg, callees: &Callees<'_>) -> Costs<'c> {
        let weigh = |block: Block| {
            let mut side = Side::default();
            if cfg.is_cold(block) {
                side.has = Traits::TRAP;
            }
            for at in cfg.instructions(block) {
                let one = &code.instructions[at as usize];
                side.weight += weight(code, one);
                side.has = side.has.and(traits(code, one));
                if one.op == Op::Call {
                    side.add_call(called(code, one, callees));
                }
            }
            if cfg.successors(block).len() > 1 {
                side.has = side.has.and(Traits::NESTED);
            }
            side
        };
        let visits = 4096 + VISITS * u64::from(cfg.end());
        let blocks = (0..cfg.end()).map(weigh).collect();
        let trips = trips_of(code, cfg);
        Costs { cfg, blocks, trips, seen: vec![0; cfg.end() as usize], stamp: 0, visits }
    }

    /// The sides of `block`'s branch that begin with `taken` and `other`, and what both come to before the ways meet for good:
    /// there lanes meet that part here, so it runs once. `None` where the function has too many of them.
    pub fn sides(&mut self, block: Block, taken: Block, other: Block) -> Option<Sides> {
        let stop = self.cfg.ipdom(block);
        let mut lists = [Vec::new(), Vec::new()];
        for (list, start) in lists.iter_mut().zip([taken, other]) {
            self.each_block(block, start, stop, &mut |_, _, here| list.push(here))?;
        }
        let [first, second] = lists;
        // What the second walk came to is marked with its stamp.
        let (shared, first): (Vec<Block>, Vec<Block>) =
            first.into_iter().partition(|here| self.seen[*here as usize] == self.stamp);
        self.stamp += 1;
        shared.iter().for_each(|here| self.seen[*here as usize] = self.stamp);
        let second: Vec<Block> = second.into_iter().filter(|here| self.seen[*here as usize] != self.stamp).collect();
        Some(Sides {
            taken: self.sum(block, &first),
            other: self.sum(block, &second),
            shared: self.sum(block, &shared),
        })
    }

    fn sum(&self, block: Block, blocks: &[Block]) -> Side {
        let mut side = Side::default();
        for here in blocks {
            let inner = || self.cfg.loops_of(*here).take(2).take_while(|one| !self.cfg.is_in_loop(block, *one));
            let times = self.times(inner());
            let own = self.blocks[*here as usize];
            side.weight += own.weight * times;
            side.guessed += own.guessed * times;
            side.has = side.has.and(own.has);
            if inner().next().is_some() || (self.cfg.is_tangled(*here) && !self.cfg.is_tangled(block)) {
                side.has = side.has.and(Traits::LOOP);
            }
        }
        side
    }

    /// Calls `f` with every block that is come to from `start` before `stop`, without `block` itself.
    pub fn each_block(
        &mut self,
        block: Block,
        start: Block,
        stop: Block,
        f: &mut dyn FnMut(&Cfg, &[Side], Block),
    ) -> Option<()> {
        self.stamp += 1;
        let mut few = FEW;
        let mut work = vec![start];
        while let Some(here) = work.pop() {
            if here == stop || here == block || here >= self.cfg.end() || self.seen[here as usize] == self.stamp {
                continue;
            }
            match self.visits.checked_sub(1) {
                Some(left) => self.visits = left,
                None => few = few.checked_sub(1)?,
            }
            self.seen[here as usize] = self.stamp;
            f(self.cfg, &self.blocks, here);
            // Behind a failure nothing runs.
            if !self.cfg.is_cold(here) {
                work.extend(self.cfg.successors(here));
            }
        }
        Some(())
    }

    /// Whether control may come from `start` to `stop` past all blocks that are `walls`. `None` where there is too much to
    /// look at.
    pub fn passes(&mut self, block: Block, start: Block, stop: Block, walls: &dyn Fn(Block) -> bool) -> Option<bool> {
        self.stamp += 1;
        let mut work = vec![start];
        while let Some(here) = work.pop() {
            if here == stop || here >= self.cfg.end() {
                return Some(true);
            }
            if here == block || walls(here) || self.seen[here as usize] == self.stamp {
                continue;
            }
            self.visits = self.visits.checked_sub(1)?;
            self.seen[here as usize] = self.stamp;
            if !self.cfg.is_cold(here) {
                work.extend(self.cfg.successors(here));
            }
        }
        Some(false)
    }

    /// What a block costs by itself.
    #[must_use]
    pub fn block(&self, block: Block) -> Side {
        self.blocks.get(block as usize).copied().unwrap_or_default()
    }

    /// All blocks together, loops counted.
    #[must_use]
    pub fn whole(&self) -> f64 {
        let weigh = |block: Block| self.blocks[block as usize].weight * self.times(self.cfg.loops_of(block).take(2));
        (0..self.cfg.end()).map(weigh).sum()
    }

    /// How often what is within these loops runs.
    fn times(&self, loops: impl Iterator<Item = u32>) -> f64 {
        loops.map(|one| self.trips[one as usize]).product()
    }
}

/// For each loop the turns that it is taken to have.
fn trips_of(code: &Code<'_>, cfg: &Cfg) -> Vec<f64> {
    if cfg.loops.is_empty() {
        return Vec::new();
    }
    let trips = Trips::new(code);
    let of = |one: &Loop| match one.latches[..] {
        [latch] => trips.of(cfg.starts[one.header as usize], cfg.starts[latch as usize + 1] - 1),
        _ => TRIPS,
    };
    cfg.loops.iter().map(of).collect()
}

fn traits(code: &Code<'_>, one: &Instruction) -> Traits {
    match one.op {
        Op::Call => Traits::CALL,
        Op::Trap => Traits::TRAP,
        Op::Elect => Traits::BRANCHING.and(Traits::ASYNC),
        Op::Atom | Op::Red | Op::Fence | Op::Shfl | Op::Vote | Op::Match | Op::Redux | Op::Activemask => {
            Traits::BRANCHING
        }
        Op::Effect | Op::Tensor | Op::TensorEffect => Traits::ASYNC,
        Op::Fetch => Traits::LOAD.and(Traits::ASYNC),
        Op::Brx => Traits::BRANCHING,
        Op::Bar if is_block_wide(code, one) => Traits::BARRIER,
        Op::Bar if one.mods.is_warp() => Traits::BRANCHING,
        Op::St if one.space == Space::Param => Traits::default(),
        Op::St => Traits::STORE,
        Op::Ld if one.space == Space::Param => Traits::default(),
        Op::Ld if matches!(one.space, Space::Global | Space::Generic) => Traits::GLOBAL_LOAD.and(Traits::LOAD),
        Op::Ld => Traits::LOAD,
        _ if is_slow(code, one) => Traits::SLOW,
        _ => Traits::default(),
    }
}

/// Whether it is a barrier that every thread of the block has to come to: no thread count, and threads wait there.
#[must_use]
pub fn is_block_wide(code: &Code<'_>, one: &Instruction) -> bool {
    if one.op != Op::Bar || one.mods.is_warp() || one.mods.is_cluster() || one.mods.is_arrive() {
        return false;
    }
    // `bar.red` has a predicate behind the barrier's number, `bar.sync` nothing.
    let least = if one.mods.is_reduction() { 2 } else { 1 };
    code.sources(one).len() <= least
}

/// Whether ptxas predicates both sides instead of branching. Where the condition is the same for the warp it gives up
/// earlier.
#[must_use]
pub fn is_predicated(taken: Side, other: Side, is_uniform: bool) -> bool {
    let has = taken.has.and(other.has);
    let stops = Traits::BRANCHING.and(Traits::CALL).and(Traits::TRAP).and(Traits::LOOP).and(Traits::SLOW);
    let loads_and_stores =
        [taken, other].iter().any(|side| side.has.any(Traits::GLOBAL_LOAD) && side.has.any(Traits::STORE));
    if has.any(stops) || loads_and_stores {
        return false;
    }
    let (mut one, mut two) = if is_uniform { (6.0, 6.0) } else { (8.0, 7.0) };
    if has.any(Traits::GLOBAL_LOAD) && !has.any(Traits::STORE) {
        (one, two) = (19.0, 18.0);
    }
    if has.any(Traits::NESTED) {
        (one, two) = (one - 2.0, two - 2.0);
    }
    let (less, more) = (taken.weight.min(other.weight), taken.weight.max(other.weight));
    let limit = if less > 0.0 { two } else { one };
    more <= limit && (!is_uniform || less <= 5.0)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{SHAPE, judged, with_code};
    use super::*;

    /// The weights of the sides of the first branch.
    fn sides(text: &str) -> (Side, Side) {
        judged(SHAPE, text)[0].sides.expect("two sides")
    }

    #[test]
    fn a_side_weighs_what_runs_before_the_ways_meet() {
        let text = "@%p1 bra A; add.s32 %r1, %r1, 1; add.s32 %r1, %r1, 1; bra B; A: neg.s32 %r1, %r1; B: not.b32 %r1, %r1; ret;";
        let (taken, other) = sides(text);
        assert_eq!((taken.weight, other.weight), (1.0, 2.0));
        let (taken, other) = sides("@%p1 bra A; add.s32 %r1, %r1, 1; A: not.b32 %r1, %r1; ret;");
        assert_eq!((taken.weight, other.weight), (0.0, 1.0));
        let (taken, other) = sides("@%p1 ret; add.s32 %r1, %r1, 1; ret;");
        assert_eq!((taken.weight, other.weight), (0.0, 1.0));
    }

    #[test]
    fn what_both_sides_lead_to_belongs_to_neither() {
        // if (p1 || p2) { A }
        let text = "@%p1 bra A; not.b32 %r1, %r1; @!%p2 bra B; A: add.s32 %r1, %r1, 1; add.s32 %r1, %r1, 1; B: ret;";
        let branches = judged(SHAPE, text);
        let sides = branches[0].sides.expect("two sides");
        assert_eq!((sides.0.weight, sides.1.weight, branches[0].shared.weight), (0.0, 2.0, 2.0));
        assert_eq!(branches[1].sides.map(|(taken, other)| (taken.weight, other.weight)), Some((0.0, 2.0)));
        // if (p1 && p2) { A } else { B }
        let text = "@!%p1 bra B; @!%p2 bra B; A: neg.s32 %r1, %r1; bra C; B: add.s32 %r1, %r1, 1; add.s32 %r1, %r1, 1; C: ret;";
        let branches = judged(SHAPE, text);
        let sides = branches[0].sides.expect("two sides");
        assert_eq!((sides.0.weight, sides.1.weight, branches[0].shared.weight), (0.0, 2.0, 2.0));
    }

    #[test]
    fn a_loop_in_a_side_is_counted_eight_times_and_a_loop_in_it_too() {
        let text = "@%p1 bra A; L: neg.s32 %r1, %r1; @%p2 bra L; A: ret;";
        assert_eq!(sides(text).1.weight, 16.0);
        assert!(sides(text).1.has.any(Traits::LOOP));
        let two = "@%p1 bra A; M: brev.b32 %r1, %r1; L: neg.s32 %r1, %r1; @%p2 bra L; @%p3 bra M; A: ret;";
        assert_eq!(sides(two).1.weight, 8.0 * 2.0 + 64.0 * 2.0);
    }

    #[test]
    fn what_a_side_holds_is_told() {
        let has = |line: &str| sides(&format!("@%p1 bra A; {line}; A: ret;")).1.has;
        for (line, expected) in [
            ("ld.global.u32 %r1, [%rd1]", Traits::GLOBAL_LOAD.and(Traits::LOAD)),
            ("ld.shared.u32 %r1, [%r2]", Traits::LOAD),
            ("ld.param.u32 %r1, [n]", Traits::default()),
            ("st.global.u32 [%rd1], %r1", Traits::STORE),
            ("atom.global.add.u32 %r1, [%rd1], 1", Traits::BRANCHING),
            ("bar.sync 0", Traits::BARRIER),
            ("barrier.sync 0", Traits::BARRIER),
            ("bar.sync 1, 64", Traits::default()),
            ("bar.warp.sync -1", Traits::BRANCHING),
            ("call.uni f, (x)", Traits::CALL),
            ("div.s32 %r1, %r2, %r3", Traits::SLOW),
            ("rem.u32 %r1, %r2, %r3", Traits::SLOW),
            ("div.s32 %r1, %r2, 7", Traits::default()),
            ("rem.u32 %r1, %r2, 7", Traits::default()),
            ("div.rn.f32 %f1, %f2, 0f40400000", Traits::SLOW),
            ("div.approx.f32 %f1, %f2, %f3", Traits::default()),
            ("sqrt.rn.f32 %f1, %f2", Traits::SLOW),
        ] {
            assert_eq!(has(line), expected, "{line}");
        }
        assert!(sides("@%p1 bra A; trap; A: ret;").1.has.any(Traits::TRAP));
    }

    #[test]
    fn an_integer_divided_by_a_constant_is_multiplied() {
        // nvcc makes 5 to 8 instructions of `i / 7`, and 7 to 10 of `i % 7`.
        let weight = |line: &str| sides(&format!("@%p1 bra A; {line}; A: ret;")).1.weight;
        assert_eq!([weight("div.s32 %r1, %r2, 7"), weight("rem.u32 %r1, %r2, 7")], [6.0, 8.0]);
        assert_eq!([weight("div.s32 %r1, %r2, %r3"), weight("rem.u32 %r1, %r2, %r3")], [26.0, 21.0]);
    }

    #[test]
    fn instructions_weigh_what_ptxas_makes_of_them() {
        let weight = |line: &str| sides(&format!("@%p1 bra A; {line}; A: ret;")).1.weight;
        for (line, expected) in [
            ("add.f64 %rd1, %rd1, %rd2", 1.0),
            ("mul.lo.s64 %rd1, %rd1, %rd2", 4.0),
            ("mad.lo.s64 %rd1, %rd1, %rd2, %rd3", 4.0),
            ("mul.wide.s32 %rd1, %r1, %r2", 1.0),
            ("xor.b64 %rd1, %rd1, %rd2", 2.0),
            ("add.s64 %rd1, %rd1, %rd2", 1.0),
            ("mov.u32 %r1, 7", 0.5),
            // nvcc writes constants into stores for sm_120; for others it moves them first.
            ("st.global.u32 [%rd1], 7", 1.5),
            ("st.global.v2.u32 [%rd1], {7, %r1}", 1.5),
            ("st.global.u32 [%rd1], 0", 1.0),
            ("st.global.u32 [%rd1], %r1", 1.0),
        ] {
            assert_eq!(weight(line), expected, "{line}");
        }
    }

    #[test]
    fn what_calls_are_taken_to_cost_is_told_apart() {
        let side = sides("@%p1 bra A; L: neg.s32 %r1, %r1; call.uni f, (x); @%p2 bra L; A: ret;").1;
        assert_eq!((side.weight, side.guessed, side.known()), (8.0 * 23.0, 8.0 * 20.0, 8.0 * 3.0));
    }

    #[test]
    fn a_barrier_with_a_thread_count_is_for_some_of_the_block() {
        let wide = |line: &str| with_code(&format!("{line}; ret;"), |code| is_block_wide(code, &code.instructions[0]));
        for (line, expected) in [
            ("bar.sync 0", true),
            ("bar.sync %r1", true),
            ("barrier.sync.aligned 0", true),
            ("bar.red.popc.u32 %r1, 0, %p1", true),
            ("bar.red.popc.u32 %r1, 0, 64, %p1", false),
            ("bar.red.and.pred %p2, 0, !%p1", true),
            ("bar.sync 1, 64", false),
            ("bar.arrive 1, 64", false),
            ("bar.warp.sync -1", false),
            ("barrier.cluster.wait", false),
        ] {
            assert_eq!(wide(line), expected, "{line}");
        }
    }

    #[test]
    fn sides_up_to_the_measured_limits_are_predicated() {
        let side = |weight: f64, has: Traits| Side { weight, has, ..Side::default() };
        let plain = |one: f64, two: f64, uniform| {
            is_predicated(side(one, Traits::default()), side(two, Traits::default()), uniform)
        };
        assert!(plain(8.0, 0.0, false) && !plain(9.0, 0.0, false) && plain(6.0, 0.0, true) && !plain(7.0, 0.0, true));
        assert!(plain(7.0, 7.0, false) && !plain(8.0, 8.0, false) && plain(5.0, 5.0, true) && !plain(6.0, 6.0, true));
        let with = |has: Traits| is_predicated(side(2.0, has), side(0.0, Traits::default()), false);
        assert!(with(Traits::STORE) && with(Traits::LOAD) && with(Traits::GLOBAL_LOAD.and(Traits::LOAD)));
        assert!(!with(Traits::GLOBAL_LOAD.and(Traits::STORE)) && !with(Traits::BRANCHING) && !with(Traits::CALL));
        assert!(!with(Traits::TRAP) && !with(Traits::LOOP) && !with(Traits::SLOW));
        assert!(is_predicated(side(19.0, Traits::GLOBAL_LOAD), side(0.0, Traits::default()), false));
        // With a load in one of them ptxas 13 predicates two sides of up to 18 instructions.
        let two = |weight: f64| [Traits::GLOBAL_LOAD, Traits::default()].map(|has| side(weight, has));
        let both = |[taken, other]: [Side; 2]| is_predicated(taken, other, false);
        assert!(both(two(18.0)) && !both(two(18.5)));
    }
}
