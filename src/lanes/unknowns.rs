//! Level 2: numbers that nobody knows before the kernel runs, drawn for each environment: places in the grid, parameters, and
//! what is read from memory.

use super::Shape;
use super::eval::{Evaluator, Found, Mode};
use super::graph::Node;
use super::lattice::WARP;
use super::op;
use super::sample::{Flavour, draw, mix};
use super::uses::Use;
use super::value::{LANES, Span, Value, is_near};
use crate::parse::ptx::{Instruction, Op, Operand, Reg, Space, Special, Type};

/// Why an environment is looked at although few blocks are like that: so that the edge of a problem is always met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edge {
    /// The first block of the grid.
    First,
    /// Sizes end within the block in x.
    AlongX,
    /// Some of them do.
    Some,
    /// Sizes end within the block in y.
    AlongY,
    /// The whole problem is smaller than a block.
    Small,
    /// The last block of the grid.
    Last,
    /// The grid has few blocks.
    Few,
}

/// What is special about an environment.
fn edge(environment: usize) -> Option<Edge> {
    match environment {
        0 | 12 => Some(Edge::First),
        7 => Some(Edge::AlongX),
        15 => Some(Edge::Some),
        3 => Some(Edge::AlongY),
        19 => Some(Edge::Small),
        24 => Some(Edge::Last),
        25 => Some(Edge::Few),
        _ => None,
    }
}

/// How much an environment counts in a mean.
pub(super) fn share(environment: usize) -> f64 {
    if edge(environment).is_some() { 0.15 } else { 1.0 }
}

/// What whole numbers are multiples of that keep threads in their places: no block has more of them.
const ALIGNED: u64 = 1024;

/// A whole number that is small, or no larger than a block, or within a few blocks or at the end of one; `None` for any other.
fn near_number(flavour: Flavour, bits: u64, threads: u64) -> Option<u64> {
    if !matches!(flavour, Flavour::Integer | Flavour::Datum | Flavour::Bits32 | Flavour::Bits64) {
        return None;
    }
    let number = mix(bits, 29);
    match mix(bits, 30) % 8 {
        0..2 => Some(number % 9),
        2..4 => Some(number % (threads + 2)),
        4..6 => Some(number % (4 * threads)),
        6 => Some(threads * (number % 8)),
        _ => None,
    }
}

