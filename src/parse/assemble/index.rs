//! Tables of the assembler: lines that are read once, and kernels that say the very same.

use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::model::{Arch, Kernel, Linked, NameId};
use crate::parse::usage::{self, Frame, Usage};

/// Each distinct line is parsed once.
#[derive(Default)]
pub(super) struct Parsed {
    lines: Vec<Line>,
}

#[derive(Clone, Default)]
enum Line {
    #[default]
    Unknown,
    Frame(Option<Frame>),
    Usage(Option<Arc<Usage>>),
}

impl Parsed {
    fn slot(&mut self, id: NameId) -> &mut Line {
        if self.lines.len() <= id.index() {
            self.lines.resize(id.index() + 1, Line::Unknown);
        }
        &mut self.lines[id.index()]
    }

    pub(super) fn frame(&mut self, id: NameId, text: &[u8]) -> Option<Frame> {
        let slot = self.slot(id);
        if let Line::Frame(frame) = slot {
            return *frame;
        }
        let frame = usage::frame(text).ok().map(|(_, frame)| frame);
        *slot = Line::Frame(frame);
        frame
    }

    pub(super) fn usage(&mut self, id: NameId, text: &[u8]) -> Option<Arc<Usage>> {
        let slot = self.slot(id);
        if let Line::Usage(usage) = slot {
            return usage.clone();
        }
        let usage = usage::usage(text).map(Arc::new);
        *slot = Line::Usage(usage.clone());
        usage
    }
}

/// Finds a kernel that says the very same.
#[derive(Default)]
pub(super) struct Index {
    table: HashTable<(Key, usize)>,
    hasher: DefaultHashBuilder,
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
        let at = match self.table.find(hash, |(known, _)| *known == key) {
            Some((_, at)) => *at,
            None => {
                items.push(make());
                let at = items.len() - 1;
                let hasher = &self.hasher;
                self.table.insert_unique(hash, (key, at), |(key, _)| hasher.hash_one(key));
                at
            }
        };
        let records = items[at].records();
        *records = records.saturating_add(1);
        at
    }
}
