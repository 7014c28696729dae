//! A search for several words at once, in one pass however many there are.

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, MatchKind, packed};

/// What is looked for: with vector instructions where the words are few and the machine has such, else by an automaton.
#[derive(Debug, Clone)]
pub struct Needles(Searcher);

#[derive(Debug, Clone)]
enum Searcher {
    Packed(packed::Searcher),
    Automaton(AhoCorasick),
}

/// A place where a word stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Which word, counted from 0.
    pub word: usize,
    /// Its first byte.
    pub start: usize,
    /// The byte after its last one.
    pub end: usize,
}

/// Bytes of all words up to which vector instructions look for them: at each place that looks like the beginning of one,
/// they compare whole words, which an input that is made for it has everywhere.
const SHORT: usize = 512;

impl Needles {
    /// Looks for `words`; of several at one place the first of them counts. `None` where they are too many to be looked
    /// for.
    #[must_use]
    pub fn new<W: AsRef<[u8]>>(words: &[W]) -> Option<Needles> {
        let is_short = words.iter().map(|word| word.as_ref().len()).sum::<usize>() <= SHORT;
        let searcher = is_short.then(|| packed::Searcher::new(words)).flatten();
        searcher.map(Searcher::Packed).or_else(|| automaton(words).map(Searcher::Automaton)).map(Needles)
    }

    /// The first word between `from` and `to`.
    #[must_use]
    pub fn first(&self, text: &[u8], from: usize, to: usize) -> Option<Found> {
        let found = match &self.0 {
            Searcher::Packed(searcher) => searcher.find_in(text, (from..to).into()),
            Searcher::Automaton(searcher) => searcher.find(Input::new(text).range(from..to)),
        }?;
        Some(Found { word: found.pattern().as_usize(), start: found.start(), end: found.end() })
    }

    /// Whether one of the words is in `text`.
    #[must_use]
    pub fn are_in(&self, text: &[u8]) -> bool {
        self.first(text, 0, text.len()).is_some()
    }

    /// Every place in order, none within another.
    pub fn places<'a>(&'a self, text: &'a [u8]) -> impl Iterator<Item = Found> + 'a {
        let next = move |from: usize| self.first(text, from, text.len());
        std::iter::successors(next(0), move |last| next(last.end))
    }
}

/// Follows links: a table of all states would be filled in the square of a word's length where the word repeats itself.
fn automaton<W: AsRef<[u8]>>(words: &[W]) -> Option<AhoCorasick> {
    let kind = Some(AhoCorasickKind::ContiguousNFA);
    AhoCorasick::builder().match_kind(MatchKind::LeftmostFirst).kind(kind).build(words).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: [&str; 5] = ["__global__", "<<<", "rro", "rr", "\t\t:"];
    const TEXT: &str = "x <<<<< err\t\t: errors __global_ __global__\n";

    #[test]
    fn machines_without_vector_instructions_find_the_same() {
        let plain = automaton(&WORDS).map(|one| Needles(Searcher::Automaton(one))).expect("few words");
        let found: Vec<Found> = Needles::new(&WORDS).expect("few words").places(TEXT.as_bytes()).collect();
        assert_eq!(plain.places(TEXT.as_bytes()).collect::<Vec<_>>(), found);
        let words: Vec<(usize, &str)> = found.iter().map(|one| (one.word, &TEXT[one.start..one.end])).collect();
        assert_eq!(words, [(1, "<<<"), (3, "rr"), (4, "\t\t:"), (2, "rro"), (0, "__global__")]);
    }

    #[test]
    fn many_words_are_found_too_and_no_words_nowhere() {
        let many: Vec<String> = (0..3000).map(|at| format!("kernel_{at}_of")).collect();
        let needles = Needles::new(&many).expect("words");
        assert_eq!(needles.first(b"a kernel_2999_of b", 0, 18), Some(Found { word: 2999, start: 2, end: 16 }));
        assert!(!needles.are_in(b"kernel_3000_of"));
        assert!(!Needles::new::<&str>(&[]).expect("nothing").are_in(b"kernel"));
    }
}
