//! Loops on level 2: where the environments stand in them, with what values lanes leave, and after how many iterations.

use std::rc::Rc;

use hashbrown::HashMap;

use super::cfg::Block;
use super::eval::{Evaluator, Found, Mode, Sample, Stop};
use super::function::guarded_loop;
use super::graph::{Node, Source};
use super::value::{LANES, Value};
use crate::parse::ptx::{Cond, Op};

/// Values that one loop steps along at most.
const MOST_STEPPED: usize = 40;

/// Loops within loops that are stepped at a time.
const NESTED: usize = 2;

/// Iterations that are followed one by one, and those that are while there is time.
const FOLLOWED: usize = 48;
const FOLLOWED_AT_MOST: usize = 4096;

/// Iterations that are counted at most, where every variable of the loop moves by a constant.
const COUNTED: u64 = 1 << 21;

/// Iterations of one thread that a person waits for.
const REALISTIC: f64 = 16384.0;

/// How far apart the lanes of a warp leave a loop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Share of warps whose lanes leave two or more iterations apart.
    pub share: f64,
    /// Share of the turns of the warps' lanes in which a lane has left already, or never came in: the mean of all
    /// environments.
    pub idle: f64,
    /// Mean iterations of the warp, and of a lane.
    pub trips: (f64, f64),
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
    /// Iterations by which the last lane of a warp stays longer than the mean lane.
    #[must_use]
    pub fn behind(&self) -> f64 {
        self.trips.0 - self.trips.1
    }

    /// Share of all turns that are idle, whatever number they were tried with: long loops count for more than in the mean.
    #[must_use]
    pub fn idle_of_all(&self) -> f64 {
        if self.trips.0 > 0.0 { self.behind() / self.trips.0 } else { 0.0 }
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

impl Evaluator<'_, '_, '_> {
    /// The environments at their iterations of a loop; with the value of `wanted` at the header, if one is.
    pub(super) fn sampled(&mut self, one: u32, wanted: Option<Node>) -> Found<Rc<Sample>> {
        let mut stepped: Vec<Node> = Vec::new();
        if let Some(known) = self.known_sample(one) {
            if wanted.is_none_or(|node| known.header.contains_key(&node)) {
                return Ok(known);
            }
            stepped.extend(known.header.keys());
            // The order of a table is not the same in every run.
            stepped.sort_unstable();
        }
        stepped.extend(wanted);
        let sample = Rc::new(self.discovering(one, &mut stepped, Self::run_to_iterations)?);
        self.keep_sample(one, sample.clone());
        Ok(sample)
    }

    /// Runs `f`, again with each value of the header that turns out to be needed.
    fn discovering<T>(
        &mut self,
        one: u32,
        stepped: &mut Vec<Node>,
        f: impl Fn(&mut Self, u32, &[Node]) -> Found<T>,
    ) -> Found<T> {
        if self.frames.len() >= NESTED {
            return Err(Stop::OverBudget);
        }
        loop {
            if stepped.len() > MOST_STEPPED {
                return Err(Stop::OverBudget);
            }
            let (height, depth) = (self.frames.len(), self.depth);
            match f(self, one, stepped) {
                Err(Stop::Missing(node)) if self.is_header_value(node, one) => {
                    self.frames.truncate(height);
                    self.depth = depth;
                    if stepped.contains(&node) {
                        return Err(Stop::OverBudget);
                    }
                    stepped.push(node);
                }
                other => return other,
            }
        }
    }

    fn is_header_value(&self, node: Node, one: u32) -> bool {
        self.graph.block(node) == self.graph.cfg().loops[one as usize].header
    }

    /// The values with which a loop is entered.
    fn entered_with(&mut self, one: u32, stepped: &[Node]) -> Found<HashMap<Node, Value>> {
        let cfg = self.graph.cfg();
        let header = cfg.loops[one as usize].header;
        let before = cfg.predecessors(header);
        let mut values = HashMap::new();
        for node in stepped {
            let ways = before.iter().copied().zip(self.graph.inputs(*node).iter().copied());
            let ways: Vec<(Block, Node)> = ways.filter(|(from, _)| !cfg.is_back_edge(*from, header)).collect();
            let value = match ways.as_slice() {
                [] => return Err(Stop::OverBudget),
                [(_, input)] => self.value(*input, header)?,
                ways => self.merged_before(header, ways)?,
            };
            values.insert(*node, value);
        }
        Ok(values)
    }

    fn merged_before(&mut self, header: Block, ways: &[(Block, Node)]) -> Found<Value> {
        let mut values = Vec::new();
        for (_, input) in ways {
            values.push(self.value(*input, header)?);
        }
        if values.iter().all(|value| *value == values[0]) {
            return Ok(values[0].clone());
        }
        let cfg = self.graph.cfg();
        let region = self.regions.before(cfg, header).ok_or(Stop::OverBudget)?;
        let mut masks = HashMap::from([(region.root, Value::constant(1))]);
        for block in &region.blocks {
            masks.insert(*block, Value::constant(0));
        }
        let all = self.ways_into(header, &region.blocks, region.root, masks)?;
        let mut merged = values[0].clone();
        for ((from, _), value) in ways.iter().zip(&values).skip(1) {
            let at = cfg.predecessors(header).iter().position(|one| one == from).unwrap_or(0);
            merged = all[at].choose(value, &merged, self.extent);
        }
        Ok(merged)
    }

    /// The values at the header one iteration later.
    fn advanced(&mut self, one: u32, now: &HashMap<Node, Value>, stepped: &[Node]) -> Found<HashMap<Node, Value>> {
        let cfg = self.graph.cfg();
        let header = cfg.loops[one as usize].header;
        let latches = &cfg.loops[one as usize].latches;
        self.within(one, now.clone(), |this| {
            let mut next = HashMap::new();
            let mut masks: Option<Rc<[Value]>> = None;
            for node in stepped {
                let before = cfg.predecessors(header);
                let mut merged: Option<Value> = None;
                for (at, (from, input)) in before.iter().zip(this.graph.inputs(*node)).enumerate() {
                    if !latches.contains(from) {
                        continue;
                    }
                    let value = this.value(*input, *from)?;
                    merged = Some(match merged {
                        None => value,
                        Some(before) if before == value => before,
                        Some(before) => {
                            if masks.is_none() {
                                masks = Some(this.ways_round(one)?);
                            }
                            let mask = masks.as_ref().map(|masks| masks[at].clone()).ok_or(Stop::OverBudget)?;
                            mask.choose(&value, &before, this.extent)
                        }
                    });
                }
                next.insert(*node, merged.ok_or(Stop::OverBudget)?);
            }
            Ok(next)
        })
    }

    /// For each way into the header the lanes that come along it from the header.
    fn ways_round(&mut self, one: u32) -> Found<Rc<[Value]>> {
        let cfg = self.graph.cfg();
        let header = cfg.loops[one as usize].header;
        let region = self.regions.through(cfg, one).ok_or(Stop::OverBudget)?;
        let mut masks = HashMap::from([(header, Value::constant(1))]);
        for block in &region.blocks {
            masks.insert(*block, Value::constant(0));
        }
        self.ways_into(header, &region.blocks, header, masks)
    }

    /// The lanes that stay in the loop in an iteration: those that pass every exit which all of them come to.
    fn staying(&mut self, one: u32, now: &HashMap<Node, Value>) -> Found<Value> {
        let exits = self.plain_exits(one);
        self.within(one, now.clone(), |this| {
            let mut staying = Value::constant(1);
            for (from, to) in exits {
                if let Some(leaving) = this.along(from, to)? {
                    staying = staying.zip(&leaving, |staying, leaving| staying & !leaving & 1);
                }
            }
            Ok(staying)
        })
    }

    /// Exits that every iteration comes to.
    fn plain_exits(&self, one: u32) -> Vec<(Block, Block)> {
        let cfg = self.graph.cfg();
        let whole = &cfg.loops[one as usize];
        let is_plain = |exit: &&(Block, Block)| {
            whole.latches.iter().all(|latch| cfg.dominates(exit.0, *latch))
                // One that lies in an inner loop is come to more than once.
                && cfg.loop_of(exit.0) == Some(one)
        };
        whole.exits.iter().filter(is_plain).copied().collect()
    }

    fn run_to_iterations(&mut self, one: u32, stepped: &[Node]) -> Found<Sample> {
        let mut now = self.entered_with(one, stepped)?;
        let mut alive = Value::constant(1);
        for step in 1..=Self::steps() {
            let goes_on = |environment: usize| u64::from(self.iteration(one, environment) >= step);
            let goes_on = Value::sampled(self.extent, super::value::Span::Block, |environment, _| goes_on(environment));
            let staying = self.staying(one, &now)?;
            let next = self.advanced(one, &now, stepped)?;
            alive = alive.zip3(
                &staying,
                &goes_on,
                self.extent,
                |alive, staying, on| if on != 0 { alive & staying } else { alive },
            );
            let moves = alive.zip(&goes_on, |alive, on| alive & on);
            for (node, value) in &next {
                let before = &now[node];
                let value = moves.choose(value, before, self.extent);
                self.spend(value.size())?;
                now.insert(*node, value);
            }
        }
        Ok(Sample { header: now, alive: alive.condensed(self.extent) })
    }

    /// What a value is for each lane when it leaves the loop.
    pub(super) fn left_with(&mut self, node: Node, one: u32) -> Found<Value> {
        let cfg = self.graph.cfg();
        let whole = &cfg.loops[one as usize];
        let plain = self.plain_exits(one);
        if let ([exit], [only]) = (plain.as_slice(), whole.exits.as_slice())
            && exit == only
            && self.frames.len() < NESTED
        {
            let from = exit.0;
            let mut stepped = Vec::new();
            let left = self.work_for_exit();
            let exact =
                self.discovering(one, &mut stepped, |this, one, stepped| this.run_to_exit(node, one, from, stepped));
            match exact {
                Ok(Some(value)) => return Ok(value),
                Ok(None) => {}
                Err(Stop::OverBudget) if left => {}
                Err(stop) => return Err(stop),
            }
        }
        self.left_at_some_time(node, one)
    }

    /// Whether following a loop to its end may fail for want of room, and something else be tried.
    fn work_for_exit(&self) -> bool {
        self.left() > 1 << 16
    }

    /// The same, with each iteration followed; `None` where lanes stay for longer than that.
    fn run_to_exit(&mut self, node: Node, one: u32, from: Block, stepped: &[Node]) -> Found<Option<Value>> {
        let mut now = self.entered_with(one, stepped)?;
        let mut alive = Value::constant(1);
        let mut out: Option<Value> = None;
        for _ in 0..FOLLOWED {
            let value = self.within(one, now.clone(), |this| this.value(node, from))?;
            let staying = self.staying(one, &now)?;
            // Lanes keep the value of their last iteration.
            out = Some(match out {
                None => value,
                Some(before) => alive.choose(&value, &before, self.extent),
            });
            alive = alive.zip(&staying, |alive, staying| alive & staying);
            if is_nowhere(&alive) {
                return Ok(out.map(|value| value.condensed(self.extent)));
            }
            now = self.advanced(one, &now, stepped)?;
            let size: usize = now.values().map(Value::size).sum();
            self.spend(size)?;
        }
        Ok(None)
    }

    /// The value at the iteration that is looked at, and one of its own for each lane where lanes leave one by one.
    fn left_at_some_time(&mut self, node: Node, one: u32) -> Found<Value> {
        let value = self.evaluate(node)?;
        let exits = &self.graph.cfg().loops[one as usize].exits;
        let exits = exits.iter().filter_map(|(from, _)| self.decisions[*from as usize]);
        let parted = exits.map(|decision| self.known[decision.node.0 as usize]).find(|known| !known.is_warp_uniform());
        match parted {
            Some(known) if known.index || self.mode() == Mode::Data => {
                let noise = self.noise(node, one);
                Ok(value.zip(&noise, |value, noise| value.wrapping_add(noise % 9)).as_guess())
            }
            _ => Ok(value),
        }
    }

    /// How far apart lanes leave `one` through the branch of `block`.
    ///
    /// # Errors
    /// When that is more than can be followed.
    pub fn spread(&mut self, one: u32, block: Block) -> Found<Option<Spread>> {
        let mut stepped = Vec::new();
        let trips = self.discovering(one, &mut stepped, |this, one, stepped| this.trips(one, block, stepped))?;
        let Some((trips, is_cut)) = trips else { return Ok(None) };
        // A test at the end of the loop is come to once more than control goes back from it.
        let is_last = self.graph.cfg().loops[one as usize].latches.contains(&block);
        let trips = if is_last { trips.map(|trips| trips + 1) } else { trips };
        let Entry { comes, enters, is_assumed } = self.entry(one)?;
        let (mut share, mut idle, mut longest, mut mean, mut count) = (0.0, 0.0, 0.0, 0.0, 0.0_f64);
        let (mut parts, mut most_split) = (0.0, 0.0_f64);
        let mut turns: Option<(f64, f64)> = None;
        let (mut is_fixed, mut differs) = (!is_cut, false);
        for environment in 0..self.extent.environments.len() {
            let (mut split, mut warps, mut long, mut middle) = (0.0, 0.0_f64, 0.0, 0.0);
            let mut first = None;
            let (mut shortest, mut furthest) = (u64::MAX, 0);
            for warp in 0..self.extent.warps() {
                let threads = warp * LANES..((warp + 1) * LANES).min(self.extent.threads);
                let inside = threads.clone().filter(|thread| enters.at(environment, *thread) != 0);
                let inside: Vec<u64> = inside.map(|thread| trips.at(environment, thread)).collect();
                let (Some(most), Some(least)) = (inside.iter().max(), inside.iter().min()) else { continue };
                let all = threads.filter(|thread| comes.at(environment, *thread) != 0).count().max(inside.len());
                differs |= *first.get_or_insert(*most) != *most;
                #[allow(clippy::cast_precision_loss, reason = "iterations are counted to two millions")]
                let (most_f, average) = (*most as f64, inside.iter().sum::<u64>() as f64 / all as f64);
                warps += 1.0;
                (shortest, furthest) = (shortest.min(*least), furthest.max(*most));
                split += if most - least >= 2 { 1.0 } else { 0.0 };
                (long, middle) = (long + most_f, middle + average);
            }
            if warps > 0.0 {
                is_fixed &= *turns.get_or_insert((long, middle)) == (long, middle);
            }
            // No thread runs so many iterations: with such numbers the kernel is not launched.
            if warps > 0.0 && long / warps <= REALISTIC {
                parts += if shortest < furthest { 1.0 } else { 0.0 };
                most_split = most_split.max(split);
                share += split / warps;
                idle += if long > 0.0 { 1.0 - middle / long } else { 0.0 };
                (longest, mean, count) = (longest + long / warps, mean + middle / warps, count + 1.0);
            }
        }
        let all = count.max(1.0);
        #[allow(clippy::cast_precision_loss, reason = "there are 24 environments")]
        let reached = if is_assumed { 0.0 } else { count / self.extent.environments.len().max(1) as f64 };
        Ok((count > 0.0).then_some(Spread {
            share: share / all,
            idle: idle / all,
            trips: (longest / all, mean / all),
            parts: parts / all,
            reached,
            lone: most_split <= 1.0 && self.extent.warps() > 1,
            is_fixed,
            differs,
            is_cut,
        }))
    }

    /// The lanes that come to a loop, and those of them that enter it.
    fn entry(&mut self, one: u32) -> Found<Entry> {
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

    /// The iteration in which each lane leaves through the branch of `block`, and whether some are still in the loop then;
    /// `None` where that cannot be told.
    fn trips(&mut self, one: u32, block: Block, stepped: &[Node]) -> Found<Option<(Value, bool)>> {
        let enters = self.entry(one)?.enters;
        let start = self.entered_with(one, stepped)?;
        self.staying_at(one, block, &start)?;
        if stepped.is_empty() {
            // Nothing changes: who does not leave at once stays.
            return Ok(None);
        }
        let first = self.advanced(one, &start, stepped)?;
        let second = self.advanced(one, &first, stepped)?;
        if let Some(moves) = constant_moves(&start, &first, &second) {
            let count = match self.solved(one, block, &start, &first, &enters)? {
                None => self.counted(one, block, &start, &moves)?,
                count => count,
            };
            if let Some(count) = count {
                return Ok(Some((count, false)));
            }
        }
        let mut now = start;
        let mut next = vec![second, first];
        let mut alive = enters;
        let mut trips = Value::constant(0);
        // Most loops are short; for a long one something has to be left for other branches.
        let reserve = self.left() / 4 * 3;
        for step in 0..FOLLOWED_AT_MOST {
            if step >= FOLLOWED && self.left() < reserve {
                break;
            }
            let staying = self.staying_at(one, block, &now)?;
            alive = alive.zip(&staying, |alive, staying| alive & staying);
            self.spend(trips.size() + alive.size())?;
            if is_nowhere(&alive) {
                return Ok(Some((trips, false)));
            }
            // So many turns are gone round by those that are still in it.
            trips = alive.zip(&trips, |alive, trips| if alive != 0 { step as u64 + 1 } else { trips });
            now = match next.pop() {
                Some(known) => known,
                None => self.advanced(one, &now, stepped)?,
            };
            let size: usize = now.values().map(Value::size).sum();
            self.spend(size)?;
        }
        Ok(Some((trips, true)))
    }

    /// The iteration in which two numbers of which one moves by a constant become equal, where the loop goes on until they
    /// do. `None` where it does not, or for some lane they never do.
    fn solved(
        &mut self,
        one: u32,
        block: Block,
        start: &HashMap<Node, Value>,
        next: &HashMap<Node, Value>,
        enters: &Value,
    ) -> Found<Option<Value>> {
        let Some(decision) = self.decisions[block as usize] else { return Ok(None) };
        let Source::Result { instruction, place: 0 } = self.graph.source(decision.node) else { return Ok(None) };
        let test = &self.graph.code().instructions[instruction as usize];
        let [a, b] = *self.graph.inputs(decision.node) else { return Ok(None) };
        let is_equality = test.op == Op::Setp && matches!(test.cond, Cond::Eq | Cond::Ne) && !test.kind.is_float();
        if !is_equality {
            return Ok(None);
        }
        let mut apart = |now: &HashMap<Node, Value>| {
            self.within(one, now.clone(), |this| {
                let (a, b) = (this.value(a, block)?, this.value(b, block)?);
                Ok(a.zip(&b, u64::wrapping_sub))
            })
        };
        let (first, second) = (apart(start)?, apart(next)?);
        let bits = test.kind.width().clamp(1, 64);
        let whole = |value: u64| (value << (64 - bits)).cast_signed() >> (64 - bits);
        let count = first.zip(&second, |first, second| {
            let (way, step) = (whole(first.wrapping_neg()), whole(second.wrapping_sub(first)));
            match way.checked_div(step) {
                Some(count) if count >= 0 && count.wrapping_mul(step) == way => count.cast_unsigned(),
                _ => u64::MAX,
            }
        });
        // The test may stand behind the step: then it is one iteration fewer, for all lanes alike. Lanes that do not enter run
        // none.
        let count = count.zip(enters, u64::wrapping_mul);
        let never = count.map(|count| u64::from(count > COUNTED));
        Ok(is_nowhere(&never).then_some(count))
    }

    /// Counts by bisection: every variable moves by a constant.
    fn counted(
        &mut self,
        one: u32,
        block: Block,
        start: &HashMap<Node, Value>,
        moves: &HashMap<Node, Value>,
    ) -> Found<Option<Value>> {
        let mut low = Value::constant(0);
        let mut high = Value::constant(COUNTED);
        let at = |this: &mut Self, count: &Value| {
            let now = moved(start, moves, count);
            this.staying_at(one, block, &now)
        };
        for _ in 0..=COUNTED.ilog2() {
            let middle = low.zip(&high, u64::midpoint);
            let staying = at(self, &middle)?;
            let one_more = middle.zip(&high, |middle, high| (middle + 1).min(high));
            low = staying.choose(&one_more, &low, self.extent);
            high = staying.choose(&high, &middle, self.extent);
            self.spend(low.size() + high.size())?;
        }
        // The test has to stay true up to there, or the count means nothing.
        for part in [3, 6, 9] {
            let count = low.map(|low| low * part / 10);
            let staying = at(self, &count)?;
            let before = count.zip(&low, |count, low| u64::from(count < low));
            let wrong = before.zip(&staying, |before, staying| before & (1 - staying));
            if !is_nowhere(&wrong) {
                return Ok(None);
            }
        }
        let endless = low.map(|low| u64::from(low >= COUNTED));
        let (mut many, mut all) = (0_usize, 0_usize);
        for environment in 0..self.extent.environments.len() {
            let row = endless.row(environment);
            many += row.iter().filter(|one| **one != 0).count() * (self.extent.threads / row.len().max(1));
            all += self.extent.threads;
        }
        if many * 2 > all {
            return Ok(None);
        }
        Ok(Some(low))
    }

    fn staying_at(&mut self, one: u32, block: Block, now: &HashMap<Node, Value>) -> Found<Value> {
        let cfg = self.graph.cfg();
        let inside = cfg.successors(block).iter().copied().find(|to| cfg.is_in_loop(*to, one));
        let inside = inside.ok_or(Stop::OverBudget)?;
        self.within(one, now.clone(), |this| Ok(this.along(block, inside)?.unwrap_or_else(|| Value::constant(1))))
    }
}

/// Whether a value is 0 for all lanes in all environments.
pub(super) fn is_nowhere(value: &Value) -> bool {
    (0..value.rows()).all(|environment| value.row(environment).iter().all(|one| *one == 0))
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

/// Where the variables are after `count` iterations.
fn moved(start: &HashMap<Node, Value>, moves: &HashMap<Node, Value>, count: &Value) -> HashMap<Node, Value> {
    let after = |(node, before): (&Node, &Value)| {
        let way = moves[node].zip(count, u64::wrapping_mul);
        let low = narrowest(&[before]);
        (*node, before.zip(&way, |before, way| before.wrapping_add(way) & low))
    };
    start.iter().map(after).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{SHAPE, judged};
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
}
