//! Loops on level 2: their values one iteration after the other, and where the environments stand in them.

use std::rc::Rc;

use hashbrown::HashMap;

use super::cfg::Block;
use super::eval::{Evaluator, Found, Stop};
use super::graph::Node;
use super::loops::is_in_every_turn;
use super::value::Value;

/// Values that one loop steps along at most.
const MOST_STEPPED: usize = 40;

/// Loops within loops that are stepped at a time.
pub(super) const NESTED: usize = 2;

/// Iterations of a loop that are followed one by one.
pub(super) const FOLLOWED: usize = 48;

/// Steps that an environment is let into a loop, at most.
const STEPS: usize = 8;

/// Where the environments stand in a loop.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) header: HashMap<Node, Value>,
    /// The lanes that are still in it.
    pub(super) alive: Value,
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
    pub(super) fn staying(&mut self, one: u32, now: &HashMap<Node, Value>) -> Found<Value> {
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
    pub(super) fn plain_exits(&self, one: u32) -> Vec<(Block, Block)> {
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
}

/// Whether a value is 0 for all lanes in all environments.
pub(super) fn is_nowhere(value: &Value) -> bool {
    (0..value.rows()).all(|environment| value.row(environment).iter().all(|one| *one == 0))
}
