//! The text of a source: read into room that is used again for the next file, as most of a tree is small files.

use std::fs::File;
use std::io::{self, Read};

use crate::discover::{InputError, LARGEST, SourceFile};
use crate::model::symbol;
use crate::parse::cuda::may_hold_device_code;
use crate::parse::plain;

/// Room for one text after the other.
#[derive(Default)]
pub(super) struct Room {
    bytes: Vec<u8>,
}

/// Bytes that are there from the start.
const FIRST: usize = 64 * 1024;
/// Bytes that are kept for the next text; a file that took more is rare.
const KEPT: usize = 1024 * 1024;
/// Bytes at the start of a file in which a NUL shows that it is no text.
const BINARY_WITHIN: usize = 8192;

impl Room {
    /// The text of a file; nothing for one that is not surely a source, and no text of a person's.
    pub(super) fn text_of(&mut self, file: &SourceFile) -> Result<Option<&[u8]>, InputError> {
        let shown = || symbol::printable(&file.path.display().to_string()).into_owned();
        let unreadable = |error: io::Error| InputError::Unreadable { path: shown(), reason: error.to_string() };
        let mut open = File::open(&file.path).map_err(unreadable)?;
        let length = self.fill(&mut open).map_err(unreadable)?;
        if length as u64 > LARGEST {
            let size = open.metadata().map_err(unreadable)?.len().max(length as u64);
            let is_source = file.is_sure
                || may_hold_device_code(&self.bytes[..length])
                || holds_device_code(open).map_err(unreadable)?;
            let too_large = InputError::TooLarge { path: shown(), size, most: LARGEST };
            return if is_source { Err(too_large) } else { Ok(None) };
        }
        let length = self.make_plain(length);
        let text = &self.bytes[..length];
        if memchr::memchr(0, &text[..length.min(BINARY_WITHIN)]).is_some() {
            return if file.is_sure { Err(InputError::Binary { path: shown() }) } else { Ok(None) };
        }
        Ok(Some(text))
    }

    /// Reads a file to its end, or to where it is too large: how many bytes it has.
    fn fill(&mut self, file: &mut File) -> io::Result<usize> {
        if self.bytes.is_empty() || self.bytes.len() > KEPT {
            self.bytes = vec![0; FIRST];
        }
        let mut length = 0;
        while length as u64 <= LARGEST {
            if length == self.bytes.len() {
                self.bytes.resize(2 * length, 0);
            }
            match file.read(&mut self.bytes[length..]) {
                Ok(0) => break,
                Ok(read) => length += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(length)
    }

    /// Makes lines of UTF-8 of what has other ends of lines or another encoding: how many bytes that has.
    fn make_plain(&mut self, length: usize) -> usize {
        let text = &self.bytes[..length];
        let is_wide = text.starts_with(b"\xff\xfe") || text.starts_with(b"\xfe\xff");
        if !is_wide && memchr::memchr(b'\n', text).is_some() {
            return length;
        }
        self.bytes = plain(text.to_vec());
        self.bytes.len()
    }
}

/// Whether the rest of a file of any size holds words of device code, read a piece at a time.
fn holds_device_code(mut file: File) -> io::Result<bool> {
    /// Bytes of the longest such word.
    const WORD: usize = 16;
    let mut piece = vec![0; 1 << 20];
    let mut kept = 0;
    loop {
        let read = match file.read(&mut piece[kept..]) {
            Ok(0) => return Ok(false),
            Ok(read) => kept + read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if may_hold_device_code(&piece[..read]) {
            return Ok(true);
        }
        kept = read.min(WORD);
        piece.copy_within(read - kept..read, 0);
    }
}
