//! Tables of the words of PTX, in which a word is found by its first eight bytes as one number.

/// A word, none of whose bytes is 0, and its first eight bytes as a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word<'t> {
    pub(super) bytes: &'t [u8],
    key: u64,
}

impl<'t> Word<'t> {
    pub(super) fn of(bytes: &'t [u8]) -> Word<'t> {
        Word { bytes, key: key(bytes) }
    }

    /// A word of fewer than eight bytes, which the number `eight` begins with.
    #[inline]
    pub(super) fn short(bytes: &'t [u8], eight: u64) -> Word<'t> {
        Word { bytes, key: eight & ((1 << (8 * bytes.len())) - 1) }
    }

    pub(super) fn is_empty(self) -> bool {
        self.bytes.is_empty()
    }
}

/// The first eight bytes; those of a shorter word are the word.
const fn key(bytes: &[u8]) -> u64 {
    let mut key = 0;
    let mut at = if bytes.len() < 8 { bytes.len() } else { 8 };
    while at > 0 {
        at -= 1;
        key = key << 8 | bytes[at] as u64;
    }
    key
}

/// What each word of a list stands for: open addressing, filled when the program is compiled.
pub(super) struct Words<T: 'static, const SLOTS: usize> {
    list: &'static [(&'static str, T)],
    /// Keys, and where in the list their words are.
    slots: [(u64, u8); SLOTS],
}

/// Whether the key is all of its word: bytes of words are not 0.
const fn is_whole(key: u64) -> bool {
    key >> 56 == 0
}

/// A slot without a word.
const FREE: u8 = u8::MAX;

impl<T: Copy, const SLOTS: usize> Words<T, SLOTS> {
    pub(super) const fn new(list: &'static [(&'static str, T)]) -> Words<T, SLOTS> {
        assert!(SLOTS.is_power_of_two() && list.len() * 2 <= SLOTS && list.len() < FREE as usize);
        let mut slots = [(0, FREE); SLOTS];
        let mut at = 0;
        while at < list.len() {
            let key = key(list[at].0.as_bytes());
            let mut slot = Self::slot(key);
            while slots[slot].1 != FREE {
                slot = (slot + 1) % SLOTS;
            }
            slots[slot] = (key, at as u8);
            at += 1;
        }
        Words { list, slots }
    }

    const fn slot(key: u64) -> usize {
        (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as usize % SLOTS
    }

    /// What the word stands for, if it is in the list.
    #[inline]
    pub(super) fn find(&self, word: Word<'_>) -> Option<T> {
        let mut slot = Self::slot(word.key);
        loop {
            let (key, at) = self.slots[slot];
            if at == FREE {
                return None;
            }
            let (name, meaning) = &self.list[usize::from(at)];
            if key == word.key && (is_whole(key) || name.as_bytes() == word.bytes) {
                return Some(*meaning);
            }
            slot = (slot + 1) % SLOTS;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_told_apart_by_all_of_their_bytes() {
        static WORDS: Words<u8, 16> =
            Words::new(&[("a", 1), ("ab", 2), ("abcdefgh", 3), ("abcdefghi", 4), ("abcdefghj", 5), ("abcdefghij", 6)]);
        for (word, meaning) in [
            ("a", Some(1)),
            ("ab", Some(2)),
            ("abcdefgh", Some(3)),
            ("abcdefghi", Some(4)),
            ("abcdefghj", Some(5)),
            ("abcdefghij", Some(6)),
            ("", None),
            ("b", None),
            ("abcdefg", None),
            ("abcdefghk", None),
            ("abcdefghijk", None),
        ] {
            assert_eq!(WORDS.find(Word::of(word.as_bytes())), meaning, "{word}");
        }
    }
}
