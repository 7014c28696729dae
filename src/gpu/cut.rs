//! How a launch is cut into warps, and which lanes of which warps have work: in closed form, whatever the size of the grid.
//!
//! A block's threads are flattened, x first, and cut every 32. The edge of a problem goes through at most one block of each
//! dimension, so that at most three kinds of blocks follow each other there: whole ones, the one at the edge, and those
//! beyond it. All blocks of a kind are alike, and there are 27 kinds at most.

use crate::model::{BlockSize, Extent, GridSize};

/// Lanes of a warp, on every GPU that CUDA runs on.
pub const WARP: u32 = 32;

/// One warp of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WarpOfBlock {
    /// Its number within the block.
    pub number: u32,
    /// Lanes that have a thread.
    pub lanes: u32,
    /// The thread of its first lane.
    pub first: [u32; 3],
    /// The thread of its last lane that has one.
    pub last: [u32; 3],
}

impl WarpOfBlock {
    /// Rows of the block that it covers, in part or whole.
    #[must_use]
    pub fn rows(&self, block: BlockSize) -> u32 {
        let row = |thread: [u32; 3]| thread[1] + block.y * thread[2];
        row(self.last) - row(self.first) + 1
    }
}

/// The warps of a block, in order: 32 at most.
#[must_use]
pub fn warps_of(block: BlockSize) -> Vec<WarpOfBlock> {
    let threads = block.threads();
    let thread = |flat: u32| [flat % block.x, flat / block.x % block.y, flat / (block.x * block.y)];
    (0..threads.div_ceil(WARP))
        .map(|number| {
            let first = number * WARP;
            let lanes = WARP.min(threads - first);
            WarpOfBlock { number, lanes, first: thread(first), last: thread(first + lanes - 1) }
        })
        .collect()
}

/// Consecutive blocks of one dimension that the extent leaves equally many threads in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// The first of them.
    pub first: u32,
    /// The last of them.
    pub last: u32,
    /// Threads of a block, in this dimension, that have work.
    pub threads: u32,
}

impl Segment {
    /// Blocks of the segment.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        u64::from(self.last - self.first) + 1
    }
}

/// Blocks that are alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    /// Where in the grid they are.
    pub place: [Segment; 3],
    /// The lanes of each warp that have work, lane 0 in the lowest bit.
    pub lanes: Vec<u32>,
}

impl Kind {
    fn new(block: BlockSize, place: [Segment; 3]) -> Kind {
        let mut lanes = vec![0; block.threads().div_ceil(WARP) as usize];
        let has_work = |axis: usize, thread: u32| thread < place[axis].threads;
        for z in (0..block.z).filter(|z| has_work(2, *z)) {
            for y in (0..block.y).filter(|y| has_work(1, *y)) {
                for x in (0..block.x).filter(|x| has_work(0, *x)) {
                    let flat = x + block.x * (y + block.y * z);
                    lanes[(flat / WARP) as usize] |= 1_u32 << (flat % WARP);
                }
            }
        }
        Kind { place, lanes }
    }

    /// How many such blocks there are.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.place.iter().map(Segment::blocks).product()
    }

    /// Lanes of each warp that have work.
    pub fn working(&self) -> impl Iterator<Item = u32> {
        self.lanes.iter().map(|lanes| lanes.count_ones())
    }

    /// Whether no thread of such a block has work.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.place.iter().any(|segment| segment.threads == 0)
    }
}

/// Elements that lie beyond the grid in one dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beyond {
    /// The dimension: 0 is x.
    pub axis: usize,
    /// The first such element.
    pub first: u64,
    /// The last.
    pub last: u64,
}

/// A launch cut into warps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The grid.
    pub grid: GridSize,
    /// The block.
    pub block: BlockSize,
    /// The problem, where it was told.
    pub extent: Option<Extent>,
    /// Kinds of blocks, x varying first.
    pub kinds: Vec<Kind>,
}

