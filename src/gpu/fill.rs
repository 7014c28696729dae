//! How often a grid fills a GPU, and how much of the GPU its last blocks leave idle.

/// A grid on a GPU that holds a number of its blocks at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fill {
    /// Blocks of the grid.
    pub blocks: u64,
    /// Blocks that the GPU holds at once.
    pub at_once: u64,
}

impl Fill {
    /// How `blocks` fill a GPU that holds `at_once` of them; `None` where it holds none.
    #[must_use]
    pub fn new(blocks: u64, at_once: u64) -> Option<Fill> {
        (at_once > 0).then_some(Fill { blocks, at_once })
    }

    /// How often all of the GPU is used.
    #[must_use]
    pub fn full(self) -> u64 {
        self.blocks / self.at_once
    }

    /// Blocks that are left after that.
    #[must_use]
    pub fn rest(self) -> u64 {
        self.blocks % self.at_once
    }

    /// Fills that the grid takes, the last and smaller one included.
    #[must_use]
    pub fn fills(self) -> u64 {
        self.blocks.div_ceil(self.at_once)
    }

    /// Fills, the last one counted as the part that it is.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "a share")]
    pub fn waves(self) -> f64 {
        self.blocks as f64 / self.at_once as f64
    }

    /// The share of the GPU that the last fill leaves idle; 0 where it is full.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "a share")]
    pub fn idle(self) -> f64 {
        match self.rest() {
            0 => 0.0,
            rest => 1.0 - rest as f64 / self.at_once as f64,
        }
    }

    /// The share of all fills that is used.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "a share")]
    pub fn efficiency(self) -> f64 {
        self.waves() / self.fills().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_that_divides_evenly_has_no_tail() {
        let fill = Fill::new(4096, 256).expect("some at once");
        assert_eq!((fill.fills(), fill.full(), fill.rest()), (16, 16, 0));
        assert_eq!((fill.idle(), fill.efficiency(), fill.waves()), (0.0, 1.0, 16.0));
    }

    #[test]
    fn the_last_blocks_leave_the_rest_idle() {
        let fill = Fill::new(140, 132).expect("some at once");
        assert_eq!((fill.fills(), fill.full(), fill.rest()), (2, 1, 8));
        assert!((fill.idle() - 124.0 / 132.0).abs() < 1e-12);
        assert!((fill.efficiency() - 140.0 / 264.0).abs() < 1e-12);
        assert_eq!(Fill::new(140, 0), None);
    }
}
