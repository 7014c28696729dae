//! After how many turns lanes leave a loop: counted where every variable moves by a constant, else followed turn by turn, to
//! the first of its exits.

use hashbrown::HashMap;

use super::cfg::Block;
use super::eval::{Evaluator, Found, Stop};
use super::function::guarded_loop;
use super::graph::{Node, Source};
use super::steps::is_nowhere;
use super::value::{LANES, Value};
use crate::parse::ptx::{Cond, Op};

/// Turns that are followed one by one, and those that are while there is time.
const FOLLOWED: usize = 48;
const FOLLOWED_AT_MOST: usize = 4096;

/// Turns that are counted at most, where every variable of the loop moves by a constant; a lane that takes so many never
/// leaves.
const COUNTED: u64 = 1 << 21;

/// Turns that are looked at, to see whether what holds of two of them, or of the last, holds of those between.
const PROBED: [u64; 5] = [2, 3, 7, 30, 1001];

/// Turns of one thread that a person waits for.
const REALISTIC: f64 = 16384.0;

/// Blocks that only jump, in a row, between an exit and the header of its loop.
const JUMPS: usize = 4;

/// Exits of a loop that are looked at together, at most.
const EXITS: usize = 8;

/// How far apart the lanes of a warp leave a loop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Share of warps whose lanes leave two or more iterations apart.
    pub share: f64,
    /// Share of the turns of the warps' lanes in which a lane has left already, or never came in: the mean of all
    /// environments. Lanes that an incomplete warp lacks have no turns.
    pub idle: f64,
    /// Mean iterations of the longest lane of a warp, and of a lane.
    pub trips: (f64, f64),
    /// Mean iterations of the warp that a lane is in, whether the lane runs them or not.
    pub paid: f64,
    /// Share of environments in which the block's threads leave at different iterations.
    pub parts: f64,
    /// Share of environments in which some warp comes to the loop, and may run it so often.
    pub reached: f64,
    /// Never more than one of several warps has lanes that leave so far apart.
    pub lone: bool,
    /// The iterations are the same in all environments, and no means of numbers that were tried.
    pub is_fixed: bool,
    /// The longest lanes of warps run different numbers of iterations.
    pub differs: bool,
    /// Lanes were still in the loop when they were followed no further: the iterations are more than are told.
    pub is_cut: bool,
}

impl Spread {
    /// Iterations by which a lane's warp stays longer than the mean lane.
    #[must_use]
    pub fn behind(&self) -> f64 {
        self.paid - self.trips.1
    }

    /// Instructions that a lane's warp issues without it, where a turn has so many.
    #[must_use]
    pub fn loss(&self, body: f64) -> f64 {
        self.behind() * body
    }

    /// Share of all turns that are idle, whatever number they were tried with: long loops count for more than in the mean.
    #[must_use]
    pub fn idle_of_all(&self) -> f64 {
        if self.paid > 0.0 { self.behind() / self.paid } else { 0.0 }
    }
}

/// The lanes at a loop.
struct Entry {
    /// Those that come to it, or to the guard before it.
    comes: Value,
    /// Those that enter it.
    enters: Value,
    /// No environment comes to it, and all were taken to.
    is_assumed: bool,
}

/// A place where lanes leave a loop.
#[derive(Debug, Clone, Copy)]
struct Exit {
    block: Block,
    /// Where those go that stay.
    inside: Block,
    /// Every turn comes to it, or is taken to.
    is_always: bool,
    /// A turn that a lane leaves in is one that it has run: nothing is left of it.
    ends_turn: bool,
    /// It is the one that is asked about.
    is_own: bool,
}

/// Which of the other exits of a loop are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Others {
    /// All that no data decide.
    All,
    /// Those of them that every turn comes to.
    Always,
    /// None.
    None,
}

/// When lanes leave a loop.
struct Turns {
    /// The turn that each lane leaves in, from 0.
    at: Value,
    /// The turns that it has run by then.
    run: Value,
    /// The lanes that leave at the exit that is asked about.
    own: Value,
    /// Lanes were followed no further, and some had not left.
    is_cut: bool,
}

/// What the warps of a block do at a loop, in one environment.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Seen {
    /// Warps that enter it, and those of them whose lanes leave apart.
    warps: f64,
    split: f64,
    /// Their lanes that come to it.
    lanes: f64,
    /// The turns of the longest lanes, of the warps in which the lanes are, and of the lanes.
    longest: f64,
    paid: f64,
    run: f64,
    /// Threads leave in different turns.
    parts: bool,
    /// The longest lanes of warps run different numbers of turns.
    differs: bool,
}

impl Seen {
    /// Mean turns of a warp.
    fn turns(&self) -> f64 {
        self.longest / self.warps
    }

    fn idle(&self) -> f64 {
        if self.paid > 0.0 { 1.0 - self.run / self.paid } else { 0.0 }
    }
}

