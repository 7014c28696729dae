//! Tables of the assembler: lines that are read once, and kernels that say the very same.

use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::{Assembler, MAX_QUOTE};
use crate::model::{Arch, Kernel, Linked, NameId, Names};
use crate::parse::block::{FigureLine, FigureLines};
use crate::parse::usage::{self, Frame, Usage};

/// Each distinct line is parsed once.
#[derive(Default)]
pub(super) struct Parsed {
    /// For each text its place in `lines`, from 1; most texts are messages and have none.
    slots: Vec<u32>,
    lines: Vec<Line>,
    recent: Recent,
}

#[derive(Clone)]
enum Line {
    Frame(Option<Frame>),
    Usage(Option<Arc<Usage>>),
}

impl Parsed {
    fn line(&mut self, id: NameId, parse: impl FnOnce() -> Line) -> &Line {
        if self.slots.len() <= id.index() {
            self.slots.resize(id.index() + 1, 0);
        }
        let slot = &mut self.slots[id.index()];
        if *slot == 0 {
            self.lines.push(parse());
            *slot = u32::try_from(self.lines.len()).unwrap_or(u32::MAX);
        }
        &self.lines[*slot as usize - 1]
    }

    pub(super) fn frame(&mut self, id: NameId, text: &[u8]) -> Option<Frame> {
        let read = || Line::Frame(usage::frame(text).ok().map(|(_, frame)| frame));
        match self.line(id, read) {
            Line::Frame(frame) => *frame,
            Line::Usage(_) => None,
        }
    }

    pub(super) fn usage(&mut self, id: NameId, text: &[u8]) -> Option<Arc<Usage>> {
        match self.line(id, || Line::Usage(usage::usage(text).map(Arc::new))) {
            Line::Usage(usage) => usage.clone(),
            Line::Frame(_) => None,
        }
    }
}

/// The texts of figures that were met last, found by how they begin.
struct Recent {
    texts: [Option<NameId>; Recent::SLOTS],
}

impl Default for Recent {
    fn default() -> Recent {
        Recent { texts: [None; Recent::SLOTS] }
    }
}

impl Recent {
    const SLOTS: usize = 1 << Recent::BITS;
    const BITS: u32 = 7;

    /// `Used 40 register` and `1032 bytes stack` are enough to tell most apart.
    fn slot(text: &[u8]) -> Option<usize> {
        let (low, rest) = text.split_first_chunk()?;
        let high = rest.first_chunk()?;
        // Any odd number will do that spreads its factor to the high bits: this is 2^64 over the golden ratio.
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        let mixed = (u64::from_le_bytes(*low) ^ u64::from_le_bytes(*high).rotate_left(29)).wrapping_mul(SPREAD);
        usize::try_from(mixed >> (u64::BITS - Recent::BITS)).ok()
    }
}

impl Parsed {
    /// The line of figures at the start of `rest`, if it was met lately.
    fn recent(&self, texts: &Names, rest: &[u8]) -> Option<FigureLine> {
        let id = self.recent.texts[Recent::slot(rest)?]?;
        let text = texts.get(id);
        let line = FigureLine { id, length: text.len() };
        (rest.starts_with(text) && rest.get(text.len()) == Some(&b'\n')).then_some(line)
    }

    fn remember(&mut self, id: NameId, text: &[u8]) {
        if let Some(slot) = Recent::slot(text) {
            self.recent.texts[slot] = Some(id);
        }
    }
}

impl FigureLines for Assembler<'_> {
    fn line(&mut self, rest: &[u8], is_whole: fn(&[u8]) -> bool) -> Option<FigureLine> {
        let recent = self.parsed.recent(&self.report.texts, rest);
        if recent.is_some() {
            return recent;
        }
        let text = &rest[..memchr::memchr(b'\n', rest)?];
        if text.len() > MAX_QUOTE || !is_whole(text) {
            return None;
        }
        let id = self.report.texts.intern(text);
        self.parsed.remember(id, text);
        Some(FigureLine { id, length: text.len() })
    }
}

/// Finds a kernel that says the very same.
#[derive(Default)]
pub(super) struct Index {
    table: HashTable<Slot>,
    /// What each item says, and its position.
    keys: Vec<(Key, usize)>,
    hasher: DefaultHashBuilder,
}

/// A key by its position, with its hash: the table grows without looking at keys.
struct Slot {
    hash: u64,
    key: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) name: Option<NameId>,
    pub(super) arch: Option<Arch>,
    pub(super) entry: bool,
    pub(super) ambiguous: bool,
    pub(super) frame: Option<NameId>,
    pub(super) usage: Option<NameId>,
    /// The ptxas run, where it alone tells the architecture.
    pub(super) burst: Option<u32>,
}

impl Hash for Key {
    /// The lines of figures tell nearly all kernels of one name apart, so the rest need not be hashed.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let half = |id: Option<NameId>| id.map_or(0, |id| id.index() as u64 + 1);
        state.write_u64(half(self.name) << 32 | half(self.usage));
        state.write_u64(half(self.frame) << 32 | u64::from(self.burst.unwrap_or(0)));
    }
}

/// What an [`Index`] counts.
pub(super) trait Counted {
    fn records(&mut self) -> &mut u32;
}

impl Counted for Kernel {
    fn records(&mut self) -> &mut u32 {
        &mut self.records
    }
}

impl Counted for Linked {
    fn records(&mut self) -> &mut u32 {
        &mut self.kernel.records
    }
}

impl Index {
    /// The position of the item with this key, one more record of which was read; made when there is none.
    pub(super) fn find_or_add<T: Counted>(&mut self, key: Key, items: &mut Vec<T>, make: impl FnOnce() -> T) -> usize {
        let hash = self.hasher.hash_one(key);
        let known = self.table.find(hash, |slot| slot.hash == hash && self.keys[slot.key].0 == key);
        let at = match known {
            Some(slot) => self.keys[slot.key].1,
            None => {
                let slot = Slot { hash, key: self.keys.len() };
                items.push(make());
                self.keys.push((key, items.len() - 1));
                self.table.insert_unique(hash, slot, |slot| slot.hash);
                items.len() - 1
            }
        };
        let records = items[at].records();
        *records = records.saturating_add(1);
        at
    }
}

#[cfg(test)]
mod tests {
    use crate::model::Report;
    use crate::parse::{Echo, EchoMode, read_log};

    #[test]
    fn kernels_of_a_second_log_are_found_behind_those_of_the_first() {
        let block = |name: &str| {
            format!(
                "ptxas info    : Compiling entry function '{name}' for 'sm_90'\nptxas info    : Function properties for {name}\n    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\nptxas info    : Used 8 registers, used 0 barriers\n"
            )
        };
        let mut report = Report::default();
        let mut nowhere = std::io::sink();
        for log in [block("a") + &block("b"), block("b") + &block("c") + &block("b")] {
            read_log(&mut log.as_bytes(), "x.log", &mut report, &mut Echo::new(EchoMode::None, &mut nowhere))
                .expect("a log in memory");
        }
        let read: Vec<_> = report
            .kernels
            .iter()
            .map(|kernel| (kernel.name.map(|name| report.names.get(name)), kernel.records))
            .collect();
        assert_eq!(read, [(Some(&b"a"[..]), 1), (Some(b"b"), 1), (Some(b"b"), 2), (Some(b"c"), 1)]);
    }
}
