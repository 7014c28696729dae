//! Level 2: which way lanes go: along edges, into blocks where ways meet, and with what values they come there.

use std::rc::Rc;

use hashbrown::HashMap;

use super::cfg::Block;
use super::eval::{Evaluator, Found, Stop, truth};
use super::graph::Node;
use super::roots::Roots;
use super::slice::is_open_until_run;
use super::value::Value;

/// Blocks behind a branch that its ways are looked for to meet at.
const MEETING: usize = 64;

impl Evaluator<'_, '_, '_> {
    /// A value that is another one for each way into its block.
    pub(super) fn joined(&mut self, node: Node) -> Found<Value> {
        let cfg = self.graph.cfg();
        let block = self.graph.block(node);
        if let Some(one) = cfg.loop_headed_by(block) {
            if let Some(frame) = self.frames.iter().rev().find(|frame| frame.one == one) {
                return frame.header.get(&node).cloned().ok_or(Stop::Missing(node));
            }
            return self.sampled(one, Some(node))?.header.get(&node).cloned().ok_or(Stop::OverBudget);
        }
        if cfg.is_tangled(block) {
            return Err(Stop::OverBudget);
        }
        let before = cfg.predecessors(block);
        let inputs = self.graph.inputs(node);
        let all: Vec<(Block, Node)> = before.iter().copied().zip(inputs.iter().copied()).collect();
        self.merged(&all, block, |this| this.reach(block))
    }

    /// The one of several values that comes along each lane's way.
    fn merged(
        &mut self,
        ways: &[(Block, Node)],
        block: Block,
        reach: impl FnOnce(&mut Self) -> Found<Rc<[Value]>>,
    ) -> Found<Value> {
        let cfg = self.graph.cfg();
        let mut values = Vec::with_capacity(ways.len());
        for (from, input) in ways {
            let value = if cfg.is_reached(*from) { Some(self.value(*input, block)?) } else { None };
            values.push(value);
        }
        let mut known = values.iter().flatten();
        let Some(first) = known.next() else { return Err(Stop::OverBudget) };
        if known.all(|value| value == first) {
            return Ok(first.clone());
        }
        let masks = reach(self)?;
        let mut merged: Option<Value> = None;
        for (value, mask) in values.iter().zip(masks.iter()) {
            let Some(value) = value else { continue };
            merged = Some(match merged {
                None => value.clone(),
                Some(before) => mask.choose(value, &before, self.extent),
            });
        }
        merged.ok_or(Stop::OverBudget)
    }

    /// For each way into a block the lanes that come along it, of those that come to where the ways part.
    fn reach(&mut self, block: Block) -> Found<Rc<[Value]>> {
        let level = self.level_of_block(block);
        if let Some(known) = self.memo(level).reaches.get(&block) {
            return Ok(known.clone());
        }
        let cfg = self.graph.cfg();
        let region = self.regions.before(cfg, block).ok_or(Stop::OverBudget)?;
        let found = self.ways_into(block, &region.blocks, region.root)?;
        let size: usize = found.iter().map(Value::size).sum();
        let memo = self.memo(level);
        memo.size += size;
        memo.reaches.insert(block, found.clone());
        Ok(found)
    }

    /// For each way into `block` the lanes that come along it of those at `root`, which are all; `blocks` lie between, and are
    /// in order.
    pub(super) fn ways_into(&mut self, block: Block, blocks: &[Block], root: Block) -> Found<Rc<[Value]>> {
        let cfg = self.graph.cfg();
        let nobody = blocks.iter().map(|one| (*one, Value::constant(0)));
        let mut masks: HashMap<Block, Value> = std::iter::once((root, Value::constant(1))).chain(nobody).collect();
        for one in blocks {
            let mut mask = Value::constant(0);
            for from in cfg.predecessors(*one) {
                if !masks.contains_key(from) || cfg.is_back_edge(*from, *one) {
                    continue;
                }
                let edge = self.edge(*from, *one, block, &masks)?;
                mask = mask.zip(&edge, |a, b| a | b);
            }
            self.spend(mask.size())?;
            masks.insert(*one, mask);
        }
        let mut ways = Vec::new();
        for from in cfg.predecessors(block) {
            let mask =
                if masks.contains_key(from) && (*from == root || !cfg.is_back_edge(*from, block) || block == root) {
                    self.edge(*from, block, block, &masks)?
                } else {
                    Value::constant(0)
                };
            ways.push(mask);
        }
        Ok(ways.into())
    }

    /// The lanes that go along an edge of the way to `target`.
    fn edge(&mut self, from: Block, to: Block, target: Block, masks: &HashMap<Block, Value>) -> Found<Value> {
        let cfg = self.graph.cfg();
        // A loop on the way is left by all that come into it, at one iteration or another.
        let passed =
            cfg.loops_of(from).take_while(|one| !cfg.is_in_loop(target, *one) && !cfg.is_in_loop(to, *one)).last();
        if let Some(one) = passed {
            let whole = &cfg.loops[one as usize];
            if let Some(mask) = masks.get(&whole.header) {
                if whole.exits.iter().all(|exit| *exit == (from, to)) {
                    return Ok(mask.clone());
                }
                let mask = mask.clone();
                return self.one_exit_of_several(one, (from, to), &mask);
            }
        }
        let mask = masks.get(&from).cloned().unwrap_or_else(|| Value::constant(0));
        if mask.as_constant() == Some(0) {
            return Ok(mask);
        }
        match self.along(from, to)? {
            Some(condition) => Ok(mask.zip(&condition, |a, b| a & b)),
            None => Ok(mask),
        }
    }

    /// Of several exits of a loop, lanes take the one whose condition holds at the iteration that is looked at, and else
    /// the last.
    fn one_exit_of_several(&mut self, one: u32, exit: (Block, Block), mask: &Value) -> Found<Value> {
        let cfg = self.graph.cfg();
        let mut exits = cfg.loops[one as usize].exits.clone();
        exits.sort_by_key(|(from, _)| cfg.order(*from));
        exits.dedup();
        let mut left = mask.clone();
        for (at, other) in exits.iter().enumerate() {
            if at + 1 == exits.len() {
                break;
            }
            let taken = match self.along(other.0, other.1)? {
                Some(condition) => left.zip(&condition, |a, b| a & b),
                None => left.clone(),
            };
            if *other == exit {
                return Ok(taken.as_guess());
            }
            left = left.zip(&taken, |left, taken| left & !taken & 1);
        }
        Ok(left.as_guess())
    }

    /// The lanes for which control goes from a block to one of its successors; `None` for all.
    pub(super) fn along(&mut self, from: Block, to: Block) -> Found<Option<Value>> {
        let cfg = self.graph.cfg();
        let successors = cfg.successors(from);
        if successors.len() < 2 || successors.iter().all(|one| *one == to) {
            return Ok(None);
        }
        let decision = self.decisions[from as usize].ok_or(Stop::OverBudget)?;
        if decision.is_index {
            let code = self.graph.code();
            let block_at = |target: &u32| cfg.block_of.get(*target as usize).copied().unwrap_or(cfg.end());
            let table: Vec<Block> = code.table(cfg.last(from)).iter().map(block_at).collect();
            let index = self.value(decision.node, from)?;
            let hits = index.map(|index| u64::from(usize::try_from(index).is_ok_and(|at| table.get(at) == Some(&to))));
            return Ok(Some(hits));
        }
        let taken = self.condition(from)?;
        Ok(Some(if successors[0] == to { taken } else { taken.map(|taken| 1 - taken) }))
    }

    /// For the branch of a block, the lanes that take it.
    pub fn condition(&mut self, block: Block) -> Found<Value> {
        let decision = self.decisions[block as usize].ok_or(Stop::OverBudget)?;
        let value = self.value(decision.node, block)?;
        if decision.is_index {
            return Ok(value);
        }
        Ok(truth(&value, decision.negated))
    }

    /// The lanes that come to a block, in the iterations that are looked at.
    pub fn active(&mut self, block: Block) -> Found<Value> {
        let level = self.level_of_block(block);
        if let Some(known) = self.memo(level).active.get(&block) {
            return Ok(known.clone());
        }
        let cfg = self.graph.cfg();
        // Found from the top of the dominator tree down, so that any depth of nesting takes no stack.
        let mut chain = vec![block];
        let mut active = Value::constant(1);
        let mut at = block;
        while let Some(above) = cfg.idom(at) {
            let level = self.level_of_block(above);
            // What is active in a loop is not so after it.
            if cfg.left_between(above, block).is_none()
                && let Some(known) = self.memo(level).active.get(&above)
            {
                active = known.clone();
                break;
            }
            chain.push(above);
            at = above;
        }
        for here in chain.into_iter().rev() {
            if let Some(above) = cfg.idom(here).filter(|above| cfg.left_between(*above, block).is_none())
                && let Some(coming) = self.coming(above, here)?
            {
                active = active.zip(&coming, |a, b| a & b);
            }
            let entered = cfg.loop_headed_by(here).filter(|one| cfg.is_in_loop(block, *one));
            if let Some(one) = entered.filter(|one| !self.frames.iter().any(|frame| frame.one == *one)) {
                let alive = self.sampled(one, None)?.alive.clone();
                active = active.zip(&alive, |a, b| a & b);
            }
            self.spend(active.size())?;
            // Only what lies on the way to `block` itself is kept.
            if here == block {
                let memo = self.memo(level);
                memo.size += active.size();
                memo.active.insert(here, active.clone());
            }
        }
        Ok(active)
    }

    /// Of the lanes at a block those that go on to one that it dominates at once; `None` for all of them.
    fn coming(&mut self, above: Block, here: Block) -> Found<Option<Value>> {
        let cfg = self.graph.cfg();
        let outside = cfg.predecessors(here).iter().filter(|from| !cfg.is_back_edge(**from, here));
        if outside.eq([&above]) {
            return self.along(above, here);
        }
        // Where ways meet that are not all ways: behind `a || b`, at a case that two numbers lead to.
        let met = std::iter::successors(Some(cfg.ipdom(above)), |at| Some(cfg.ipdom(*at)).filter(|_| *at < cfg.end()));
        if met.take(MEETING).any(|at| at == here) || cfg.is_tangled(here) {
            return Ok(None);
        }
        match self.reach(here) {
            Ok(ways) => Ok(ways.iter().cloned().reduce(|all, way| all.zip(&way, |a, b| a | b))),
            Err(Stop::OverBudget) => Ok(None),
            Err(stop) => Err(stop),
        }
    }

    /// The lanes that come to a block if all goes its way that is known only at run time; `None` where nothing of the kind
    /// is on the way.
    pub fn assumed(&mut self, block: Block) -> Found<Option<Value>> {
        let cfg = self.graph.cfg();
        let mut active = Value::constant(1);
        let mut is_open = false;
        let mut here = block;
        while let Some(above) = cfg.idom(here) {
            let mut before = cfg.predecessors(here).iter().filter(|from| !cfg.is_back_edge(**from, here));
            let is_side = before.next() == Some(&above) && before.next().is_none();
            let is_side = is_side && cfg.left_between(above, block).is_none();
            let decision = self.decisions[above as usize].filter(|_| is_side && cfg.successors(above).len() > 1);
            if decision.is_some_and(|decision| is_open_until_run(self.graph, decision.node)) {
                is_open = true;
            } else if decision.is_some()
                && let Some(condition) = self.along(above, here)?
            {
                active = active.zip(&condition, |a, b| a & b);
                self.spend(active.size())?;
            }
            here = above;
        }
        Ok(is_open.then_some(active))
    }

    /// The lanes that come to a block outside of loops if all goes its way that has to do neither with the index nor with what
    /// decides the block's own branch: any number of that may come together with any other. `None` where nothing of the kind
    /// is on the way.
    pub(super) fn assumed_beside(&mut self, block: Block) -> Found<Option<Value>> {
        let (cfg, decisions) = (self.graph.cfg(), self.decisions);
        let own = decisions[block as usize].and_then(|decision| Roots::of(self.graph, decisions, decision.node));
        let Some(own) = own.filter(|_| cfg.loop_of(block).is_none()) else { return Ok(None) };
        let mut active = Value::constant(1);
        let mut is_open = false;
        let mut here = block;
        while let Some(above) = cfg.idom(here) {
            let deciding = self.deciding_between(above, here);
            let is_left = cfg.left_between(above, block).is_some();
            if deciding.iter().all(|at| self.is_beside(*at, &own)) {
                is_open |= !deciding.is_empty();
            } else if !is_left && let Some(coming) = self.coming(above, here)? {
                active = active.zip(&coming, |a, b| a & b);
                self.spend(active.size())?;
            }
            here = above;
        }
        Ok(is_open.then_some(active))
    }

    /// Of a block and those behind it, before one that it dominates at once, those that decide whether lanes come to that one.
    /// What meets again before it decides nothing.
    fn deciding_between(&mut self, above: Block, here: Block) -> Vec<Block> {
        let cfg = self.graph.cfg();
        let Some(region) = self.regions.before(cfg, here) else { return vec![above] };
        let is_within = |met: Block| met == here || region.blocks.contains(&met);
        let all = std::iter::once(above).chain(region.blocks.iter().copied());
        all.filter(|at| cfg.successors(*at).len() > 1 && !is_within(cfg.ipdom(*at))).collect()
    }

    /// Whether what decides the branch of a block has to do neither with the index nor with `own`, and any number of it may
    /// come together with any other.
    fn is_beside(&self, block: Block, own: &Roots) -> bool {
        let Some(decision) = self.decisions[block as usize] else { return false };
        let roots = || Roots::of(self.graph, self.decisions, decision.node);
        !self.known[decision.node.0 as usize].index
            && is_open_until_run(self.graph, decision.node)
            && roots().is_some_and(|roots| roots.are_apart_from(own))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{SHAPE, judged, values_of};

    #[test]
    fn ways_that_meet_choose_by_the_condition_of_each_thread() {
        let text =
            "mov.u32 %r2, %tid.x; setp.lt.u32 %p1, %r2, 40; @%p1 bra A; mov.u32 %r1, 1; bra B; A: mov.u32 %r1, 2; B:";
        assert_eq!(values_of(text, [0, 39, 40, 255]), [2, 2, 1, 1]);
        let nested = "mov.u32 %r2, %tid.x; mov.u32 %r1, 0; setp.lt.u32 %p1, %r2, 40; @!%p1 bra B;
            setp.lt.u32 %p2, %r2, 8; @%p2 bra A; mov.u32 %r1, 1; bra B; A: mov.u32 %r1, 2; B:";
        assert_eq!(values_of(nested, [0, 8, 39, 40]), [2, 1, 1, 0]);
        let table = "mov.u32 %r2, %tid.x; and.b32 %r2, %r2, 3; T: .branchtargets A, B, A; brx.idx %r2, T;
            A: mov.u32 %r1, 10; bra C; B: mov.u32 %r1, 20; C:";
        assert_eq!(values_of(table, [0, 1, 2, 4])[..3], [10, 20, 10]);
    }

    #[test]
    fn who_comes_to_where_some_ways_meet_came_along_one_of_them() {
        let text = |last: &str| {
            format!(
                "mov.u32 %t, %tid.x; shr.u32 %w, %t, 5; and.b32 %r1, %t, 1; setp.eq.u32 %p1, %w, 1; @%p1 bra A;
                 setp.eq.u32 %p2, %w, 6; @!%p2 bra E; A: {last}; bar.sync 0; E: ret;"
            )
        };
        let of = |text: &str| judged(SHAPE, text).pop().expect("a branch").split;
        let odd = of(&text("add.s32 %r2, %r2, 1; setp.eq.u32 %p3, %r1, 1; @!%p3 bra E"));
        // Two warps of eight.
        assert!((odd.among - 0.25).abs() < 1e-9 && (odd.mean - 1.0).abs() < 1e-9, "{odd:?}");
        assert_eq!(odd.witness.expect("a warp that parts").warp, 1);
        let early = of(&text("setp.lt.u32 %p3, %w, 1; @!%p3 bra E"));
        assert!(early.mean.abs() < 1e-9 && early.parts.abs() < 1e-9, "{early:?}");
    }
}