impl Evaluator<'_, '_, '_> {
    /// How far apart lanes leave `one` through the branch of `block`; nothing where that cannot be told, or none leave there.
    ///
    /// # Errors
    /// When that is more than can be followed.
    pub fn spread(&mut self, one: u32, block: Block) -> Found<Option<Spread>> {
        let Some((turns, is_whole)) = self.turns(one, block)? else { return Ok(None) };
        let Entry { comes, enters, is_assumed } = self.entry(one)?;
        if is_nowhere(&turns.own.zip(&enters, |own, enters| own & enters)) {
            return Ok(None);
        }
        let environments = 0..self.extent.environments.len();
        let seen = environments.filter_map(|environment| self.seen(environment, &turns.run, &comes, &enters));
        let seen: Vec<Seen> = seen.collect();
        Ok(self.spread_of(&seen, turns.is_cut, is_whole, is_assumed))
    }

    /// What the warps do in one environment; `None` where none of them enters the loop.
    fn seen(&self, environment: usize, run: &Value, comes: &Value, enters: &Value) -> Option<Seen> {
        let mut seen = Seen::default();
        let (mut shortest, mut furthest) = (u64::MAX, 0);
        let mut first = None;
        for warp in 0..self.extent.warps() {
            let threads = warp * LANES..((warp + 1) * LANES).min(self.extent.threads);
            let inside = threads.clone().filter(|thread| enters.at(environment, *thread) != 0);
            let inside: Vec<u64> = inside.map(|thread| run.at(environment, thread)).collect();
            let (Some(most), Some(least)) = (inside.iter().max(), inside.iter().min()) else { continue };
            let lanes = threads.filter(|thread| comes.at(environment, *thread) != 0).count().max(inside.len());
            (shortest, furthest) = (shortest.min(*least), furthest.max(*most));
            seen.differs |= *first.get_or_insert(*most) != *most;
            seen.split += if most - least >= 2 { 1.0 } else { 0.0 };
            #[allow(clippy::cast_precision_loss, reason = "turns are counted to two millions")]
            let (most, lanes, run) = (*most as f64, lanes as f64, inside.iter().sum::<u64>() as f64);
            seen.warps += 1.0;
            seen.lanes += lanes;
            seen.longest += most;
            seen.paid += most * lanes;
            seen.run += run;
        }
        seen.parts = shortest < furthest;
        (seen.warps > 0.0).then_some(seen)
    }

    /// The mean of all environments that a kernel is run in.
    fn spread_of(&self, seen: &[Seen], is_cut: bool, is_whole: bool, is_assumed: bool) -> Option<Spread> {
        let first = seen.first()?;
        let is_same = seen.iter().all(|one| (one.longest, one.run) == (first.longest, first.run));
        // No thread runs so many turns: with such numbers the kernel is not launched. Where they are all that there is to
        // it, it is.
        let is_real = |one: &&Seen| (is_same && !is_cut) || one.turns() <= REALISTIC;
        let real: Vec<&Seen> = seen.iter().filter(is_real).collect();
        #[allow(clippy::cast_precision_loss, reason = "there are 26 environments")]
        let (count, environments) = (real.len() as f64, self.extent.environments.len().max(1) as f64);
        let mean = |f: fn(&Seen) -> f64| real.iter().map(|one| f(one)).sum::<f64>() / count.max(1.0);
        let most_split = real.iter().map(|one| one.split).fold(0.0, f64::max);
        (count > 0.0).then(|| Spread {
            share: mean(|one| one.split / one.warps),
            idle: mean(Seen::idle),
            trips: (mean(Seen::turns), mean(|one| one.run / one.lanes)),
            paid: mean(|one| one.paid / one.lanes),
            parts: mean(|one| if one.parts { 1.0 } else { 0.0 }),
            reached: if is_assumed { 0.0 } else { count / environments },
            lone: most_split <= 1.0 && self.extent.warps() > 1,
            is_fixed: is_same && is_whole && !is_cut,
            differs: seen.iter().any(|one| one.differs),
            is_cut,
        })
    }

    /// When lanes leave a loop, and whether all exits that they are meant to leave it by were looked at. As many are as can
    /// be followed.
    fn turns(&mut self, one: u32, block: Block) -> Found<Option<(Turns, bool)>> {
        let blocks = self.exit_blocks(one, block);
        let is_few = self.graph.cfg().loops[one as usize].exits.len() <= EXITS;
        let mut tried = usize::MAX;
        for others in [Others::All, Others::Always, Others::None] {
            let exits = self.exits(one, block, &blocks, others)?;
            let is_whole = is_few && exits.len() == blocks.len();
            if exits.len() == tried {
                continue;
            }
            tried = exits.len();
            // Something has to be left for looking at fewer.
            let (all, is_last) = (self.left(), exits.len() == 1);
            let some = if is_last { all } else { all / 2 };
            self.allow(some);
            let turns = self.discovering(one, &mut Vec::new(), |this, one, stepped| this.trips(one, &exits, stepped));
            let left = self.left();
            self.allow(all - (some - left));
            match turns {
                Ok(Some(turns)) if is_last || !turns.is_cut => return Ok(Some((turns, is_whole))),
                Ok(_) | Err(Stop::OverBudget) if !is_last => {}
                other => return Ok(other?.map(|turns| (turns, is_whole))),
            }
        }
        Ok(None)
    }

    /// The blocks that lanes leave a loop from, and are meant to, with the one that is asked about, in the order in which a
    /// turn comes to them. Of a loop with very many that one alone.
    fn exit_blocks(&self, one: u32, own: Block) -> Vec<Block> {
        let cfg = self.graph.cfg();
        let exits = &cfg.loops[one as usize].exits;
        let mut blocks = vec![own];
        if exits.len() <= EXITS {
            blocks.extend(exits.iter().filter(|(_, to)| !cfg.is_cold(*to)).map(|(from, _)| *from));
        }
        blocks.sort_unstable_by_key(|block| cfg.order(*block));
        blocks.dedup();
        blocks
    }

    /// The exit at `own`, and of the others those that can be followed, in the order in which a turn comes to them.
    fn exits(&self, one: u32, own: Block, blocks: &[Block], others: Others) -> Found<Vec<Exit>> {
        let counts = |block: &&Block| **block == own || self.counts(one, **block, others);
        blocks.iter().filter(counts).map(|block| self.exit(one, *block, *block == own)).collect()
    }

    /// Whether another exit is looked at.
    fn counts(&self, one: u32, block: Block, others: Others) -> bool {
        let cfg = self.graph.cfg();
        // One that lies in an inner loop is come to more than once.
        let is_followed = others != Others::None && cfg.loop_of(block) == Some(one) && cfg.successors(block).len() == 2;
        is_followed && (others == Others::All || self.is_always(one, block)) && !self.hangs_on_data(one, block)
    }

    /// Whether every turn of a loop comes to a block.
    fn is_always(&self, one: u32, block: Block) -> bool {
        let cfg = self.graph.cfg();
        cfg.loops[one as usize].latches.iter().all(|latch| cfg.dominates(block, *latch))
    }

    /// Whether data decide there, or where the way to it parts from others within the loop.
    fn hangs_on_data(&self, one: u32, block: Block) -> bool {
        let cfg = self.graph.cfg();
        let above = std::iter::successors(Some(block), |block| cfg.idom(*block));
        let mut inside = above.take_while(|above| cfg.is_in_loop(*above, one));
        let by_data = |above: Block| {
            let decision = self.decisions[above as usize];
            decision.is_none_or(|decision| self.known[decision.node.0 as usize].data)
        };
        let decides = |above: Block| above == block || !cfg.dominates(cfg.ipdom(above), block);
        inside.any(|above| cfg.successors(above).len() > 1 && decides(above) && by_data(above))
    }

    fn exit(&self, one: u32, block: Block, is_own: bool) -> Found<Exit> {
        let cfg = self.graph.cfg();
        let inside = cfg.successors(block).iter().copied().find(|to| cfg.is_in_loop(*to, one));
        let inside = inside.ok_or(Stop::OverBudget)?;
        let is_always = is_own || self.is_always(one, block);
        let ends_turn = cfg.loops[one as usize].latches.contains(&block) || self.only_jumps(one, inside);
        Ok(Exit { block, inside, is_always, ends_turn, is_own })
    }

    /// Whether nothing but jumps stands between a block and the header of the loop: a compiler may write the way back and the
    /// way out either way around.
    fn only_jumps(&self, one: u32, from: Block) -> bool {
        let cfg = self.graph.cfg();
        let header = cfg.loops[one as usize].header;
        let next = |block: &Block| match *cfg.successors(*block) {
            [next] if cfg.instructions(*block).len() == 1 && *block != header => Some(next),
            _ => None,
        };
        std::iter::successors(Some(from), next).take(JUMPS).any(|block| block == header)
    }

    /// The first of the loops that follow one another at once up to this one: whoever leaves one of them enters the next, in
    /// whatever turn that is.
    fn first_in_row(&self, one: u32) -> u32 {
        let cfg = self.graph.cfg();
        let before = |one: &u32| {
            let header = cfg.loops[*one as usize].header;
            cfg.idom(header).and_then(|above| cfg.left_between(above, header))
        };
        std::iter::successors(Some(one), before).last().unwrap_or(one)
    }

    /// The lanes that come to a loop, and those of them that enter it.
    fn entry(&mut self, one: u32) -> Found<Entry> {
        let first = self.first_in_row(one);
        let entry = self.entry_from_outside(first)?;
        // What stands before the first of several loops is no guard of the last.
        Ok(if first == one { entry } else { Entry { comes: entry.enters.clone(), ..entry } })
    }

    /// The same of a loop that none is left for.
    fn entry_from_outside(&mut self, one: u32) -> Found<Entry> {
        let cfg = self.graph.cfg();
        let header = cfg.loops[one as usize].header;
        let Some(above) = cfg.idom(header) else {
            return Ok(Entry { comes: Value::constant(1), enters: Value::constant(1), is_assumed: false });
        };
        let active = self.active(above)?;
        let outside = cfg.predecessors(header).iter().filter(|from| !cfg.is_back_edge(**from, header));
        let condition = if outside.eq([&above]) { self.along(above, header)? } else { None };
        let enters = condition.map_or_else(|| active.clone(), |condition| active.zip(&condition, |a, b| a & b));
        if is_nowhere(&enters)
            && let Some(assumed) = self.assumed(header)?
        {
            return Ok(Entry { comes: assumed.clone(), enters: assumed, is_assumed: true });
        }
        // A block of its own may stand before the loop.
        let before = cfg.idom(above).filter(|_| cfg.successors(above).len() == 1);
        let guard = [Some(above), before].into_iter().flatten().find(|guard| guarded_loop(cfg, *guard) == Some(one));
        let comes = match guard {
            Some(guard) => self.active(guard)?,
            None => enters.clone(),
        };
        Ok(Entry { comes, enters, is_assumed: false })
    }

    /// When each lane leaves the loop; `None` where that cannot be told.
    fn trips(&mut self, one: u32, exits: &[Exit], stepped: &[Node]) -> Found<Option<Turns>> {
        let enters = self.entry(one)?.enters;
        let start = self.entered_with(one, stepped)?;
        for exit in exits {
            self.staying_at(one, *exit, &start)?;
        }
        if stepped.is_empty() {
            // Nothing changes: who does not leave at once stays.
            return Ok(None);
        }
        let first = self.advanced(one, &start, stepped)?;
        let second = self.advanced(one, &first, stepped)?;
        if let Some(moves) = constant_moves(&start, &first, &second)
            && let Some(turns) = self.first_of(one, exits, &Moving { start: &start, moves: &moves }, &enters)?
        {
            return Ok(Some(turns));
        }
        self.followed(one, exits, vec![second, first, start], enters, stepped).map(Some)
    }

    /// When lanes leave at the first of several exits, each of which is counted by itself.
    fn first_of(&mut self, one: u32, exits: &[Exit], moving: &Moving<'_>, enters: &Value) -> Found<Option<Turns>> {
        let mut turns: Option<Turns> = None;
        for exit in exits {
            let Some(at) = self.leaving_turn(one, *exit, moving, enters)? else { return Ok(None) };
            let run = at.map(|at| at + u64::from(exit.ends_turn));
            let own = Value::constant(u64::from(exit.is_own));
            turns = Some(match turns {
                None => Turns { at, run, own, is_cut: false },
                Some(before) => {
                    let is_earlier = at.zip(&before.at, |at, before| u64::from(at < before));
                    Turns {
                        run: is_earlier.choose(&run, &before.run, self.extent),
                        own: is_earlier.choose(&own, &before.own, self.extent),
                        at: is_earlier.choose(&at, &before.at, self.extent),
                        is_cut: false,
                    }
                }
            });
        }
        // A loop that many lanes never leave is not understood.
        let is_told = |turns: &Turns| self.share_of(&never(&turns.at, enters)) <= 0.5;
        Ok(turns.filter(is_told))
    }

    /// Share of all threads for which a value is not 0.
    fn share_of(&self, value: &Value) -> f64 {
        let (mut some, mut all) = (0_usize, 0_usize);
        for environment in 0..self.extent.environments.len() {
            let row = value.row(environment);
            some += row.iter().filter(|one| **one != 0).count() * (self.extent.threads / row.len().max(1));
            all += self.extent.threads;
        }
        #[allow(clippy::cast_precision_loss, reason = "there are 26 environments, and 1024 threads")]
        let share = some as f64 / all.max(1) as f64;
        share
    }

    /// The turn in which each lane leaves at an exit if it leaves at no other, from 0; [`COUNTED`] for none. `None` where it
    /// cannot be counted.
    fn leaving_turn(&mut self, one: u32, exit: Exit, moving: &Moving<'_>, enters: &Value) -> Found<Option<Value>> {
        if !exit.is_always {
            return Ok(None);
        }
        match self.solved(one, exit, moving, enters)? {
            None => self.bisected(one, exit, moving),
            turn => Ok(turn),
        }
    }

    /// Follows the lanes turn by turn, from the first of `known` turns, which stand last first.
    fn followed(
        &mut self,
        one: u32,
        exits: &[Exit],
        mut known: Vec<HashMap<Node, Value>>,
        enters: Value,
        stepped: &[Node],
    ) -> Found<Turns> {
        let mut turns =
            Turns { at: Value::constant(0), run: Value::constant(0), own: Value::constant(0), is_cut: false };
        let mut alive = enters;
        let mut now = known.pop().unwrap_or_default();
        // Most loops are short; for a long one something has to be left for other branches.
        let reserve = self.left() / 4 * 3;
        let mut turn = 0;
        loop {
            if turn >= FOLLOWED_AT_MOST as u64 || (turn >= FOLLOWED as u64 && self.left() < reserve) {
                turns.run = alive.choose(&Value::constant(turn), &turns.run, self.extent);
                turns.own = alive.choose(&Value::constant(1), &turns.own, self.extent);
                return Ok(Turns { is_cut: true, ..turns });
            }
            for exit in exits {
                let staying = self.staying_at(one, *exit, &now)?;
                let leaves = alive.zip(&staying, |alive, staying| alive & (1 - staying));
                alive = alive.zip(&staying, |alive, staying| alive & staying);
                self.spend(turns.run.size() + alive.size())?;
                let run = Value::constant(turn + u64::from(exit.ends_turn));
                turns.run = leaves.choose(&run, &turns.run, self.extent);
                turns.own = leaves.choose(&Value::constant(u64::from(exit.is_own)), &turns.own, self.extent);
            }
            if is_nowhere(&alive) {
                return Ok(turns);
            }
            let next = match known.pop() {
                Some(next) => next,
                None => self.advanced(one, &now, stepped)?,
            };
            now = next;
            let size: usize = now.values().map(Value::size).sum();
            self.spend(size)?;
            turn += 1;
        }
    }

    /// The turn in which two numbers become equal that a constant moves towards each other, where lanes leave once they are.
    /// `None` where that is not so.
    fn solved(&mut self, one: u32, exit: Exit, moving: &Moving<'_>, enters: &Value) -> Found<Option<Value>> {
        let Some((a, b, bits)) = self.left_once_equal(exit) else { return Ok(None) };
        let mut apart = |now: HashMap<Node, Value>| {
            self.within(one, now, |this| {
                let (a, b) = (this.value(a, exit.block)?, this.value(b, exit.block)?);
                Ok(a.zip(&b, u64::wrapping_sub))
            })
        };
        let (first, second) = (apart(moving.start.clone())?, apart(moving.after(&Value::constant(1)))?);
        let whole = |value: u64| (value << (64 - bits)).cast_signed() >> (64 - bits);
        let step = first.zip(&second, |first, second| second.wrapping_sub(first));
        for turn in PROBED {
            let there = apart(moving.after(&Value::constant(turn)))?;
            let expected = first.zip(&step, |first, step| first.wrapping_add(step.wrapping_mul(turn)));
            if !is_nowhere(&expected.zip(&there, |a, b| u64::from(whole(a) != whole(b)))) {
                return Ok(None);
            }
        }
        let count = first.zip(&second, |first, second| {
            let (way, step) = (whole(first.wrapping_neg()), whole(second.wrapping_sub(first)));
            match way.checked_div(step) {
                Some(count) if count >= 0 && count.wrapping_mul(step) == way => count.cast_unsigned().min(COUNTED),
                None if way == 0 => 0,
                _ => COUNTED,
            }
        });
        // The test may stand behind the step: then it is one turn fewer, for all lanes alike. Lanes that do not enter run
        // none.
        Ok(Some(count.zip(enters, u64::wrapping_mul)))
    }

    /// The two integers whose equality lets lanes leave at an exit, and their bits.
    fn left_once_equal(&self, exit: Exit) -> Option<(Node, Node, u32)> {
        let decision = self.decisions[exit.block as usize]?;
        let Source::Result { instruction, place: 0 } = self.graph.source(decision.node) else { return None };
        let test = &self.graph.code().instructions[instruction as usize];
        let [a, b] = *self.graph.inputs(decision.node) else { return None };
        let is_equality = test.op == Op::Setp && matches!(test.cond, Cond::Eq | Cond::Ne) && !test.kind.is_float();
        let is_taken_once_equal = (test.cond == Cond::Eq) != decision.negated;
        let stays_if_taken = self.graph.cfg().successors(exit.block).first() == Some(&exit.inside);
        let leaves = is_taken_once_equal != stays_if_taken;
        (is_equality && leaves).then(|| (a, b, test.kind.width().clamp(1, 64)))
    }

    /// The same by bisection: every variable moves by a constant.
    fn bisected(&mut self, one: u32, exit: Exit, moving: &Moving<'_>) -> Found<Option<Value>> {
        let mut low = Value::constant(0);
        let mut high = Value::constant(COUNTED);
        for _ in 0..=COUNTED.ilog2() {
            let middle = low.zip(&high, u64::midpoint);
            let staying = self.staying_at(one, exit, &moving.after(&middle))?;
            let one_more = middle.zip(&high, |middle, high| (middle + 1).min(high));
            low = staying.choose(&one_more, &low, self.extent);
            high = staying.choose(&high, &middle, self.extent);
            self.spend(low.size() + high.size())?;
        }
        // The test has to stay true up to there, or the count means nothing.
        let parts = [3, 6, 9].map(|part| low.map(|low| low * part / 10));
        for count in parts.into_iter().chain(PROBED.map(Value::constant)) {
            let staying = self.staying_at(one, exit, &moving.after(&count))?;
            let before = count.zip(&low, |count, low| u64::from(count < low));
            let wrong = before.zip(&staying, |before, staying| before & (1 - staying));
            if !is_nowhere(&wrong) {
                return Ok(None);
            }
        }
        Ok(Some(low))
    }

    /// The lanes that an exit leaves in the loop.
    fn staying_at(&mut self, one: u32, exit: Exit, now: &HashMap<Node, Value>) -> Found<Value> {
        self.within(one, now.clone(), |this| {
            let staying = this.along(exit.block, exit.inside)?.unwrap_or_else(|| Value::constant(1));
            if exit.is_always {
                return Ok(staying);
            }
            let comes = this.active(exit.block)?;
            Ok(comes.zip(&staying, |comes, staying| 1 - (comes & (1 - staying))))
        })
    }

    /// What a value is for each lane when it leaves a loop by its only exit, where the turns are counted; `None` where they
    /// cannot be.
    pub(super) fn counted_to_exit(
        &mut self,
        node: Node,
        one: u32,
        from: Block,
        stepped: &[Node],
    ) -> Found<Option<Value>> {
        let exit = self.exit(one, from, true)?;
        let start = self.entered_with(one, stepped)?;
        self.staying_at(one, exit, &start)?;
        self.within(one, start.clone(), |this| this.value(node, from))?;
        let first = self.advanced(one, &start, stepped)?;
        let second = self.advanced(one, &first, stepped)?;
        let Some(moves) = constant_moves(&start, &first, &second) else { return Ok(None) };
        let enters = self.entry(one)?.enters;
        let moving = Moving { start: &start, moves: &moves };
        let Some(turn) = self.leaving_turn(one, exit, &moving, &enters)? else { return Ok(None) };
        if !is_nowhere(&never(&turn, &enters)) {
            return Ok(None);
        }
        let value = self.within(one, moving.after(&turn), |this| this.value(node, from))?;
        Ok(Some(value.condensed(self.extent)))
    }
}

