//! What a launch is for and how many blocks it has: the size of a grid, and the elements of a problem.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Blocks of a grid in each dimension at most, from compute capability 3.0 on (CUDA Programming Guide, limits by compute
/// capability).
const MAX_BLOCKS: [u32; 3] = [2_147_483_647, 65_535, 65_535];

/// More threads than the largest grid of the largest blocks has in a dimension.
const MAX_ELEMENTS: u64 = 1 << 42;

/// The dimensions by name.
pub const AXES: [&str; 3] = ["x", "y", "z"];

/// The dimensions of a grid, in blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GridSize([u32; 3]);

impl GridSize {
    /// A grid of these dimensions.
    ///
    /// # Errors
    /// When no GPU launches such a grid.
    pub fn new(blocks: [u32; 3]) -> Result<GridSize, GridSizeError> {
        if blocks.contains(&0) {
            return Err(GridSizeError::Zero(GridSize(blocks).to_string()));
        }
        match (0..3).find(|axis| blocks[*axis] > MAX_BLOCKS[*axis]) {
            Some(axis) => Err(GridSizeError::too_many(axis, &blocks[axis].to_string())),
            None => Ok(GridSize(blocks)),
        }
    }

    /// The dimensions in order.
    #[must_use]
    pub fn dimensions(self) -> [u32; 3] {
        self.0
    }

    /// Blocks of the grid: below 2^63 for the largest.
    #[must_use]
    pub fn blocks(self) -> u64 {
        self.0.into_iter().map(u64::from).product()
    }

    /// Whether a launch may have so many blocks in this dimension.
    #[must_use]
    pub fn allows(axis: usize, blocks: u64) -> bool {
        MAX_BLOCKS.get(axis).is_some_and(|most| (1..=u64::from(*most)).contains(&blocks))
    }
}

impl fmt::Display for GridSize {
    /// `4096`, `64×64` or `8×8×4`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [x, 1, 1] => write!(f, "{x}"),
            [x, y, 1] => write!(f, "{x}×{y}"),
            [x, y, z] => write!(f, "{x}×{y}×{z}"),
        }
    }
}

/// The text is no size of a grid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum GridSizeError {
    /// Not one to three numbers.
    #[error("`{0}` is no grid; write it as 4096, 64,64 or 8,8,4")]
    Malformed(String),
    /// A dimension is zero.
    #[error("a grid of {0} has no blocks; every dimension is at least 1")]
    Zero(String),
    /// A dimension is larger than any GPU launches.
    #[error("a grid has {most} blocks in {axis} at most, not {given}")]
    TooMany {
        /// The dimension.
        axis: &'static str,
        /// Blocks in it.
        given: String,
        /// Blocks in it at most.
        most: u32,
    },
}

impl GridSizeError {
    fn too_many(axis: usize, given: &str) -> GridSizeError {
        GridSizeError::TooMany { axis: AXES[axis], given: given.to_owned(), most: MAX_BLOCKS[axis] }
    }
}

impl FromStr for GridSize {
    type Err = GridSizeError;

    /// Reads `4096`, `64,64` or `64x64`; what is left out is 1.
    fn from_str(text: &str) -> Result<GridSize, GridSizeError> {
        let parts = parts(text).ok_or_else(|| GridSizeError::Malformed(text.to_owned()))?;
        let mut blocks = [1; 3];
        for (axis, part) in parts.into_iter().enumerate() {
            blocks[axis] = part.parse().map_err(|_| GridSizeError::too_many(axis, part))?;
        }
        GridSize::new(blocks)
    }
}

/// The elements of a problem in each dimension: what a bounds check of the kernel lets through. A dimension that is not
/// told is not checked, and all threads have work in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Extent([Option<u64>; 3]);

impl Extent {
    /// A problem of so many elements.
    ///
    /// # Errors
    /// When a dimension has more than any launch could have threads.
    pub fn new(elements: [Option<u64>; 3]) -> Result<Extent, ExtentError> {
        match elements.into_iter().flatten().find(|elements| *elements > MAX_ELEMENTS) {
            Some(elements) => Err(ExtentError::TooMany(elements.to_string())),
            None => Ok(Extent(elements)),
        }
    }