impl Cut {
    /// Cuts a launch.
    #[must_use]
    pub fn new(grid: GridSize, block: BlockSize, extent: Option<Extent>) -> Cut {
        let bounds = extent.map_or([None; 3], Extent::dimensions);
        let along = |axis: usize| segments(grid.dimensions()[axis], block.dimensions()[axis], bounds[axis]);
        let (xs, ys, zs) = (along(0), along(1), along(2));
        let mut kinds = Vec::new();
        for z in &zs {
            for y in &ys {
                kinds.extend(xs.iter().map(|x| Kind::new(block, [*x, *y, *z])));
            }
        }
        Cut { grid, block, extent, kinds }
    }

    /// Warps a block.
    #[must_use]
    pub fn warps_per_block(&self) -> u32 {
        self.block.threads().div_ceil(WARP)
    }

    /// Lanes of a block's last warp that have no thread.
    #[must_use]
    pub fn idle_lanes_per_block(&self) -> u32 {
        self.warps_per_block() * WARP - self.block.threads()
    }

    /// Warps of all blocks.
    #[must_use]
    pub fn warps(&self) -> u128 {
        u128::from(self.grid.blocks()) * u128::from(self.warps_per_block())
    }

    /// Lanes of all warps.
    #[must_use]
    pub fn lanes(&self) -> u128 {
        self.warps() * u128::from(WARP)
    }

    /// Threads of all blocks.
    #[must_use]
    pub fn threads(&self) -> u128 {
        u128::from(self.grid.blocks()) * u128::from(self.block.threads())
    }

    /// Lanes that have a thread whose element lies within the extent.
    #[must_use]
    pub fn working_lanes(&self) -> u128 {
        self.sum(|kind| kind.working().sum())
    }

    /// Warps of which no lane has work.
    #[must_use]
    pub fn idle_warps(&self) -> u128 {
        self.sum(|kind| kind.lanes.iter().map(|lanes| u32::from(*lanes == 0)).sum())
    }

    /// Warps that the edge of the extent runs through: some of their threads have work, and some have none.
    #[must_use]
    pub fn split_warps(&self) -> u128 {
        let warps = warps_of(self.block);
        self.sum(|kind| {
            let split = kind.working().zip(&warps).filter(|(working, warp)| (1..warp.lanes).contains(working));
            split.map(|_| 1).sum()
        })
    }

    /// Blocks of which no thread has work.
    #[must_use]
    pub fn idle_blocks(&self) -> u64 {
        self.kinds.iter().filter(|kind| kind.is_idle()).map(Kind::blocks).sum()
    }

    fn sum(&self, of: impl Fn(&Kind) -> u32) -> u128 {
        self.kinds.iter().map(|kind| u128::from(kind.blocks()) * u128::from(of(kind))).sum()
    }

    /// Elements of the problem, with every thread of a dimension that the extent does not tell; `None` without an extent.
    #[must_use]
    pub fn elements(&self) -> Option<u128> {
        let bounds = self.extent?.dimensions();
        Some((0..3).map(|axis| u128::from(bounds[axis].unwrap_or(self.threads_along(axis)))).product())
    }

    /// Elements that have no thread.
    #[must_use]
    pub fn elements_without_thread(&self) -> u128 {
        self.elements().map_or(0, |elements| elements - self.working_lanes())
    }

    /// The elements that have no thread, dimension by dimension; none where another dimension has no element at all.
    #[must_use]
    pub fn beyond(&self) -> Vec<Beyond> {
        if self.elements_without_thread() == 0 {
            return Vec::new();
        }
        let bounds = self.extent.map_or([None; 3], Extent::dimensions);
        let of = |axis: usize| {
            let (elements, threads) = (bounds[axis]?, self.threads_along(axis));
            (elements > threads).then(|| Beyond { axis, first: threads, last: elements - 1 })
        };
        (0..3).filter_map(of).collect()
    }

    /// The smallest grid of such blocks that has a thread for each element; `None` without an extent, and where no launch
    /// may have that many blocks.
    #[must_use]
    pub fn fitting_grid(&self) -> Option<GridSize> {
        let bounds = self.extent?.dimensions();
        let mut blocks = self.grid.dimensions();
        for (axis, elements) in bounds.into_iter().enumerate() {
            let Some(elements) = elements else { continue };
            let needed = elements.div_ceil(u64::from(self.block.dimensions()[axis]));
            blocks[axis] = u32::try_from(needed).ok().filter(|needed| GridSize::allows(axis, u64::from(*needed)))?;
        }
        GridSize::new(blocks).ok()
    }

