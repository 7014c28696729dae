//! Loops on level 2: where the environments stand in them, and with what values lanes leave.

use std::rc::Rc;

use hashbrown::HashMap;

use super::cfg::Block;
use super::eval::{Evaluator, Found, Mode, Stop};
use super::graph::Node;
use super::loops::is_in_every_turn;
use super::value::Value;

/// Values that one loop steps along at most.
const MOST_STEPPED: usize = 40;

/// Loops within loops that are stepped at a time.
const NESTED: usize = 2;

/// Iterations that are followed one by one.
const FOLLOWED: usize = 48;

/// Steps that an environment is let into a loop, at most.
const STEPS: usize = 8;

/// Where the environments stand in a loop.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) header: HashMap<Node, Value>,
    /// The lanes that are still in it.
    pub(super) alive: Value,
}

/// What a value is for each lane when it leaves a loop from a block, as far as a way of finding it goes.
type Exact<'e, 'c, 't> = fn(&mut Evaluator<'e, 'c, 't>, Node, u32, Block, &[Node]) -> Found<Option<Value>>;

impl<'e, 'c, 't> Evaluator<'e, 'c, 't> {
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

    fn known_sample(&mut self, one: u32) -> Option<Rc<Sample>> {
        let level = self.level_around(one);
        self.memo(level).samples.get(&one).cloned()
    }

    fn keep_sample(&mut self, one: u32, sample: Rc<Sample>) {
        let level = self.level_around(one);
        let size: usize = sample.header.values().map(Value::size).sum();
        let memo = self.memo(level);
        memo.size += size + sample.alive.size();
        memo.samples.insert(one, sample);
    }

    /// The frame that the whole of a loop varies with.
    fn level_around(&self, one: u32) -> usize {
        let header = self.graph.cfg().loops[one as usize].header;
        self.level_of_block(header)
    }

    /// For each environment the iteration of a loop that it stands at. Nested loops do not go in step.
    fn iteration(&self, one: u32, environment: usize) -> usize {
        let depth = self.graph.cfg().loops[one as usize].depth;
        match depth {
            1 => environment % (STEPS + 1),
            2 => (environment / 3 + environment) % (STEPS + 1),
            _ => (environment * 5 + 2) % (STEPS + 1),
        }
    }

    /// Runs `f`, again with each value of the header that turns out to be needed.
    pub(super) fn discovering<T>(
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
    pub(super) fn entered_with(&mut self, one: u32, stepped: &[Node]) -> Found<HashMap<Node, Value>> {
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
        let all = self.ways_into(header, &region.blocks, region.root)?;
        let mut merged = values[0].clone();
        for ((from, _), value) in ways.iter().zip(&values).skip(1) {
            let at = cfg.predecessors(header).iter().position(|one| one == from).unwrap_or(0);
            merged = all[at].choose(value, &merged, self.extent);
        }
        Ok(merged)
    }

    /// The values at the header one iteration later.
    pub(super) fn advanced(
        &mut self,
        one: u32,
        now: &HashMap<Node, Value>,
        stepped: &[Node],
    ) -> Found<HashMap<Node, Value>> {
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
        self.ways_into(header, &region.blocks, header)
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
            // One that lies in an inner loop is come to more than once.
            is_in_every_turn(cfg, exit.0, one) && cfg.loop_of(exit.0) == Some(one)
        };
        whole.exits.iter().filter(is_plain).copied().collect()
    }

    fn run_to_iterations(&mut self, one: u32, stepped: &[Node]) -> Found<Sample> {
        let mut now = self.entered_with(one, stepped)?;
        let mut alive = Value::constant(1);
        for step in 1..=STEPS {
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
            // Most loops are short; the turns of a long one may yet be counted.
            let ways: [Exact<'e, 'c, 't>; 2] = [Self::run_to_exit, Self::counted_to_exit];
            for way in ways {
                let left = self.work_for_exit();
                let exact =
                    self.discovering(one, &mut stepped, |this, one, stepped| way(this, node, one, from, stepped));
                match exact {
                    Ok(Some(value)) => return Ok(value),
                    Ok(None) => {}
                    Err(Stop::OverBudget) if left => {}
                    Err(stop) => return Err(stop),
                }
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
            Some(known) if known.index || self.mode == Mode::Data => {
                let noise = self.noise(node, one);
                Ok(value.zip(&noise, |value, noise| value.wrapping_add(noise % 9)).as_guess())
            }
            _ => Ok(value),
        }
    }
}

/// Whether a value is 0 for all lanes in all environments.
pub(super) fn is_nowhere(value: &Value) -> bool {
    (0..value.rows()).all(|environment| value.row(environment).iter().all(|one| *one == 0))
}

#[cfg(test)]
mod tests {
    use super::super::testing::values_of;

    #[test]
    fn a_loop_that_ends_soon_is_run_to_its_end() {
        let text = "mov.u32 %r2, %tid.x; and.b32 %r3, %r2, 7; mov.u32 %r1, 0; mov.u32 %r4, 0;
            L: add.s32 %r1, %r1, 10; add.s32 %r4, %r4, 1; setp.le.u32 %p1, %r4, %r3; @%p1 bra L;";
        assert_eq!(values_of(text, [0, 1, 7, 8]), [10, 20, 80, 10]);
        let doubling = "mov.u32 %r1, 1; L: shl.b32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 100; @%p1 bra L;";
        assert_eq!(values_of(doubling, [0, 1, 7, 8]), [128, 128, 128, 128]);
    }
}