/// The lanes that enter a loop and never leave it.
fn never(turn: &Value, enters: &Value) -> Value {
    turn.zip(enters, |turn, enters| u64::from(turn >= COUNTED) & enters)
}

/// Variables of a loop, each of which moves by as much in every turn.
struct Moving<'m> {
    start: &'m HashMap<Node, Value>,
    moves: &'m HashMap<Node, Value>,
}

impl Moving<'_> {
    /// Where they are after `count` turns.
    fn after(&self, count: &Value) -> HashMap<Node, Value> {
        let after = |(node, before): (&Node, &Value)| {
            let way = self.moves[node].zip(count, u64::wrapping_mul);
            let low = narrowest(&[before]);
            (*node, before.zip(&way, |before, way| before.wrapping_add(way) & low))
        };
        self.start.iter().map(after).collect()
    }
}

/// By how much each variable moves in an iteration, where that does not change.
fn constant_moves(
    start: &HashMap<Node, Value>,
    first: &HashMap<Node, Value>,
    second: &HashMap<Node, Value>,
) -> Option<HashMap<Node, Value>> {
    let mut moves = HashMap::new();
    for (node, before) in start {
        let low = narrowest(&[before, first.get(node)?, second.get(node)?]);
        let apart = |after: &Value, before: &Value| after.zip(before, |after, before| after.wrapping_sub(before) & low);
        let one = apart(first.get(node)?, before);
        let two = apart(second.get(node)?, first.get(node)?);
        if !is_nowhere(&one.zip(&two, |one, two| one ^ two)) {
            return None;
        }
        moves.insert(*node, one);
    }
    Some(moves)
}