    /// The dimensions in order; `None` where nothing is checked.
    #[must_use]
    pub fn dimensions(self) -> [Option<u64>; 3] {
        self.0
    }
}

/// The text is no extent.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ExtentError {
    /// Not one to three numbers.
    #[error("`{0}` is no extent; write the elements of the problem as 1000, 28,28 or 64,64,64")]
    Malformed(String),
    /// More elements in a dimension than any launch has threads.
    #[error("{0} elements in one dimension are more than any launch has threads for: {MAX_ELEMENTS} is the most")]
    TooMany(String),
}

impl FromStr for Extent {
    type Err = ExtentError;

    /// Reads `1000`, `28,28` or `28x28`.
    fn from_str(text: &str) -> Result<Extent, ExtentError> {
        let parts = parts(text).ok_or_else(|| ExtentError::Malformed(text.to_owned()))?;
        let mut elements = [None; 3];
        for (axis, part) in parts.into_iter().enumerate() {
            elements[axis] = Some(part.parse().map_err(|_| ExtentError::TooMany(part.to_owned()))?);
        }
        Extent::new(elements)
    }
}

/// One to three numbers without a sign.
fn parts(text: &str) -> Option<Vec<&str>> {
    let parts: Vec<&str> = text.split([',', 'x', 'X', '×']).map(str::trim).collect();
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    (parts.len() <= 3 && parts.iter().all(is_number)).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused<T: FromStr<Err: fmt::Display> + fmt::Debug>(text: &str) -> String {
        text.parse::<T>().err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn a_grid_is_read_in_one_to_three_dimensions() {
        let read = |text: &str| text.parse::<GridSize>().map(GridSize::dimensions);
        assert_eq!(read("4096"), Ok([4096, 1, 1]));
        assert_eq!(read("2, 2"), Ok([2, 2, 1]));
        assert_eq!(read("8x8×4"), Ok([8, 8, 4]));
        assert_eq!(read("007"), Ok([7, 1, 1]));
    }

    #[test]
    fn the_largest_grid_is_counted_and_a_larger_one_is_refused_with_its_dimension() {
        let most: GridSize = "2147483647,65535,65535".parse().expect("the largest grid");
        assert_eq!(most.blocks(), 9_223_090_559_730_712_575);
        assert_eq!(refused::<GridSize>("2147483648"), "a grid has 2147483647 blocks in x at most, not 2147483648");
        assert_eq!(refused::<GridSize>("1,65536"), "a grid has 65535 blocks in y at most, not 65536");
        let long = "99999999999999999999999";
        assert_eq!(
            refused::<GridSize>(&format!("1,1,{long}")),
            format!("a grid has 65535 blocks in z at most, not {long}")
        );
    }

    #[test]
    fn what_is_no_grid_is_refused() {
        assert_eq!(refused::<GridSize>("2,0"), "a grid of 2×0 has no blocks; every dimension is at least 1");
        for text in ["", ",", "a", "-1", "1,2,3,4", "1.5", "1 2", "+1"] {
            assert!(refused::<GridSize>(text).contains("is no grid"), "{text}");
        }
    }

    #[test]
    fn an_extent_leaves_open_what_it_does_not_tell() {
        let read = |text: &str| text.parse::<Extent>().map(Extent::dimensions);
        assert_eq!(read("1000"), Ok([Some(1000), None, None]));
        assert_eq!(read("28,28"), Ok([Some(28), Some(28), None]));
        assert_eq!(read("0"), Ok([Some(0), None, None]));
        assert_eq!(read("4398046511104"), Ok([Some(MAX_ELEMENTS), None, None]));
        for text in ["4398046511105", "18446744073709551616"] {
            let most = "elements in one dimension are more than any launch has threads for: 4398046511104 is the most";
            assert_eq!(refused::<Extent>(text), format!("{text} {most}"));
        }
        for text in ["", "28,", "-1", "1,2,3,4", "a"] {
            assert!(refused::<Extent>(text).contains("is no extent"), "{text}");
        }
    }
}
