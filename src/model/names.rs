//! Interned byte strings: a symbol or a log line that occurs a hundred thousand times is kept once.

use std::hash::{BuildHasher, Hasher};
use std::num::NonZeroU32;

use hashbrown::{DefaultHashBuilder, HashTable};

/// Stands for one distinct byte string of a [`Names`]; meaningless for another one. Never zero, so that an optional one
/// takes no more room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameId(NonZeroU32);

impl NameId {
    /// The id of the string at `index`.
    fn at(index: usize) -> NameId {
        let number = u32::try_from(index + 1).ok().and_then(NonZeroU32::new);
        NameId(number.unwrap_or(NonZeroU32::MAX))
    }

    /// Position in order of first occurrence, for tables beside a [`Names`].
    #[must_use]
    pub fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// Distinct byte strings in order of first occurrence.
///
/// Bytes, not text: a log may hold a name in any encoding, and only what is printed is ever decoded.
#[derive(Debug, Clone, Default)]
pub struct Names {
    /// All strings, one behind the other.
    bytes: Vec<u8>,
    /// Where each string ends.
    ends: Vec<usize>,
    table: HashTable<Slot>,
    hasher: DefaultHashBuilder,
}

/// A string in the table, with its hash: the table grows, and passes over other strings, without looking at their bytes.
#[derive(Debug, Clone, Copy)]
struct Slot {
    hash: u32,
    id: NameId,
}

impl Slot {
    /// What the table is asked with: it takes the place from the low bits and a tag from the high ones.
    fn spread(hash: u32) -> u64 {
        u64::from(hash) << 32 | u64::from(hash)
    }
}

impl Names {
    /// The id of `text`, new or old.
    pub fn intern(&mut self, text: &[u8]) -> NameId {
        let hash = self.hash(text);
        self.find_hashed(hash, text).unwrap_or_else(|| self.add(hash, text))
    }

    /// The id of `text` if it has one, or a new one if it `may_be` added.
    pub fn intern_if(&mut self, text: &[u8], may_be: impl FnOnce(&[u8]) -> bool) -> Option<NameId> {
        let hash = self.hash(text);
        self.find_hashed(hash, text).or_else(|| may_be(text).then(|| self.add(hash, text)))
    }

    fn add(&mut self, hash: u32, text: &[u8]) -> NameId {
        let id = NameId::at(self.ends.len());
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
        self.table.insert_unique(Slot::spread(hash), Slot { hash, id }, |slot| Slot::spread(slot.hash));
        id
    }

    /// The id of `text` if it has one.
    #[must_use]
    pub fn find(&self, text: &[u8]) -> Option<NameId> {
        self.find_hashed(self.hash(text), text)
    }

    fn find_hashed(&self, hash: u32, text: &[u8]) -> Option<NameId> {
        let is_it = |slot: &Slot| slot.hash == hash && self.get(slot.id) == text;
        self.table.find(Slot::spread(hash), is_it).map(|slot| slot.id)
    }

    /// Of the bytes alone: the length that `Hash` for slices adds tells no two of these apart.
    fn hash(&self, text: &[u8]) -> u32 {
        let mut state = self.hasher.build_hasher();
        state.write(text);
        let hash = state.finish();
        (hash ^ hash >> 32) as u32
    }

    /// The bytes behind an id.
    #[must_use]
    pub fn get(&self, id: NameId) -> &[u8] {
        let at = id.index();
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[at]]
    }

    /// Every string with its id.
    pub fn iter(&self) -> impl Iterator<Item = (NameId, &[u8])> {
        (0..self.len()).map(NameId::at).map(|id| (id, self.get(id)))
    }

    /// How many distinct strings there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True before the first string.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_bytes_have_one_id_and_keep_their_text() {
        let mut names = Names::default();
        let long = vec![b'x'; 300_000];
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
