//! Interned byte strings: a symbol or a log line that occurs a hundred thousand times is kept once.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

/// Stands for one distinct byte string of a [`Names`]; meaningless for another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameId(u32);

impl NameId {
    /// Position in order of first occurrence, for tables beside a [`Names`].
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Distinct byte strings in order of first occurrence.
///
/// Bytes, not text: a log may hold a name in any encoding, and only what is printed is ever decoded.
#[derive(Debug, Clone, Default)]
pub struct Names {
    chunks: Vec<Vec<u8>>,
    spans: Vec<Span>,
    table: HashTable<NameId>,
    hasher: DefaultHashBuilder,
}

#[derive(Debug, Clone, Copy)]
struct Span {
    chunk: u32,
    start: u32,
    len: u32,
}

/// A chunk never grows past its capacity, so that no byte is copied twice.
const CHUNK: usize = 256 * 1024;

impl Names {
    /// The id of `text`, new or old.
    pub fn intern(&mut self, text: &[u8]) -> NameId {
        let hash = self.hasher.hash_one(text);
        let (chunks, spans) = (&self.chunks, &self.spans);
        if let Some(id) = self.table.find(hash, |id| bytes_of(chunks, spans[id.index()]) == text) {
            return *id;
        }
        let id = NameId(u32::try_from(self.spans.len()).unwrap_or(u32::MAX));
        let span = self.store(text);
        self.spans.push(span);
        let (chunks, spans, hasher) = (&self.chunks, &self.spans, &self.hasher);
        self.table.insert_unique(hash, id, |id| hasher.hash_one(bytes_of(chunks, spans[id.index()])));
        id
    }

    /// The id of `text` if it has one.
    #[must_use]
    pub fn find(&self, text: &[u8]) -> Option<NameId> {
        let hash = self.hasher.hash_one(text);
        self.table.find(hash, |id| self.get(*id) == text).copied()
    }

    /// The bytes behind an id.
    #[must_use]
    pub fn get(&self, id: NameId) -> &[u8] {
        bytes_of(&self.chunks, self.spans[id.index()])
    }

    /// Every string with its id.
    pub fn iter(&self) -> impl Iterator<Item = (NameId, &[u8])> {
        (0..).map(NameId).zip(self.spans.iter().map(|span| bytes_of(&self.chunks, *span)))
    }

    /// How many distinct strings there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// True before the first string.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    fn store(&mut self, text: &[u8]) -> Span {
        let fits = self.chunks.last().is_some_and(|chunk| chunk.capacity() - chunk.len() >= text.len());
        if !fits {
            self.chunks.push(Vec::with_capacity(text.len().max(CHUNK)));
        }
        let chunk = self.chunks.len() - 1;
        let bytes = &mut self.chunks[chunk];
        let start = bytes.len();
        bytes.extend_from_slice(text);
        let narrow = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Span { chunk: narrow(chunk), start: narrow(start), len: narrow(text.len()) }
    }
}

fn bytes_of(chunks: &[Vec<u8>], span: Span) -> &[u8] {
    &chunks[span.chunk as usize][span.start as usize..][..span.len as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_bytes_have_one_id_and_keep_their_text() {
        let mut names = Names::default();
        let long = vec![b'x'; CHUNK + 1];
        let ids = [names.intern(b"_Z1kPf"), names.intern(&long), names.intern(b""), names.intern(b"\xff\xfe")];
        assert_eq!(names.intern(b"_Z1kPf"), ids[0]);
        assert_eq!(names.intern(&long), ids[1]);
        assert_eq!(
            (names.get(ids[0]), names.get(ids[2]), names.get(ids[3])),
            (&b"_Z1kPf"[..], &b""[..], &b"\xff\xfe"[..])
        );
        assert_eq!(names.len(), 4);
        assert_eq!(names.find(b"nowhere"), None);
    }
}
