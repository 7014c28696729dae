//! Sizes of variables as `.shared .align 16 .b8 name[1024]` declares them.

use super::lexer::Cursor;

/// What comes to `before` bytes when the variables of the declaration are laid out behind them; `None` where a size is not
/// a number.
pub(super) fn size(declaration: &[u8], before: Option<u32>) -> Option<u32> {
    let mut bytes = before?;
    let mut cursor = Cursor::new(declaration, 0);
    let (mut align, mut element) = (None, None);
    loop {
        cursor.skip_blank().ok()?;
        if !cursor.take(b'.') {
            break;
        }
        match cursor.word() {
            b"align" => {
                cursor.skip_blank().ok()?;
                align = Some(cursor.number()?);
            }
            b"v2" => element = Some((2, element.map_or(0, |(_, size)| size))),
            b"v4" => element = Some((4, element.map_or(0, |(_, size)| size))),
            b"shared" | b"local" | b"attribute" | b"common" => {}
            word => {
                let count = element.map_or(1, |(count, _)| count);
                element = Some((count, width(word)?));
            }
        }
    }
    let (count, width) = element?;
    let align = align.unwrap_or(count * width).max(1);
    loop {
        cursor.skip_blank().ok()?;
        if cursor.word().is_empty() {
            return None;
        }
        let mut size = count * width;
        cursor.skip_blank().ok()?;
        while cursor.take(b'[') {
            cursor.skip_blank().ok()?;
            size = size.checked_mul(cursor.number()?)?;
            cursor.skip_blank().ok()?;
            if !cursor.take(b']') {
                return None;
            }
            cursor.skip_blank().ok()?;
        }
        bytes = bytes.checked_next_multiple_of(align)?.checked_add(size)?;
        if !cursor.take(b',') {
            return cursor.is_at_end().then_some(bytes);
        }
    }
}

/// Bytes of a value of a type.
fn width(word: &[u8]) -> Option<u32> {
    Some(match word {
        b"b8" | b"u8" | b"s8" | b"e4m3" | b"e5m2" => 1,
        b"b16" | b"u16" | b"s16" | b"f16" | b"bf16" => 2,
        b"b32" | b"u32" | b"s32" | b"f32" | b"f16x2" | b"bf16x2" | b"tf32" => 4,
        b"b64" | b"u64" | b"s64" | b"f64" => 8,
        b"b128" => 16,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_laid_out_one_behind_the_other() {
        for (declaration, before, bytes) in [
            (".shared .align 16 .b8 tile[1024]", Some(0), Some(1024)),
            (".shared .align 16 .b8 tile[1024]", Some(4), Some(1040)),
            (".shared .f32 a[16][17]", Some(0), Some(1088)),
            (".local .align 8 .b8 \t__local_depot0[144]", Some(0), Some(144)),
            (".shared .v4 .f32 v", Some(0), Some(16)),
            (".shared .u32 a, b[3]", Some(0), Some(16)),
            (".shared .align 4 .b8 all[]", Some(0), None),
            (".shared .b32 a[4294967295][16]", Some(0), None),
            (".shared .b32 a", None, None),
            (".shared .align 0 .b8 a[3]", Some(1), Some(4)),
        ] {
            assert_eq!(size(declaration.as_bytes(), before), bytes, "{declaration}");
        }
    }
}
