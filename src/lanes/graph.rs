//! Where values come from: the definitions that reach an operand, with a choice between them where ways meet. Made for what
//! is asked for alone, so that the code that decides no branch costs nothing.

use hashbrown::HashMap;

use super::cfg::{Block, Cfg, Edges, NONE};
use crate::parse::ptx::{Code, Operand, Reg, Special};

/// A value of one function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node(pub u32);

/// Where a value comes from. What it is made of is [`Graph::inputs`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Source {
    /// A constant.
    Constant(u64),
    /// A special register.
    Special(Special),
    /// A parameter's memory, by position and distance.
    Parameter(u32, i64),
    /// The address of a variable, by its name and a distance.
    Address(u32, i64),
    /// Nothing wrote the register.
    Undefined(Reg),
    /// An instruction, and which of its destinations. The inputs are its sources, in order.
    Result {
        /// The instruction.
        instruction: u32,
        /// Its destination.
        place: u16,
    },
    /// What a guarded instruction leaves: the inputs are its predicate, what it writes, and what was there before.
    Guarded {
        /// The instruction.
        instruction: u32,
    },
    /// Ways meet: the inputs are the values that come from the predecessors, in their order.
    Join(Reg),
}

/// Values and what they are made of.
#[derive(Debug)]
pub struct Graph<'c, 't> {
    code: &'c Code<'t>,
    cfg: &'c Cfg,
    sources: Vec<Source>,
    /// Where each value is made.
    blocks: Vec<Block>,
    inputs: Vec<(u32, u32)>,
    lists: Vec<Node>,
    /// The inputs of one value while they are gathered.
    list: Vec<Node>,
    /// Values that nothing of the function's code makes.
    leaves: HashMap<Key, Node>,
    /// What each definition writes: by its number, NO_NODE where that was not asked for.
    written: Vec<Node>,
    /// What a guarded one leaves.
    left: HashMap<u32, Node>,
    definitions: Definitions,
    meetings: Meetings,
    /// Steps that may still be taken.
    budget: u64,
}

/// Stands for a value that was not asked for yet.
const NO_NODE: Node = Node(u32::MAX);

/// Where definitions of a register meet, as far as that was asked for.
#[derive(Debug, Default)]
struct Meetings {
    /// For each register where its blocks are in the list; NOT_FOUND where they were not looked for.
    of: Vec<(u32, u32)>,
    /// The blocks of each register in order, with the value that its definitions make there.
    all: Vec<(Block, Node)>,
    /// The dominance frontier of every block, once it is known.
    frontiers: Option<Edges>,
    /// For each block the register, by its number and 1, that it was met for last.
    seen: Vec<u32>,
    work: Vec<Block>,
}

/// Stands for the blocks of a register that were not looked for.
const NOT_FOUND: (u32, u32) = (u32::MAX, u32::MAX);

#[derive(Debug, PartialEq, Eq, Hash)]
enum Key {
    Constant(u64),
    Special(Special),
    Parameter(u32, i64),
    Address(u32, i64),
    Undefined(Reg),
}

/// The instructions that write each register.
#[derive(Debug)]
struct Definitions {
    starts: Vec<u32>,
    /// Instruction and destination, in order.
    all: Vec<(u32, u16)>,
}

impl Definitions {
    fn new(code: &Code<'_>) -> Definitions {
        let mut written: Vec<(u32, (u32, u16))> = Vec::with_capacity(code.instructions.len());
        for (at, one) in (0..).zip(&code.instructions) {
            for (place, operand) in (0..).zip(code.destinations(one)) {
                if let Operand::Register(register) = operand {
                    written.push((register.0, (at, place)));
                }
            }
        }
        let mut starts = vec![0_u32; code.registers as usize + 1];
        written.iter().for_each(|(register, _)| starts[*register as usize + 1] += 1);
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut next = starts.clone();
        let mut all = vec![(0, 0); written.len()];
        for (register, definition) in written {
            let slot = &mut next[register as usize];
            all[*slot as usize] = definition;
            *slot += 1;
        }
        Definitions { starts, all }
    }