    /// Threads of the grid in one dimension.
    fn threads_along(&self, axis: usize) -> u64 {
        u64::from(self.grid.dimensions()[axis]) * u64::from(self.block.dimensions()[axis])
    }
}

/// The blocks of one dimension by the threads that the extent leaves them: whole ones, the one at the edge, those beyond.
fn segments(blocks: u32, threads: u32, elements: Option<u64>) -> Vec<Segment> {
    let Some(elements) = elements else { return vec![Segment { first: 0, last: blocks - 1, threads }] };
    let whole = u32::try_from(elements / u64::from(threads)).map_or(blocks, |whole| whole.min(blocks));
    // Less than a block's threads, which is far below the largest number.
    let rest = u32::try_from(elements % u64::from(threads)).unwrap_or(0);
    let mut found = Vec::new();
    let mut next = 0;
    for (count, threads) in [(whole, threads), (u32::from(rest > 0), rest), (blocks, 0)] {
        let count = count.min(blocks - next);
        if count > 0 {
            found.push(Segment { first: next, last: next + count - 1, threads });
            next += count;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(grid: &str, block: &str, extent: &str) -> Cut {
        let parsed = (grid.parse(), block.parse(), extent.parse());
        Cut::new(parsed.0.expect("a grid"), parsed.1.expect("a block"), parsed.2.ok())
    }

    #[test]
    fn a_warp_of_a_square_block_is_two_rows() {
        let warps = warps_of(BlockSize { x: 16, y: 16, z: 1 });
        assert_eq!(warps.len(), 8);
        assert_eq!((warps[3].first, warps[3].last), ([0, 6, 0], [15, 7, 0]));
        assert!(warps.iter().all(|warp| warp.rows(BlockSize { x: 16, y: 16, z: 1 }) == 2 && warp.lanes == 32));
    }

    #[test]
    fn a_warp_runs_on_into_the_next_layer() {
        let block = BlockSize { x: 4, y: 4, z: 4 };
        let warps = warps_of(block);
        assert_eq!((warps[1].first, warps[1].last, warps[1].rows(block)), ([0, 0, 2], [3, 3, 3], 8));
    }

    #[test]
    fn the_edge_lies_in_one_block_of_a_dimension_or_between_two() {
        let threads = |elements| segments(4, 256, Some(elements)).iter().map(|s| (s.blocks(), s.threads)).collect();
        let expect: [(u64, Vec<(u64, u32)>); 7] = [
            (0, vec![(4, 0)]),
            (1, vec![(1, 1), (3, 0)]),
            (256, vec![(1, 256), (3, 0)]),
            (600, vec![(2, 256), (1, 88), (1, 0)]),
            (1000, vec![(3, 256), (1, 232)]),
            (1024, vec![(4, 256)]),
            (5000, vec![(4, 256)]),
        ];
        for (elements, expected) in expect {
            let found: Vec<(u64, u32)> = threads(elements);
            assert_eq!(found, expected, "{elements}");
        }
    }

    #[test]
    fn the_largest_launch_is_counted_without_overflow() {
        let most = cut("2147483647,65535,65535", "16,8,8", "1");
        assert_eq!(most.lanes(), 9_223_090_559_730_712_575 * 1024);
        // Only x is checked, so that one thread in 16 of the first blocks has work.
        assert_eq!(most.working_lanes(), 65_535 * 65_535 * 64);
        assert_eq!(most.idle_blocks(), 2_147_483_646 * 65_535 * 65_535);
    }

    #[test]
    fn what_lies_beyond_the_grid_is_told_with_the_grid_that_would_do() {
        let short = cut("1", "256", "1000");
        assert_eq!(short.beyond(), [Beyond { axis: 0, first: 256, last: 999 }]);
        assert_eq!((short.elements(), short.elements_without_thread()), (Some(1000), 744));
        assert_eq!(short.fitting_grid(), GridSize::new([4, 1, 1]).ok());
        let impossible = cut("1,65535", "1,1", "1,70000");
        assert_eq!((impossible.elements_without_thread(), impossible.fitting_grid()), (70_000 - 65_535, None));
    }
}