impl Evaluator<'_, '_, '_> {
    /// A number that nobody knows before the kernel runs.
    pub(super) fn symbol(&self, span: Span, flavour: Flavour, key: u64, kind: u64) -> Value {
        let seed = mix(key, kind);
        let is_whole = matches!(flavour, Flavour::Integer | Flavour::Datum);
        let keep = if self.aligned && is_whole { !(ALIGNED - 1) } else { u64::MAX };
        let threads = self.extent.threads as u64;
        Value::sampled(self.extent, span, |environment, place| {
            let bits = mix(mix(seed, environment as u64), place as u64);
            let near = if is_near(environment) { near_number(flavour, bits, threads) } else { None };
            near.unwrap_or_else(|| draw(flavour, bits)) & keep
        })
    }

    /// Data: one number for the block, or one for each lane.
    pub(super) fn data(&self, flavour: Flavour, key: u64, kind: u64) -> Value {
        match self.mode {
            Mode::Index => self.symbol(Span::Block, flavour, key, kind),
            Mode::Data => self.symbol(Span::Thread, flavour, key, kind).as_data(),
        }
    }

    pub(super) fn special(&self, special: Special) -> Value {
        let Shape { x, y, z, .. } = self.shape;
        let (x, y) = (x as usize, y as usize);
        let lanes = |f: fn(u32) -> u32| {
            let lane = |thread: usize| u32::try_from(thread % LANES).unwrap_or(0);
            Value::of_threads(self.extent, move |thread| u64::from(f(lane(thread))))
        };
        let size = [self.shape.x, self.shape.y, z];
        match special {
            Special::Tid(axis) if size[usize::from(axis.min(2))] == 1 => Value::constant(0),
            Special::Tid(0) => Value::of_threads(self.extent, |thread| (thread % x) as u64),
            Special::Tid(1) => Value::of_threads(self.extent, |thread| (thread / x % y) as u64).condensed(self.extent),
            Special::Tid(_) => {
                Value::of_threads(self.extent, |thread| (thread / (x * y)) as u64).condensed(self.extent)
            }
            Special::Ntid(axis) => Value::constant(u64::from(size[usize::from(axis.min(2))])),
            Special::WarpSize => Value::constant(32),
            Special::Laneid => lanes(|lane| lane),
            Special::LanemaskEq => lanes(|lane| 1 << lane),
            Special::LanemaskLt => lanes(|lane| (1 << lane) - 1),
            Special::LanemaskLe => lanes(|lane| u32::MAX >> (31 - lane)),
            Special::LanemaskGe => lanes(|lane| u32::MAX << lane),
            Special::LanemaskGt => lanes(|lane| (u32::MAX << lane) ^ (1 << lane)),
            Special::Warpid => Value::of_warps(self.extent, |warp| warp as u64),
            Special::Nwarpid => Value::constant(self.extent.warps() as u64),
            Special::Nctaid(axis) => self.blocks_of_grid(axis),
            Special::Ctaid(axis) => self.place_in_grid(axis),
            Special::Clock => self.data(Flavour::Bits64, 0, 16),
            Special::Other(name) => self.symbol(Span::Block, Flavour::Integer, u64::from(name), 17),
        }
    }

    /// How many blocks the grid has along an axis.
    fn blocks_of_grid(&self, axis: u8) -> Value {
        let number = self.symbol(Span::Block, Flavour::Integer, u64::from(axis), 14);
        let few = |at: usize| edge(at) == Some(Edge::Few) || (is_near(at) && !at.is_multiple_of(3));
        let few = Value::sampled(self.extent, Span::Block, |at, _| u64::from(few(at)));
        number.zip(&few, |number, few| if few == 0 { number % 64 + 16 } else { number % 8 + 1 })
    }

    /// Which of them the block is.
    fn place_in_grid(&self, axis: u8) -> Value {
        let count = self.blocks_of_grid(axis);
        let number = Value::sampled(self.extent, Span::Block, |environment, _| {
            mix(mix(u64::from(axis), 15), environment as u64)
        });
        let inner = number.zip(&count, |number, count| number % count);
        let is_first = |environment| match edge(environment) {
            Some(Edge::First | Edge::Small) => 1,
            Some(Edge::AlongX | Edge::Some) => u64::from(axis != 0),
            Some(Edge::AlongY) => u64::from(axis != 1),
            Some(Edge::Last | Edge::Few) => 0,
            None => u64::from(is_near(environment) && environment.is_multiple_of(2)),
        };
        let first = Value::sampled(self.extent, Span::Block, |environment, _| is_first(environment));
        let last = Value::sampled(self.extent, Span::Block, |at, _| u64::from(edge(at) == Some(Edge::Last)));
        let place = first.zip(&inner, |first, inner| if first == 0 { inner } else { 0 });
        place.zip(&last.zip(&count, |last, count| last * count), |place, end| if end == 0 { place } else { end - 1 })
    }

    /// A number of its own for each lane, for a value that lanes leave a loop with at some time.
    pub(super) fn noise(&self, node: Node, one: u32) -> Value {
        self.symbol(Span::Thread, Flavour::Integer, u64::from(node.0) << 20 | u64::from(one), 28)
    }

    /// What a register holds that a number of memory is read into.
    pub(super) fn loaded(&mut self, node: Node, instruction: u32, place: u16) -> Found<Value> {
        let kind = self.graph.code().instructions[instruction as usize].kind;
        let value = self.read_from_memory(node, instruction, place)?;
        Ok(op::loaded(kind, value))
    }

    fn read_from_memory(&mut self, node: Node, instruction: u32, place: u16) -> Found<Value> {
        let graph = self.graph;
        let code = graph.code();
        let one = &code.instructions[instruction as usize];
        let key = u64::from(instruction) << 16 | u64::from(place);
        if one.op == Op::Ld && one.space == Space::Param {
            return Ok(match code.sources(one).first() {
                Some(Operand::Parameter(position, distance)) => self.parameter(one, place, *position, *distance),
                // What a call left.
                _ => self.data(flavour(one), key, 24),
            });
        }
        let is_own = |input: &Node| self.known[input.0 as usize].is_own_memory();
        if one.op == Op::Atom || one.space == Space::Local || graph.inputs(node).iter().any(is_own) {
            return Ok(self.data(flavour(one), key, 25));
        }
        if self.known[node.0 as usize].is_warp_uniform() {
            return Ok(self.symbol(self.span_of_shared(node), flavour(one), key, 26));
        }
        let block = graph.block(node);
        let mut span = Span::Block;
        for input in graph.inputs(node) {
            span = span.max(self.value(*input, block)?.condensed(self.extent).span());
        }
        Ok(match span {
            Span::Warp if self.mode == Mode::Data => self.symbol(Span::Warp, flavour(one), key, 26),
            Span::Block => self.symbol(Span::Block, flavour(one), key, 26),
            _ => self.data(flavour(one), key, 26),
        })
    }

    /// How far a number varies that the lanes of a warp share and nobody knows: what warps do by their data alone is no
    /// disagreement by index.
    pub(super) fn span_of_shared(&self, node: Node) -> Span {
        let is_by_warp = self.known[node.0 as usize].grain <= WARP && self.mode == Mode::Data;
        if is_by_warp { Span::Warp } else { Span::Block }
    }

    /// What kind of number a parameter is: compilers may read all of them as bits, and then tell by what is done with it.
    fn flavour_of_parameter(&self, one: &Instruction, register: Reg) -> Flavour {
        match (one.kind, self.uses.of(register)) {
            (kind, Use::Pointer) if kind.width() == 64 => Flavour::Pointer,
            (Type::Bits(32), Use::Float) => Flavour::F32,
            (Type::Bits(64), Use::Float) => Flavour::F64,
            (Type::Bits(_), _) => Flavour::Integer,
            _ => flavour(one),
        }
    }

    fn parameter(&self, one: &Instruction, place: u16, position: u32, distance: i64) -> Value {
        let arguments = if self.mode == Mode::Index { &self.arguments.by_index } else { &self.arguments.by_data };
        if distance == 0
            && place == 0
            && let Some(value) = arguments.get(&position)
        {
            return value.in_environments(self.extent.environments);
        }
        let flavour = match self.graph.code().destinations(one).get(usize::from(place)) {
            Some(Operand::Register(register)) => self.flavour_of_parameter(one, *register),
            _ => flavour(one),
        };
        let key = mix(u64::from(position), distance.cast_unsigned().wrapping_add(u64::from(place)));
        if !self.shape.is_entry {
            return self.data(flavour, key, 27);
        }
        let value = self.symbol(Span::Block, flavour, key, 27);
        if flavour != Flavour::Integer || self.aligned {
            value
        } else {
            self.ending_here(&value, key, one.kind.width())
        }
    }

    /// A size that in some environments ends within the block: so that the edge of a problem is always met, and seldom.
    fn ending_here(&self, value: &Value, key: u64, bits: u32) -> Value {
        let Shape { x, y, .. } = self.shape;
        let blocks = [0, 1].map(|axis| self.special(Special::Ctaid(axis)));
        let low = if bits >= 64 { u64::MAX } else { (1 << bits) - 1 };
        Value::sampled(self.extent, Span::Block, |environment, _| {
            let draw = mix(mix(key, 29), environment as u64);
            let within = |threads: u32| 1 + draw % u64::from(threads.max(2) - 1);
            let place = self.extent.environments.iter().position(|one| *one == environment).unwrap_or(0);
            let block = |axis: usize| blocks[axis].at(place, 0);
            let end = match edge(environment) {
                Some(Edge::AlongX) => block(0) * u64::from(x) + within(x),
                Some(Edge::Some) if draw >> 40 & 1 == 0 => block(0) * u64::from(x) + within(x),
                Some(Edge::AlongY) => block(1) * u64::from(y) + within(y),
                Some(Edge::Small) => within(x.max(y)),
                _ => return value.at(place, 0),
            };
            end & low
        })
    }
}

