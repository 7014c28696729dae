//! Which rows of a block each of its warps covers.

use crate::gpu::cut::{WARP, WarpOfBlock, warps_of};
use crate::model::BlockSize;
use crate::report::style::Style;

use super::table::counted;

/// Warps that are listed where not all are: the first ones, beside the last.
const LISTED: usize = 3;

/// Warps up to which all are listed where rows do not line up with them.
const ALL: usize = 8;

/// `a warp is 2 rows of 16 threads: warp 0 is y 0–1, …`; nothing for a block of one row.
pub(super) fn rows(block: BlockSize, style: Style) -> Option<String> {
    if block.y == 1 && block.z == 1 {
        return None;
    }
    let warps = warps_of(block);
    let is_regular = block.x.is_multiple_of(WARP) || WARP.is_multiple_of(block.x);
    let listed = if is_regular { LISTED } else { ALL - 1 };
    let mut words = Vec::new();
    for (index, warp) in warps.iter().enumerate() {
        if index < listed || index + 1 == warps.len() {
            let lead = if index == 0 { "warp " } else { "" };
            words.push(format!("{lead}{} is {}", warp.number, place(block, warp, style)));
        } else if index == listed {
            words.push(style.choose("…", "...").to_owned());
        }
    }
    Some(format!("{}: {}", kind(block, style), words.join(", ")))
}

fn kind(block: BlockSize, style: Style) -> String {
    let row = counted(block.x, "thread");
    if block.threads() <= WARP {
        format!("the warp is all {} rows of {row}", block.y * block.z)
    } else if block.x > WARP && block.x.is_multiple_of(WARP) {
        format!("a row of {row} is {} warps", block.x / WARP)
    } else if WARP.is_multiple_of(block.x) {
        format!("a warp is {} of {row}", counted(WARP / block.x, "row"))
    } else {
        let dash = style.choose("–", "-");
        let warps = warps_of(block);
        let rows = || warps.iter().map(|warp| warp.rows(block));
        let (least, most) = (rows().min().unwrap_or(1), rows().max().unwrap_or(1));
        let rows = if least == most { counted(most, "row") } else { format!("{least}{dash}{most} rows") };
        format!("rows of {row} do not line up with warps of {WARP}, which cover {rows}")
    }
}

/// `y 0–1`, `y 3, x 32–63`, `z 0, y 4–7`, `z 0–1`, or the first and the last thread where nothing shorter says it.
fn place(block: BlockSize, warp: &WarpOfBlock, style: Style) -> String {
    let ([fx, fy, fz], [lx, ly, lz]) = (warp.first, warp.last);
    let dash = style.choose("–", "-");
    let span = |name: &str, first: u32, last: u32| {
        if first == last { format!("{name} {first}") } else { format!("{name} {first}{dash}{last}") }
    };
    let whole_rows = fx == 0 && lx + 1 == block.x;
    let whole_layers = whole_rows && fy == 0 && ly + 1 == block.y;
    let layer = |words: String| if block.z == 1 { words } else { format!("z {fz} {words}") };
    if block.z > 1 && whole_layers {
        span("z", fz, lz)
    } else if fz == lz && fy == ly && !whole_rows {
        layer(format!("y {fy} {}", span("x", fx, lx)))
    } else if fz == lz && whole_rows {
        layer(span("y", fy, ly))
    } else {
        let thread = |x: u32, y: u32, z: u32| {
            if block.z == 1 { format!("({x},{y})") } else { format!("({x},{y},{z})") }
        };
        format!("{} to {}", thread(fx, fy, fz), thread(lx, ly, lz))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(x: u32, y: u32, z: u32) -> String {
        rows(BlockSize { x, y, z }, Style { unicode: true, ..Style::PLAIN }).unwrap_or_default()
    }

    #[test]
    fn rows_are_told_in_the_shortest_words_that_say_which_they_are() {
        assert_eq!(
            told(16, 16, 1),
            "a warp is 2 rows of 16 threads: warp 0 is y 0–1, 1 is y 2–3, 2 is y 4–5, …, 7 is y 14–15"
        );
        assert_eq!(told(32, 4, 1), "a warp is 1 row of 32 threads: warp 0 is y 0, 1 is y 1, 2 is y 2, 3 is y 3");
        assert_eq!(
            told(64, 2, 1),
            "a row of 64 threads is 2 warps: warp 0 is y 0 x 0–31, 1 is y 0 x 32–63, 2 is y 1 x 0–31, 3 is y 1 x 32–63"
        );
        assert_eq!(
            told(8, 8, 2),
            "a warp is 4 rows of 8 threads: warp 0 is z 0 y 0–3, 1 is z 0 y 4–7, 2 is z 1 y 0–3, 3 is z 1 y 4–7"
        );
        assert_eq!(told(4, 4, 4), "a warp is 8 rows of 4 threads: warp 0 is z 0–1, 1 is z 2–3");
        assert_eq!(told(4, 4, 1), "the warp is all 4 rows of 4 threads: warp 0 is y 0–3");
        assert_eq!(told(256, 1, 1), "");
    }

    #[test]
    fn rows_that_do_not_line_up_are_told_by_their_first_and_last_thread() {
        assert_eq!(
            told(10, 10, 1),
            "rows of 10 threads do not line up with warps of 32, which cover 1–4 rows: warp 0 is (0,0) to (1,3), \
             1 is (2,3) to (3,6), 2 is (4,6) to (5,9), 3 is y 9 x 6–9"
        );
    }
}