    fn of(&self, register: Reg) -> &[(u32, u16)] {
        let at = register.0 as usize;
        &self.all[self.starts[at] as usize..self.starts[at + 1] as usize]
    }

    /// The number of the last definition of a register from instruction `start` on, and before `end`.
    fn last_in(&self, register: Reg, start: u32, end: u32) -> Option<Definition> {
        let before = self.of(register).partition_point(|(at, _)| *at < end).checked_sub(1)?;
        let number = self.starts[register.0 as usize] + narrow(before);
        (self.all[number as usize].0 >= start).then_some(Definition(number))
    }
}

/// An instruction's writing to a register: an index of [`Definitions::all`].
#[derive(Debug, Clone, Copy)]
struct Definition(u32);

/// Steps through definitions and blocks that one function may take, beside what its size allows.
const BUDGET: u64 = 1 << 20;

/// What reaches a block.
enum Before {
    /// A definition in a block above.
    Definition(Definition),
    /// A value.
    Value(Node),
}

/// The function is too tangled to be followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverBudget;

impl<'c, 't> Graph<'c, 't> {
    /// An empty graph over `code`.
    #[must_use]
    pub fn new(code: &'c Code<'t>, cfg: &'c Cfg) -> Graph<'c, 't> {
        let definitions = Definitions::new(code);
        let written = vec![NO_NODE; definitions.all.len()];
        Graph {
            code,
            cfg,
            sources: Vec::new(),
            blocks: Vec::new(),
            inputs: Vec::new(),
            lists: Vec::new(),
            list: Vec::new(),
            leaves: HashMap::new(),
            written,
            left: HashMap::new(),
            definitions,
            meetings: Meetings::default(),
            budget: BUDGET + 64 * code.instructions.len() as u64,
        }
    }

    /// The code that values are of.
    #[must_use]
    pub fn code(&self) -> &'c Code<'t> {
        self.code
    }