/// What kind of numbers an instruction reads from memory.
pub(super) fn flavour(one: &Instruction) -> Flavour {
    match one.kind {
        Type::F32 => Flavour::F32,
        Type::F64 => Flavour::F64,
        Type::Bits(64) => Flavour::Bits64,
        Type::Bits(32) => Flavour::Bits32,
        _ if one.space == Space::Param => Flavour::Integer,
        _ => Flavour::Datum,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{SHAPE, evaluated, value_of, values_of};
    use super::super::value::{ALL, Extent};
    use super::*;

    #[test]
    fn positions_in_the_block_are_exact() {
        assert_eq!(values_of("mov.u32 %r1, %tid.x;", [0, 31, 32, 255]), [0, 31, 32, 255]);
        assert_eq!(values_of("mov.u32 %r1, %laneid;", [0, 31, 32, 255]), [0, 31, 0, 31]);
        assert_eq!(values_of("mov.u32 %r1, %warpid;", [0, 31, 32, 255]), [0, 0, 1, 7]);
        assert_eq!(values_of("mov.u32 %r1, %lanemask_lt;", [0, 1, 31, 32]), [0, 1, 0x7fff_ffff, 0]);
        assert_eq!(
            values_of("mov.u32 %r1, %lanemask_ge;", [0, 1, 31, 32]),
            [0xffff_ffff, 0xffff_fffe, 1 << 31, 0xffff_ffff]
        );
        let tile = Shape { x: 16, y: 4, z: 2, is_entry: true };
        let axis = |axis: &str| {
            let value = evaluated(tile, Mode::Index, &format!("mov.u32 %r1, %tid.{axis}; popc.b32 %r9, %r1;"));
            let value = value.expect("a value");
            [0, 17, 63, 127].map(|thread| value.at(0, thread))
        };
        assert_eq!((axis("x"), axis("y"), axis("z")), ([0, 1, 15, 15], [0, 1, 3, 3], [0, 0, 0, 1]));
    }

    #[test]
    fn block_numbers_and_parameters_are_one_number_for_the_block_and_differ_between_environments() {
        for text in ["mov.u32 %r1, %ctaid.x;", "ld.param.u32 %r1, [n];"] {
            let value = value_of(text);
            assert_eq!((value.span(), value.varies()), (Span::Block, true), "{text}");
            assert!((1..ALL.len()).any(|at| value.at(at, 0) != value.at(0, 0)), "{text}");
        }
        let below = value_of(
            "mov.u32 %r2, %ctaid.x; mov.u32 %r3, %nctaid.x; setp.lt.u32 %p1, %r2, %r3; selp.b32 %r1, 1, 0, %p1;",
        );
        assert!((0..ALL.len()).all(|at| below.at(at, 0) == 1), "a block number is below the number of blocks");
    }

    #[test]
    fn data_are_one_number_in_one_mode_and_one_for_each_lane_in_the_other() {
        let text = "mov.u32 %r2, %tid.x; mul.wide.u32 %rd2, %r2, 4; ld.global.u32 %r1, [%rd2]; popc.b32 %r9, %r1;";
        let by = |mode| {
            evaluated(SHAPE, mode, text).expect("a value").condensed(Extent { threads: 256, environments: ALL }).span()
        };
        assert_eq!((by(Mode::Index), by(Mode::Data)), (Span::Block, Span::Thread));
    }

    #[test]
    fn grids_are_of_few_blocks_as_well() {
        let count = value_of("mov.u32 %r1, %nctaid.x;");
        let small = (0..ALL.len()).filter(|at| count.at(*at, 0) <= 8).count();
        assert!(small == 1 && (0..ALL.len()).all(|at| count.at(at, 0) > 0), "{count:?}");
        let last = value_of(
            "mov.u32 %r2, %ctaid.x; add.u32 %r2, %r2, 1; mov.u32 %r3, %nctaid.x; setp.eq.u32 %p1, %r2, %r3; \
             selp.b32 %r1, 1, 0, %p1;",
        );
        assert!((0..ALL.len()).any(|at| last.at(at, 0) == 1), "{last:?}");
    }

    #[test]
    fn parameters_that_are_read_as_bits_are_what_is_done_with_them() {
        let in_grid = |use_it: &str| {
            let value = value_of(&format!("ld.param.b32 %r1, [n]; {use_it}"));
            (0..ALL.len()).filter(|at| value.at(*at, 0) < 1 << 22).count()
        };
        assert_eq!(in_grid(""), ALL.len());
        assert!(in_grid("fma.rn.f32 %r2, %r1, %r1, %r1;") < ALL.len() / 2);
    }
}
