//! Logs that Windows PowerShell wrote: its `>` makes UTF-16 of whatever a compiler prints.

use std::io::{self, Read};

/// A log as bytes of UTF-8 or of any other encoding that contains ASCII; what is UTF-16 is converted.
pub(super) struct Decoded<'s> {
    source: &'s mut dyn Read,
    encoding: Encoding,
    /// Bytes that are read and not handed out.
    ready: Vec<u8>,
    handed: usize,
    /// The first byte of a unit whose second has not come.
    odd: Option<u8>,
    /// The first half of a character whose second has not come.
    high: Option<u16>,
}

#[derive(Clone, Copy, PartialEq)]
enum Encoding {
    /// Nothing is read yet.
    Open,
    Bytes,
    LittleEndian,
    BigEndian,
}

/// Bytes of UTF-16 that are converted at once.
const PIECE: usize = 64 * 1024;

impl<'s> Decoded<'s> {
    pub(super) fn new(source: &'s mut dyn Read) -> Decoded<'s> {
        Decoded { source, encoding: Encoding::Open, ready: Vec::new(), handed: 0, odd: None, high: None }
    }

    /// The first two bytes tell.
    fn open(&mut self) -> io::Result<()> {
        while self.ready.len() < 2 {
            let mut byte = [0];
            match self.source.read(&mut byte) {
                Ok(0) => break,
                Ok(_) => self.ready.push(byte[0]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.encoding = match self.ready[..] {
            [0xff, 0xfe] => Encoding::LittleEndian,
            [0xfe, 0xff] => Encoding::BigEndian,
            _ => Encoding::Bytes,
        };
        if self.encoding != Encoding::Bytes {
            self.ready.clear();
        }
        Ok(())
    }

    fn hand_out(&mut self, out: &mut [u8]) -> usize {
        let count = (self.ready.len() - self.handed).min(out.len());
        out[..count].copy_from_slice(&self.ready[self.handed..self.handed + count]);
        self.handed += count;
        if self.handed == self.ready.len() {
            self.ready.clear();
            self.handed = 0;
        }
        count
    }

    fn convert(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match self.odd.take() {
                None => self.odd = Some(*byte),
                Some(first) if self.encoding == Encoding::BigEndian => self.unit(u16::from_be_bytes([first, *byte])),
                Some(first) => self.unit(u16::from_le_bytes([first, *byte])),
            }
        }
    }

    fn unit(&mut self, unit: u16) {
        let units = self.high.take().into_iter().chain([unit]);
        for character in char::decode_utf16(units) {
            match character {
                Err(half) if half.unpaired_surrogate() == unit && (0xd800..0xdc00).contains(&unit) => {
                    self.high = Some(unit);
                }
                other => {
                    let character = other.unwrap_or(char::REPLACEMENT_CHARACTER);
                    self.ready.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                }
            }
        }
    }
}

impl Read for Decoded<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.encoding == Encoding::Open {
            self.open()?;
        }
        if self.encoding == Encoding::Bytes && self.ready.is_empty() {
            return self.source.read(out);
        }
        if self.ready.is_empty() {
            let mut piece = vec![0; PIECE];
            loop {
                let read = self.source.read(&mut piece)?;
                self.convert(&piece[..read]);
                if read == 0 || !self.ready.is_empty() {
                    break;
                }
            }
        }
        Ok(self.hand_out(out))
    }
}

/// A source or PTX as it is read: of UTF-8 or the like, with lines that end in `\n`. What a Macintosh wrote once has none.
#[must_use]
pub fn plain(bytes: Vec<u8>) -> Vec<u8> {
    let is_wide = bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff");
    let mut text = bytes;
    if is_wide {
        let mut converted = Vec::with_capacity(text.len() / 2);
        // Bytes in memory are read without fail.
        let _ = Decoded::new(&mut text.as_slice()).read_to_end(&mut converted);
        text = converted;
    }
    if memchr::memchr(b'\r', &text).is_some() && memchr::memchr(b'\n', &text).is_none() {
        text.iter_mut().filter(|byte| **byte == b'\r').for_each(|byte| *byte = b'\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8]) -> Vec<u8> {
        let mut text = Vec::new();
        let mut source = bytes;
        Decoded::new(&mut source).read_to_end(&mut text).expect("bytes in memory");
        text
    }

    #[test]
    fn utf_16_becomes_utf_8_and_other_bytes_stay() {
        let text = "ptxas info    : Used 8 registers ‘k’ 𝄞\r\n";
        let little: Vec<u8> = [0xfeff].into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = [0xfeff].into_iter().chain(text.encode_utf16()).flat_map(u16::to_be_bytes).collect();
        assert_eq!(decoded(&little), text.as_bytes());
        assert_eq!(decoded(&big), text.as_bytes());
        for bytes in [&b""[..], b"p", b"\xff", b"\xef\xbb\xbfptxas", b"\xfe\x00\x01", text.as_bytes()] {
            assert_eq!(decoded(bytes), bytes);
        }
    }

    #[test]
    fn a_text_without_line_feeds_has_lines() {
        assert_eq!(plain(b"a\r\rb\r".to_vec()), b"a\n\nb\n");
        assert_eq!(plain(b"a\r\nb\rc".to_vec()), b"a\r\nb\rc");
        assert_eq!(plain(b"\xff\xfea\0\r\0".to_vec()), b"a\n");
        assert_eq!(plain(b"\xfe\xff\0a".to_vec()), b"a");
    }

    #[test]
    fn a_half_character_is_shown_as_such() {
        assert_eq!(decoded(&[0xff, 0xfe, 0x34, 0xd8, b'a', 0]), "\u{fffd}a".as_bytes());
    }
}