    /// Its control flow.
    #[must_use]
    pub fn cfg(&self) -> &'c Cfg {
        self.cfg
    }

    /// How many values there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sources.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Where a value comes from.
    #[must_use]
    pub fn source(&self, node: Node) -> Source {
        self.sources[node.0 as usize]
    }

    /// The block where it is made.
    #[must_use]
    pub fn block(&self, node: Node) -> Block {
        self.blocks[node.0 as usize]
    }

    /// What it is made of.
    #[must_use]
    pub fn inputs(&self, node: Node) -> &[Node] {
        let (start, end) = self.inputs[node.0 as usize];
        &self.lists[start as usize..end as usize]
    }

    /// The value of `register` just before `instruction`, with all that it is made of.
    ///
    /// # Errors
    /// When that is more than can be followed.
    pub fn read(&mut self, register: Reg, instruction: u32) -> Result<Node, OverBudget> {
        let first_new = self.sources.len();
        let node = self.reaching(register, instruction)?;
        self.complete(first_new)?;
        Ok(node)
    }

    /// Finds the inputs of every value from `next` on, and of those that this adds.
    fn complete(&mut self, mut next: usize) -> Result<(), OverBudget> {
        while next < self.sources.len() {
            let node = Node(narrow(next));
            next += 1;
            let mut list = std::mem::take(&mut self.list);
            list.clear();
            match self.sources[node.0 as usize] {
                Source::Result { instruction, .. } => self.sources_of(instruction, &mut list)?,
                Source::Guarded { instruction } => {
                    // The other inputs were found when the value was made.
                    if let Some(guard) = self.code.instructions[instruction as usize].guard {
                        let predicate = self.reaching(guard.register, instruction)?;
                        let (start, _) = self.inputs[node.0 as usize];
                        self.lists[start as usize] = predicate;
                    }
                    self.list = list;
                    continue;
                }
                Source::Join(register) => {
                    let cfg = self.cfg;
                    for before in cfg.predecessors(self.block(node)) {
                        self.spend(1)?;
                        let input = if cfg.is_reached(*before) {
                            self.at_end(register, *before)?
                        } else {
                            self.leaf(Source::Undefined(register), Key::Undefined(register))
                        };
                        list.push(input);
                    }
                }
                _ => {
                    self.list = list;
                    continue;
                }
            }
            let start = narrow(self.lists.len());
            self.lists.extend_from_slice(&list);
            self.list = list;
            self.inputs[node.0 as usize] = (start, narrow(self.lists.len()));
        }
        Ok(())
    }

    fn spend(&mut self, steps: u64) -> Result<(), OverBudget> {
        self.budget = self.budget.checked_sub(steps).ok_or(OverBudget)?;
        Ok(())
    }

    fn sources_of(&mut self, instruction: u32, list: &mut Vec<Node>) -> Result<(), OverBudget> {
        let code = self.code;
        for operand in code.sources(&code.instructions[instruction as usize]) {
            self.spend(1)?;
            list.push(match *operand {
                Operand::Register(register)
                | Operand::Not(register)
                | Operand::Minus(register)
                | Operand::Memory(register, _) => self.reaching(register, instruction)?,
                Operand::Constant(value) | Operand::Fixed(value) => self.constant(value),
                Operand::Special(special) => self.leaf(Source::Special(special), Key::Special(special)),
                Operand::Symbol(name, distance) => {
                    self.leaf(Source::Address(name, distance), Key::Address(name, distance))
                }
                Operand::Parameter(position, distance) => {
                    self.leaf(Source::Parameter(position, distance), Key::Parameter(position, distance))
                }
                Operand::Sink => self.constant(0),
            });
        }
        Ok(())
    }

    fn constant(&mut self, value: u64) -> Node {
        self.leaf(Source::Constant(value), Key::Constant(value))
    }

    fn leaf(&mut self, source: Source, key: Key) -> Node {
        if let Some(known) = self.leaves.get(&key) {
            return *known;
        }
        let node = self.node(source, 0);
        self.leaves.insert(key, node);
        node
    }

    fn node(&mut self, source: Source, block: Block) -> Node {
        self.sources.push(source);
        self.blocks.push(block);
        self.inputs.push((0, 0));
        Node(narrow(self.sources.len() - 1))
    }

    /// The value of a register just before an instruction; its inputs may still be missing.
    fn reaching(&mut self, register: Reg, instruction: u32) -> Result<Node, OverBudget> {
        let block = self.cfg.block_of[instruction as usize];
        match self.definitions.last_in(register, self.cfg.starts[block as usize], instruction) {
            Some(definition) => self.definition(register, definition),
            None => self.at_start(register, block),
        }
    }

    fn at_end(&mut self, register: Reg, block: Block) -> Result<Node, OverBudget> {
        let instructions = self.cfg.instructions(block);
        match self.definitions.last_in(register, instructions.start, instructions.end) {
            Some(definition) => self.definition(register, definition),
            None => self.at_start(register, block),
        }
    }

    fn at_start(&mut self, register: Reg, block: Block) -> Result<Node, OverBudget> {
        let all = self.definitions.of(register);
        if let [(at, _)] = *all
            && self.code.instructions[at as usize].guard.is_none()
        {
            let from = self.cfg.block_of[at as usize];
            if from != block && self.cfg.dominates(from, block) {
                return self.definition(register, Definition(self.definitions.starts[register.0 as usize]));
            }
        }
        if all.is_empty() {
            return Ok(self.leaf(Source::Undefined(register), Key::Undefined(register)));
        }
        match self.before(register, block)? {
            Before::Definition(definition) => self.definition(register, definition),
            Before::Value(value) => Ok(value),
        }
    }

    /// The value that a definition leaves. Guarded ones build on what was there before, which is followed step by step: there
    /// may be any number of them.
    fn definition(&mut self, register: Reg, definition: Definition) -> Result<Node, OverBudget> {
        let mut chain = Vec::new();
        let mut at = definition;
        let mut value = loop {
            self.spend(1)?;
            let (instruction, _) = self.definitions.all[at.0 as usize];
            if self.code.instructions[instruction as usize].guard.is_none() {
                break self.result(at);
            }
            if let Some(known) = self.left.get(&at.0) {
                break *known;
            }
            chain.push(at);
            let block = self.cfg.block_of[instruction as usize];
            let before = match self.definitions.last_in(register, self.cfg.starts[block as usize], instruction) {
                Some(before) => Before::Definition(before),
                None => self.before(register, block)?,
            };
            match before {
                Before::Definition(before) => at = before,
                Before::Value(value) => break value,
            }
        };
        for definition in chain.into_iter().rev() {
            value = self.guarded(definition, value);
        }
        Ok(value)
    }

    /// What reaches the start of a block.
    fn before(&mut self, register: Reg, mut block: Block) -> Result<Before, OverBudget> {
        self.find_meetings(register)?;
        loop {
            self.spend(1)?;
            let (start, end) = self.meetings.of[register.0 as usize];
            let meetings = &self.meetings.all[start as usize..end as usize];
            if let Ok(at) = meetings.binary_search_by_key(&block, |(block, _)| *block) {
                let known = meetings[at].1;
                if known != NO_NODE {
                    return Ok(Before::Value(known));
                }
                let node = self.node(Source::Join(register), block);
                self.meetings.all[start as usize + at].1 = node;
                return Ok(Before::Value(node));
            }
            let Some(above) = self.cfg.idom(block) else {
                return Ok(Before::Value(self.leaf(Source::Undefined(register), Key::Undefined(register))));
            };
            let instructions = self.cfg.instructions(above);
            if let Some(definition) = self.definitions.last_in(register, instructions.start, instructions.end) {
                return Ok(Before::Definition(definition));
            }
            block = above;
        }
    }

    /// The value that a definition writes, whatever guards it.
    fn result(&mut self, definition: Definition) -> Node {
        let known = self.written[definition.0 as usize];
        if known != NO_NODE {
            return known;
        }
        let (instruction, place) = self.definitions.all[definition.0 as usize];
        let block = self.cfg.block_of[instruction as usize];
        let node = self.node(Source::Result { instruction, place }, block);
        self.written[definition.0 as usize] = node;
        node
    }

    /// The value that a guarded instruction leaves. Its predicate is found when the inputs of values are.
    fn guarded(&mut self, definition: Definition, before: Node) -> Node {
        let written = self.result(definition);
        let (instruction, _) = self.definitions.all[definition.0 as usize];
        let block = self.cfg.block_of[instruction as usize];
        let node = self.node(Source::Guarded { instruction }, block);
        self.left.insert(definition.0, node);
        let start = narrow(self.lists.len());
        self.lists.extend([written, written, before]);
        self.inputs[node.0 as usize] = (start, narrow(self.lists.len()));
        node
    }

    /// Finds where several definitions of a register meet: the iterated dominance frontier of their blocks.
    fn find_meetings(&mut self, register: Reg) -> Result<(), OverBudget> {
        if self.meetings.frontiers.is_none() {
            self.meetings.frontiers = Some(self.frontiers()?);
            self.meetings.of = vec![NOT_FOUND; self.code.registers as usize];
            self.meetings.seen = vec![0; self.cfg.end() as usize];
        }
        let meetings = &mut self.meetings;
        let Some(frontiers) = meetings.frontiers.as_ref().filter(|_| meetings.of[register.0 as usize] == NOT_FOUND)
        else {
            return Ok(());
        };
        let start = meetings.all.len();
        let mark = register.0 + 1;
        let mut work = std::mem::take(&mut meetings.work);
        work.clear();
        work.extend(self.definitions.of(register).iter().map(|(at, _)| self.cfg.block_of[*at as usize]));
        work.dedup();
        let mut steps = 0;
        while let Some(block) = work.pop() {
            let frontier = frontiers.of(block);
            for one in frontier {
                if std::mem::replace(&mut meetings.seen[*one as usize], mark) != mark {
                    meetings.all.push((*one, NO_NODE));
                    work.push(*one);
                }
            }
            steps += frontier.len() as u64 + 1;
        }
        meetings.work = work;
        meetings.all[start..].sort_unstable_by_key(|(block, _)| *block);
        meetings.of[register.0 as usize] = (narrow(start), narrow(meetings.all.len()));
        self.spend(steps)
    }

    /// The dominance frontier of every block (Cooper, Harvey and Kennedy 2001).
    fn frontiers(&mut self) -> Result<Edges, OverBudget> {
        let cfg = self.cfg;
        let mut frontiers: Vec<(Block, Block)> = Vec::new();
        let mut last = vec![NONE; cfg.end() as usize];
        for block in (0..cfg.end()).filter(|block| cfg.is_reached(*block)) {
            let before = cfg.predecessors(block);
            let above = cfg.idom(block);
            if before.len() < 2 && above.is_some() {
                continue;
            }
            for from in before.iter().filter(|from| cfg.is_reached(**from)) {
                let mut at = Some(*from);
                while let Some(here) = at.filter(|here| Some(*here) != above) {
                    self.spend(1)?;
                    if std::mem::replace(&mut last[here as usize], block) != block {
                        frontiers.push((here, block));
                    }
                    at = cfg.idom(here);
                }
            }
        }
        Ok(Edges::gathered(frontiers.iter().copied(), cfg.end() as usize))
    }
}