/// The bits of registers that hold these values.
fn narrowest(values: &[&Value]) -> u64 {
    let fits = |value: &&Value| (0..value.rows()).all(|at| value.row(at).iter().all(|bits| *bits <= 0xffff_ffff));
    if values.iter().all(fits) { 0xffff_ffff } else { u64::MAX }
}

#[cfg(test)]
mod tests {
    use super::super::Shape;
    use super::super::testing::{SHAPE, judged};
    use super::super::verdict::Advice;
    use super::*;

    /// How far apart lanes leave the loop `for (i = start; i < end; i += step)`.
    fn spread(before: &str, end: &str, step: &str) -> Spread {
        let text = format!(
            "mov.u32 %r2, %tid.x; and.b32 %r3, %r2, 31; {before}
            L: neg.s32 %r9, %r9; add.s32 %r4, %r4, {step}; setp.lt.s32 %p1, %r4, {end}; @%p1 bra L; ret;"
        );
        judged(SHAPE, &text)[0].spread.expect("a spread")
    }

    #[test]
    fn lanes_that_count_to_their_number_leave_one_by_one() {
        let found = spread("mov.u32 %r4, 0; add.s32 %r5, %r3, 1;", "%r5", "1");
        assert!((found.share - 1.0).abs() < 1e-9, "{found:?}");
        // Lane l runs l + 1 times: 1 to 32, 16.5 in the mean.
        assert!((found.idle - 15.5 / 32.0).abs() < 1e-9 && (found.trips.0 - 32.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn lanes_that_start_apart_by_less_than_a_step_leave_together() {
        let found = spread("mov.u32 %r4, %r2;", "1000", "256");
        assert!(found.share == 0.0 && found.idle < 0.1, "{found:?}");
    }

    #[test]
    fn a_long_loop_is_counted_without_being_run() {
        let found = spread("mov.u32 %r4, %r3;", "10000", "1");
        assert!((found.share - 1.0).abs() < 1e-9, "{found:?}");
        assert!((found.trips.0 - 9999.0).abs() <= 1.0 && found.idle < 0.01, "{found:?}");
    }

    #[test]
    fn lanes_that_never_come_in_are_idle_all_the_while() {
        let text = "mov.u32 %r2, %tid.x; and.b32 %r3, %r2, 31; setp.gt.u32 %p2, %r3, 7; @%p2 bra END; mov.u32 %r4, 0;
            L: neg.s32 %r9, %r9; add.s32 %r4, %r4, 1; setp.le.s32 %p1, %r4, %r3; @%p1 bra L; END: ret;";
        let found = judged(SHAPE, text)[1].spread.expect("a spread");
        // Lane l of the first eight runs l + 1 times.
        assert!((found.trips.0 - 8.0).abs() < 1e-9 && (found.trips.1 - 36.0 / 32.0).abs() < 1e-9, "{found:?}");
        assert!((found.idle - (1.0 - 36.0 / 256.0)).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn a_loop_in_unequal_steps_is_followed_to_its_end_or_said_to_be_cut() {
        let turns = |most: u32| {
            let text = format!(
                "mov.u32 %r2, %tid.x; and.b32 %r3, %r2, 31; mul.lo.s32 %r5, %r3, {most}; mov.u32 %r4, 0;
                L: and.b32 %r6, %r4, 1; add.s32 %r6, %r6, 1; add.s32 %r4, %r4, %r6; setp.lt.s32 %p1, %r4, %r5; @%p1 bra L;
                ret;"
            );
            judged(SHAPE, &text)[0].spread.expect("a spread")
        };
        // 0, 1, 3, 5, …: lane 31 runs to 310.
        let found = turns(10);
        assert!((found.trips.0 - 156.0).abs() < 1e-9 && !found.is_cut && found.is_fixed, "{found:?}");
        let endless = turns(1 << 25);
        assert!(endless.is_cut && !endless.is_fixed, "{endless:?}");
    }

    #[test]
    fn a_loop_down_to_zero_leaves_out_the_lane_that_does_not_come_in() {
        let text = "mov.u32 %r2, %tid.x; and.b32 %r4, %r2, 31; setp.eq.s32 %p2, %r4, 0; @%p2 bra END;
            L: neg.s32 %r9, %r9; add.s32 %r4, %r4, -1; setp.ne.s32 %p1, %r4, 0; @%p1 bra L; END: ret;";
        let found = judged(SHAPE, text)[1].spread.expect("a spread");
        assert!((found.trips.0 - 31.0).abs() < 1e-9 && (found.trips.1 - 15.5).abs() < 1e-9, "{found:?}");
        assert!(found.is_fixed && !found.differs, "{found:?}");
    }

    #[test]
    fn a_loop_of_a_constant_number_of_turns_has_no_spread_to_speak_of() {
        let branches =
            judged(SHAPE, "mov.u32 %r4, 0; L: add.s32 %r4, %r4, 1; setp.lt.s32 %p1, %r4, 9; @%p1 bra L; ret;");
        assert!(branches[0].is_loop && branches[0].spread.is_none_or(|spread| spread.share == 0.0));
    }

    /// What is told of the loop that the branch number `at` leaves.
    fn told(shape: Shape, text: &str, at: usize) -> Option<Spread> {
        judged(shape, text)[at].spread
    }

    /// `while (k < t) { k++; …; if (k >= 4) break; }` as nvcc 13 writes it.
    const CUT_SHORT: &str = "mov.u32 %r1, %tid.x; mov.u32 %r4, 0;
        L: setp.ge.s32 %p1, %r4, %r1; @%p1 bra END; add.s32 %r4, %r4, 1; neg.s32 %r9, %r9;
        setp.lt.s32 %p2, %r4, 4; @%p2 bra L; END: ret;";

    #[test]
    fn whoever_leaves_a_loop_for_the_next_comes_to_that_in_whatever_turn_it_is() {
        // `do … while ((a += 3) < 20); do … while ((b += 2) < 20);`, both from 0 to 15 on, as nvcc 13 writes it.
        let text = "mov.u32 %r1, %tid.x; and.b32 %r4, %r1, 15; mov.u32 %r5, %r4; mov.u32 %r6, %r4;
            L: neg.s32 %r9, %r9; add.s32 %r4, %r4, 3; setp.lt.s32 %p1, %r4, 20; @%p1 bra L;
            M: neg.s32 %r8, %r8; add.s32 %r5, %r5, 2; setp.lt.s32 %p2, %r5, 20; @%p2 bra M;
            N: neg.s32 %r7, %r7; add.s32 %r6, %r6, 2; setp.lt.s32 %p3, %r6, 20; @%p3 bra N; ret;";
        for at in [1, 2] {
            let found = told(SHAPE, text, at).expect("a spread");
            // Lanes run 10, 10, 9, 9, … 3, 3 times.
            assert!((found.trips.0 - 10.0).abs() < 1e-9 && (found.trips.1 - 6.5).abs() < 1e-9, "{found:?}");
            assert!((found.share - 1.0).abs() < 1e-9 && (found.idle - 0.35).abs() < 1e-9, "{found:?}");
        }
        // In a turn that is looked at they part as they do where there is no loop before.
        let alone = text.replace("L: neg.s32 %r9, %r9; add.s32 %r4, %r4, 3; setp.lt.s32 %p1, %r4, 20; @%p1 bra L;", "");
        let share = |text: &str, at: usize| judged(SHAPE, text)[at].split.of_all();
        assert!(share(&alone, 0) > 0.5 && (share(text, 1) - share(&alone, 0)).abs() < 1e-9, "{}", share(text, 1));
    }

    #[test]
    fn the_turns_of_a_lane_end_at_the_exit_that_it_takes_first() {
        let found = told(SHAPE, CUT_SHORT, 0).expect("a spread");
        // Lanes 0 to 3 run as many turns as their number, and all others 4.
        assert!((found.trips.0 - 4.0).abs() < 1e-9 && found.is_fixed && found.lone, "{found:?}");
        assert!((found.share - 0.125).abs() < 1e-9, "{found:?}");
        assert!((found.idle - 10.0 / 1024.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn an_exit_that_all_lanes_of_a_warp_take_before_any_other_parts_none() {
        // `for (k = 0; k < t; k++) { …; if (k == t / 32) break; … }`
        let text = "mov.u32 %r1, %tid.x; setp.lt.s32 %p1, %r1, 1; @%p1 bra END;
            shr.s32 %r11, %r1, 5; neg.s32 %r13, %r11; mov.u32 %r14, 0;
            L: neg.s32 %r9, %r9; setp.eq.s32 %p2, %r13, 0; @%p2 bra END; neg.s32 %r8, %r8;
            add.s32 %r13, %r13, 1; add.s32 %r14, %r14, 1; setp.lt.s32 %p3, %r14, %r1; @%p3 bra L; END: ret;";
        let branches = judged(SHAPE, text);
        assert!(branches.iter().all(|branch| branch.spread.is_none_or(|spread| spread.share == 0.0)), "{branches:?}");
        assert!(branches.iter().all(|branch| branch.judgement.is_some_and(|one| one.advice == Advice::Silent)));
    }

    #[test]
    fn an_exit_within_an_if_ends_the_turns_of_the_lanes_that_come_to_it() {
        // `for (k = 0; k <= l; k++) { if (l >= 16) { if (k == 3) break; } … }`
        let text = "mov.u32 %r2, %tid.x; and.b32 %r3, %r2, 31; mov.u32 %r4, 0;
            L: setp.lt.u32 %p1, %r3, 16; @%p1 bra M; setp.eq.s32 %p2, %r4, 3; @%p2 bra END;
            M: neg.s32 %r9, %r9; add.s32 %r4, %r4, 1; setp.le.s32 %p3, %r4, %r3; @%p3 bra L; END: ret;";
        let found = told(SHAPE, text, 2).expect("a spread");
        // Lanes 0 to 15 run one more than their number, all others 3.
        assert!((found.trips.0 - 16.0).abs() < 1e-9 && found.is_fixed, "{found:?}");
        assert!((found.trips.1 - (136.0 + 48.0) / 32.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn an_exit_that_no_lane_takes_says_nothing() {
        let never = CUT_SHORT.replace("%r4, 4;", "%r6, 100000;").replace("neg.s32 %r9, %r9;", "add.s32 %r6, %r4, %r1;");
        let branches = judged(SHAPE, &never);
        assert!(branches[0].spread.is_some_and(|spread| spread.share > 0.9), "{branches:?}");
        assert_eq!(branches[1].spread, None);
    }

    #[test]
    fn other_exits_that_data_decide_leave_the_turns_as_they_are_and_untold() {
        let load = "mul.wide.u32 %rd2, %r1, 4; ld.global.u32 %r6, [%rd2];";
        let by_data = CUT_SHORT.replace("%r4, 4;", "%r6, 4;").replace("neg.s32 %r9, %r9;", load);
        let found = told(SHAPE, &by_data, 0).expect("a spread");
        assert!(found.trips.0 > 100.0 && !found.is_fixed, "{found:?}");
    }

    #[test]
    fn a_loop_runs_as_many_turns_whichever_way_its_last_test_is_written() {
        let spread = |ending: &str| {
            let text = format!(
                "mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 3; setp.eq.s32 %p1, %r2, 0; @%p1 bra DONE;
                L: neg.s32 %r9, %r9; add.s32 %r2, %r2, -1; {ending} DONE: ret;"
            );
            told(SHAPE, &text, 1).expect("a spread")
        };
        let back = spread("setp.ne.s32 %p2, %r2, 0; @%p2 bra L;");
        assert!((back.trips.0 - 3.0).abs() < 1e-9 && (back.trips.1 - 1.5).abs() < 1e-9, "{back:?}");
        assert_eq!(spread("setp.eq.s32 %p2, %r2, 0; @%p2 bra DONE; bra.uni L;"), back);
        assert_eq!(spread("setp.eq.s32 %p2, %r2, 0; @%p2 bra DONE; bra.uni M; M: bra.uni L;"), back);
    }

    #[test]
    fn a_loop_that_goes_on_while_two_numbers_are_equal_is_left_at_the_first_turn_that_parts_them() {
        let found = spread("mov.u32 %r4, 0; mov.u32 %r5, %r3;", "%r5", "1");
        let equal = "mov.u32 %r2, %tid.x; and.b32 %r3, %r2, 31; mov.u32 %r4, -1;
            L: neg.s32 %r9, %r9; add.s32 %r4, %r4, 1; setp.eq.s32 %p1, %r4, %r3; @%p1 bra L; ret;";
        let while_equal = told(SHAPE, equal, 0).expect("a spread");
        assert!(while_equal.trips.0 <= 2.0 && found.trips.0 > 30.0, "{while_equal:?} {found:?}");
    }

    #[test]
    fn numbers_that_do_not_near_each_other_by_a_constant_are_followed() {
        // `for (z = t & 15; (z < 3) & 31; z++)`: lanes 0 to 2 of each half run 3, 2 and 1 turns.
        let text = "mov.u32 %r2, %tid.x; and.b32 %r4, %r2, 15; setp.ge.s32 %p1, %r4, 3; @%p1 bra END;
            L: neg.s32 %r9, %r9; add.s32 %r4, %r4, 1; setp.lt.s32 %p2, %r4, 3; selp.b32 %r5, 1, 0, %p2;
            and.b32 %r6, %r5, 31; setp.ne.s32 %p3, %r6, 0; @%p3 bra L; END: ret;";
        let found = told(SHAPE, text, 1).expect("a spread");
        assert!((found.trips.0 - 3.0).abs() < 1e-9 && (found.trips.1 - 12.0 / 32.0).abs() < 1e-9, "{found:?}");
        assert!((found.idle - 0.875).abs() < 1e-9, "{found:?}");
        // `do … while (++z & 4)`, from 3 to 6: 5 to 2 turns.
        let text = "mov.u32 %r2, %tid.x; and.b32 %r4, %r2, 3; add.s32 %r4, %r4, 3;
            L: neg.s32 %r9, %r9; add.s32 %r4, %r4, 1; and.b32 %r6, %r4, 4; setp.ne.s32 %p3, %r6, 0; @%p3 bra L; ret;";
        let found = told(SHAPE, text, 0).expect("a spread");
        assert!((found.trips.0 - 5.0).abs() < 1e-9 && (found.trips.1 - 3.5).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn an_incomplete_warp_counts_for_as_many_lanes_as_it_has() {
        let text = "mov.u32 %r2, %tid.x; mov.u32 %r4, 0;
            L: neg.s32 %r9, %r9; add.s32 %r4, %r4, 1; setp.le.s32 %p1, %r4, %r2; @%p1 bra L; ret;";
        let found = told(Shape { x: 48, ..SHAPE }, text, 0).expect("a spread");
        // Threads run one turn more than their number, in 32 lanes for 32 turns, and in 16 for 48.
        assert!((found.trips.0 - 40.0).abs() < 1e-9 && (found.trips.1 - 24.5).abs() < 1e-9, "{found:?}");
        assert!((found.idle - (1.0 - 1176.0 / 1792.0)).abs() < 1e-9, "{found:?}");
        assert!((found.behind() - (1792.0 - 1176.0) / 48.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn a_long_loop_that_hangs_on_no_number_is_told_as_it_is() {
        let found = spread("mul.lo.s32 %r4, %r2, 1000;", "1000000", "1");
        assert!(found.share > 0.99 && found.is_fixed && found.trips.0 > 7e5, "{found:?}");
        assert!((0.01..0.02).contains(&found.idle), "{found:?}");
    }

    #[test]
    fn the_counter_of_a_loop_that_was_left_is_what_it_was_counted_to() {
        // `while (t < n) { t += 256; count++; }`, and a loop of as many turns.
        let text =
            "ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x; mov.u32 %r5, 0; setp.ge.s32 %p1, %r2, %r1; @%p1 bra END;
            L: neg.s32 %r9, %r9; add.s32 %r5, %r5, 1; add.s32 %r2, %r2, 256; setp.lt.s32 %p2, %r2, %r1; @%p2 bra L;
            mov.u32 %r6, 0;
            M: neg.s32 %r8, %r8; add.s32 %r6, %r6, 1; setp.lt.s32 %p3, %r6, %r5; @%p3 bra M; END: ret;";
        let branches = judged(SHAPE, text);
        let found = branches[2].spread.expect("a spread");
        assert!(found.share == 0.0 && found.idle < 0.1, "{found:?}");
        assert!(branches[2].judgement.is_some_and(|one| one.advice == Advice::Silent), "{branches:?}");
        assert!(!branches[2].split.guessed, "{branches:?}");
    }

    #[test]
    fn the_guard_of_a_loop_of_a_turn_or_two_costs_no_more_than_these() {
        // What is left of an unrolled loop in steps of a warp up to a number that is known at run time.
        let left_over = |turns: &str| {
            let text = format!(
                "ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x; and.b32 %r3, %r2, 31; sub.s32 %r4, %r1, %r3; shr.u32 %r5, %r4, 5;
                and.b32 %r8, %r5, {turns}; setp.eq.s32 %p1, %r8, 0; @%p1 bra END; neg.s32 %r7, %r8;
                L: cos.approx.f32 %f1, %f1; cos.approx.f32 %f1, %f1; cos.approx.f32 %f1, %f1;
                add.s32 %r7, %r7, 1; setp.eq.s32 %p2, %r7, 0; @%p2 bra END; bra.uni L; END: ret;"
            );
            judged(SHAPE, &text)[0].judgement.map(|one| one.advice)
        };
        assert_eq!(left_over("1"), Some(Advice::Silent));
        assert_eq!(left_over("3"), Some(Advice::Silent));
    }
}