fn narrow(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::testing::with_cfg;
    use super::*;
    use crate::parse::ptx::Op;

    /// Where the operand of the first `popc` comes from, and what that is made of, in words.
    fn told(text: &str) -> String {
        with_cfg(text, |code, cfg| {
            let mut graph = Graph::new(code, cfg);
            let at = code.instructions.iter().position(|one| one.op == Op::Popc).expect("a popc");
            let Some(Operand::Register(register)) = code.sources(&code.instructions[at]).first().copied() else {
                panic!("a register")
            };
            let node = graph.read(register, narrow(at)).expect("it can be followed");
            words(&graph, node, &mut Vec::new())
        })
    }

    fn words(graph: &Graph<'_, '_>, node: Node, above: &mut Vec<Node>) -> String {
        if above.contains(&node) {
            return "itself".to_owned();
        }
        above.push(node);
        let inputs: Vec<String> = graph.inputs(node).iter().map(|input| words(graph, *input, above)).collect();
        above.pop();
        let inputs = inputs.join(", ");
        match graph.source(node) {
            Source::Constant(value) => value.to_string(),
            Source::Special(special) => format!("{special:?}"),
            Source::Parameter(position, distance) => format!("parameter {position}+{distance}"),
            Source::Address(name, _) => String::from_utf8_lossy(graph.code().names[name as usize]).into_owned(),
            Source::Undefined(_) => "nothing".to_owned(),
            Source::Result { instruction, place } => {
                let op = graph.code().instructions[instruction as usize].op;
                let place = if place > 0 { format!(".{place}") } else { String::new() };
                format!("{op:?}{place}({inputs})")
            }
            Source::Guarded { .. } => format!("guarded({inputs})"),
            Source::Join(_) => format!("join({inputs})"),
        }
    }

    #[test]
    fn the_last_definition_in_the_block_counts() {
        assert_eq!(told("mov.u32 %r1, 1; mov.u32 %r1, 2; popc.b32 %r2, %r1; mov.u32 %r1, 3;"), "Mov(2)");
        assert_eq!(told("neg.s32 %r1, %tid.x; not.b32 %r1, %r1; popc.b32 %r2, %r1;"), "Not(Neg(Tid(0)))");
        assert_eq!(told("popc.b32 %r2, %r1;"), "nothing");
        assert_eq!(told("ld.param.u32 %r1, [n+4]; popc.b32 %r2, %r1;"), "Ld(parameter 1+4)");
        assert_eq!(told("mov.u32 %r1, tile; popc.b32 %r2, %r1;"), "Mov(tile)");
        assert_eq!(told("mov.b64 {%r1, %r2}, %rd1; popc.b32 %r2, %r2;"), "Mov.1(nothing)");
    }

    #[test]
    fn a_guarded_definition_keeps_what_was_there() {
        assert_eq!(told("mov.u32 %r1, 1; @%p1 mov.u32 %r1, 2; popc.b32 %r2, %r1;"), "guarded(nothing, Mov(2), Mov(1))");
        assert_eq!(
            told("setp.eq.u32 %p1, %r9, 0; @!%p1 neg.s32 %r1, %r1; popc.b32 %r2, %r1;"),
            "guarded(Setp(nothing, 0), Neg(nothing), nothing)"
        );
        let text = "mov.u32 %r1, 1; @%p1 mov.u32 %r1, 2; @%p2 mov.u32 %r1, 3; popc.b32 %r2, %r1;";
        assert_eq!(told(text), "guarded(nothing, Mov(3), guarded(nothing, Mov(2), Mov(1)))");
    }

    #[test]
    fn definitions_join_where_ways_meet_and_only_there() {
        let text = "@%p1 bra A; mov.u32 %r1, 1; bra B; A: mov.u32 %r1, 2; B: popc.b32 %r2, %r1; ret;";
        assert_eq!(told(text), "join(Mov(1), Mov(2))");
        let one = "mov.u32 %r1, 1; @%p1 bra A; neg.s32 %r3, %r1; A: popc.b32 %r2, %r1; ret;";
        assert_eq!(told(one), "Mov(1)");
        let half = "@%p1 bra A; mov.u32 %r1, 1; A: popc.b32 %r2, %r1; ret;";
        assert_eq!(told(half), "join(nothing, Mov(1))");
    }

    #[test]
    fn a_loop_joins_what_comes_in_with_what_comes_round() {
        let text = "mov.u32 %r1, 0; L: popc.b32 %r2, %r1; add.s32 %r1, %r1, 1; @%p1 bra L; ret;";
        assert_eq!(told(text), "join(Mov(0), Add(itself, 1))");
        let after = "mov.u32 %r1, 0; L: add.s32 %r1, %r1, 1; @%p1 bra L; popc.b32 %r2, %r1; ret;";
        assert_eq!(told(after), "Add(join(Mov(0), itself), 1)");
    }

    #[test]
    fn code_that_is_never_reached_brings_nothing() {
        let text = "mov.u32 %r1, 1; bra B; A: mov.u32 %r1, 2; B: popc.b32 %r2, %r1; ret;";
        assert_eq!(told(text), "Mov(1)");
    }

    #[test]
    fn a_tangled_cycle_joins_at_both_ways_in() {
        let text = "mov.u32 %r1, 0; @%p1 bra B; A: add.s32 %r1, %r1, 1; B: popc.b32 %r2, %r1; @%p2 bra A; ret;";
        assert_eq!(told(text), "join(Mov(0), Add(join(Mov(0), itself), 1))");
    }

    #[test]
    fn any_number_of_guarded_definitions_takes_no_stack() {
        let many = "@%p1 add.s32 %r1, %r1, 1;\n".repeat(20_000);
        with_cfg(&format!("{many}popc.b32 %r2, %r1; ret;"), |code, cfg| {
            let Some(Operand::Register(register)) = code.sources(&code.instructions[20_000]).first().copied() else {
                panic!("a register")
            };
            let mut graph = Graph::new(code, cfg);
            assert!(graph.read(register, 20_000).is_ok() && graph.len() > 40_000);
        });
    }
}
