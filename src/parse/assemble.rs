//! Puts records together into kernels.
//!
//! ptxas prints the figures of a kernel in up to four records, of which only two carry its name, and several compilers
//! may write into one log at once. So records are attached by name where they have one. A `Used` record, which has none,
//! belongs to the entry that is open (its name was printed, its figures not yet). When several are open and neither the
//! architecture nor the stack tells them apart, the oldest gets it, and all of them are marked ambiguous.

use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::listing::Listed;
use super::usage::{self, Frame, Usage};
use crate::model::{
    Arch, Bytes, Evidence, Kernel, Kind, LinkSource, Linked, Message, MessageKind, NameId, Place, Quote, Report,
    Resources, Unread,
};

/// Entries that wait for their figures at one time; more than any build runs jobs. The oldest is given up.
const MAX_OPEN: usize = 256;

/// Distinct messages that are kept; a hostile log may hold any number.
const MAX_MESSAGES: usize = 1 << 16;

/// Longest text of a line that is kept as evidence.
const MAX_QUOTE: usize = 400;

/// The state of one log while it is read.
pub(crate) struct Assembler<'r> {
    report: &'r mut Report,
    input: u32,
    open: Vec<Open>,
    /// `Function properties` lines whose frame is still to come.
    awaiting_frame: Vec<(Owner, u32)>,
    /// Linker properties whose figures are still to come.
    awaiting_link: Vec<(NameId, Option<Arch>, Place)>,
    function: Option<Function>,
    /// A frame whose name was cut off.
    stray_frame: Option<(Quote, Option<Frame>)>,
    /// A kernel without a name that has no frame yet.
    frameless: Option<usize>,
    times: Times,
    bursts: Vec<Burst>,
    /// The ptxas run in which each kernel was reported, for device functions whose architecture is still open.
    undated: Vec<(usize, usize)>,
    interleaved: bool,
    parsed: Parsed,
    kernels: Index,
    linked: Index,
    messages: Vec<Option<u32>>,
    listing: Listing,
}

/// An entry whose figures are not complete.
struct Open {
    name: Option<NameId>,
    arch: Option<Arch>,
    place: Place,
    properties: bool,
    frame: Option<(Quote, Option<Frame>)>,
    ambiguous: bool,
}

/// Whether the record that ends here may go on, on the next line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    MayGoOn,
    /// The log ends, or the rest did not come.
    Cut,
}

/// Whether a record was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Completeness {
    Whole,
    /// It stops within an item, and nothing was done with it.
    Unfinished,
}

/// What a `Function properties` line belongs to.
#[derive(Clone, Copy, PartialEq)]
enum Owner {
    Entry(NameId, Option<Arch>),
    Function(NameId, Place),
    /// A name that was torn and fits no open entry.
    Nobody,
}

/// A device function; it turns out to be a kernel when a `Used` line follows though no entry is open.
struct Function {
    name: NameId,
    place: Place,
    frame: (Quote, Option<Frame>),
    time: Option<f64>,
}

/// One run of ptxas.
#[derive(Default)]
struct Burst {
    arch: Option<Arch>,
    mixed: bool,
}

/// Compile times name nobody either. One is given to a kernel only if no other could have had it.
#[derive(Default)]
struct Times {
    /// Kernels whose time is still to come.
    pending: usize,
    /// The one of them, where there has been only one since none was pending.
    only: Option<usize>,
    /// The log has compile times at all.
    seen: bool,
}

impl Times {
    fn expect(&mut self, kernel: usize) {
        self.pending += 1;
        self.only = (self.pending == 1).then_some(kernel);
    }

    /// The kernel whose time this one is.
    fn take(&mut self) -> Option<usize> {
        self.seen = true;
        self.pending = self.pending.saturating_sub(1);
        self.only.take()
    }

    fn clear(&mut self) {
        self.pending = 0;
        self.only = None;
    }
}

/// Each distinct line is parsed once.
#[derive(Default)]
struct Parsed {
    lines: Vec<Line>,
}

#[derive(Clone, Default)]
enum Line {
    #[default]
    Unknown,
    Frame(Option<Frame>),
    Usage(Option<Arc<Usage>>),
}

/// Finds a kernel that says the very same.
#[derive(Default)]
struct Index {
    table: HashTable<(Key, usize)>,
    hasher: DefaultHashBuilder,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    name: Option<NameId>,
    arch: Option<Arch>,
    entry: bool,
    ambiguous: bool,
    frame: Option<NameId>,
    usage: Option<NameId>,
    /// The ptxas run, where it alone tells the architecture.
    burst: Option<usize>,
}

impl Hash for Key {
    /// The lines of figures tell nearly all kernels of one name apart, so the rest need not be hashed.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let half = |id: Option<NameId>| id.map_or(0, |id| id.index() as u64 + 1);
        state.write_u64(half(self.name) << 32 | half(self.usage));
        state.write_u64(half(self.frame) << 32 | self.burst.unwrap_or(0) as u64);
    }
}

/// Where a `cuobjdump` listing stands.
#[derive(Default)]
struct Listing {
    arch: Option<Arch>,
    function: Option<(NameId, Place)>,
}

impl<'r> Assembler<'r> {
    pub(crate) fn new(report: &'r mut Report, input: u32) -> Assembler<'r> {
        Assembler {
            report,
            input,
            open: Vec::new(),
            awaiting_frame: Vec::new(),
            awaiting_link: Vec::new(),
            function: None,
            stray_frame: None,
            frameless: None,
            times: Times::default(),
            bursts: vec![Burst::default()],
            undated: Vec::new(),
            interleaved: false,
            parsed: Parsed::default(),
            kernels: Index::default(),
            linked: Index::default(),
            messages: Vec::new(),
            listing: Listing::default(),
        }
    }

    /// True while a `Function properties` line waits for its frame, which is on a line of its own without a tool's name.
    pub(crate) fn awaits_frame(&self) -> bool {
        !self.awaiting_frame.is_empty()
    }

    /// True when a `Used` record that comes now would have neither name nor frame.
    pub(crate) fn lacks_frame(&self) -> bool {
        self.open.is_empty() && self.function.is_none() && self.stray_frame.is_none()
    }

    /// Gives up waiting for frames that have not come within `lines` lines.
    pub(crate) fn expire_frames(&mut self, line: u32, lines: u32) {
        self.awaiting_frame.retain(|(_, since)| since.saturating_add(lines) >= line);
    }

    /// A new run of ptxas reports.
    pub(crate) fn module(&mut self) {
        self.flush_function();
        self.bursts.push(Burst::default());
    }

    pub(crate) fn entry(&mut self, name: &[u8], arch: Option<Arch>, place: Place) {
        let name = Some(self.report.names.intern(name));
        self.open_entry(name, arch, place);
    }

    /// An entry whose name was torn or cut.
    pub(crate) fn nameless_entry(&mut self, place: Place) {
        self.open_entry(None, None, place);
    }

    fn open_entry(&mut self, name: Option<NameId>, arch: Option<Arch>, place: Place) {
        self.flush_function();
        // In serial output a time comes before the next entry, or not at all.
        if !self.times.seen || !self.interleaved {
            self.times.clear();
        }
        if let (Some(burst), Some(arch)) = (self.bursts.last_mut(), arch) {
            burst.mixed |= burst.arch.is_some_and(|known| known != arch);
            burst.arch = Some(arch);
            self.interleaved |= burst.mixed;
        }
        self.interleaved |= !self.open.is_empty();
        if self.open.len() == MAX_OPEN {
            let oldest = self.open.remove(0);
            self.finish_without_figures(oldest);
        }
        self.open.push(Open { name, arch, place, properties: false, frame: None, ambiguous: false });
    }

    /// The entry called `name` that has no properties yet; newest first, as it nearly always is the newest.
    fn entry_without_properties(&self, name: &[u8]) -> Option<usize> {
        let names = &self.report.names;
        self.open.iter().rposition(|open| !open.properties && open.name.is_some_and(|id| names.get(id) == name))
    }

    pub(crate) fn properties(&mut self, name: &[u8], place: Place) {
        self.flush_function();
        let owner = match self.entry_without_properties(name) {
            Some(at) => {
                self.mark_equals_ambiguous(at);
                let open = &mut self.open[at];
                open.properties = true;
                Owner::Entry(open.name.unwrap_or_else(|| self.report.names.intern(name)), open.arch)
            }
            None => Owner::Function(self.report.names.intern(name), place),
        };
        self.awaiting_frame.push((owner, place.line));
    }

    /// One name compiled for several architectures at once: properties and figures may belong to either.
    fn mark_equals_ambiguous(&mut self, at: usize) {
        let name = self.open[at].name;
        let equals = |open: &Open| !open.properties && open.name == name;
        if self.open.iter().filter(|open| equals(open)).count() > 1 {
            self.open.iter_mut().filter(|open| equals(open)).for_each(|open| open.ambiguous = true);
        }
    }

    /// Properties whose name was torn after `head`: those of the one open entry whose name begins like this.
    pub(crate) fn torn_properties(&mut self, head: &[u8], place: Place) {
        self.flush_function();
        let names = &self.report.names;
        let fits = |open: &Open| !open.properties && open.name.is_some_and(|id| names.get(id).starts_with(head));
        let mut fitting =
            self.open.iter().enumerate().filter(|(_, open)| !head.is_empty() && fits(open)).map(|(at, _)| at);
        let owner = match (fitting.next(), fitting.next()) {
            (Some(at), None) => {
                let open = &mut self.open[at];
                open.properties = true;
                open.name.map_or(Owner::Nobody, |name| Owner::Entry(name, open.arch))
            }
            _ => Owner::Nobody,
        };
        self.awaiting_frame.push((owner, place.line));
    }

    /// A frame record. One that is cut has no figures that are surely whole.
    pub(crate) fn frame(&mut self, text: &[u8], place: Place, end: End) -> Completeness {
        let quote = self.quote(text, place);
        let frame = self.parsed.frame(quote.text, text);
        if frame.is_none() {
            if end == End::MayGoOn {
                return Completeness::Unfinished;
            }
            self.unread(Unread::Cut, text, place);
        }
        self.attach_frame(quote, frame);
        Completeness::Whole
    }

    fn attach_frame(&mut self, quote: Quote, frame: Option<Frame>) {
        let several = self.awaiting_frame.len() > 1;
        if self.awaiting_frame.is_empty() {
            return self.orphan_frame(quote, frame);
        }
        match self.awaiting_frame.remove(0).0 {
            Owner::Entry(name, arch) => {
                let waiting = |open: &&mut Open| {
                    open.name == Some(name) && open.arch == arch && open.frame.is_none() && open.properties
                };
                if let Some(open) = self.open.iter_mut().find(waiting) {
                    open.frame = Some((quote, frame));
                    open.ambiguous |= several;
                }
            }
            Owner::Function(..) if several => {}
            Owner::Function(name, place) => {
                self.function = Some(Function { name, place, frame: (quote, frame), time: None });
            }
            Owner::Nobody => {}
        }
    }

    /// A frame whose name is not in the log: of the kernel without a name before it, or of the one that follows.
    fn orphan_frame(&mut self, quote: Quote, frame: Option<Frame>) {
        match self.frameless.take() {
            Some(at) => {
                let kernel = &mut self.report.kernels[at];
                kernel.evidence.frame = Some(quote);
                set_frame(&mut kernel.resources, frame);
            }
            None => self.stray_frame = Some((quote, frame)),
        }
    }

    /// A `Used` record. Where it is cut, what is missing is unknown, not zero.
    pub(crate) fn used(&mut self, text: &[u8], place: Place, end: End) -> Completeness {
        let quote = self.quote(text, place);
        let Some(usage) = self.parsed.usage(quote.text, text) else {
            self.unread(Unread::Form, text, place);
            self.drop_oldest_candidate();
            return Completeness::Whole;
        };
        if usage.unfinished && end == End::MayGoOn {
            return Completeness::Unfinished;
        }
        let cut = end == End::Cut;
        if usage.unread_item {
            self.unread(Unread::Item, text, place);
        }
        if cut {
            self.unread(Unread::Cut, text, place);
        }
        let open = match self.choose(&usage) {
            Some(at) => self.open.remove(at),
            None => match self.take_unopened() {
                Some(open) => open,
                None => {
                    self.nameless(quote, &usage, cut);
                    return Completeness::Whole;
                }
            },
        };
        let time = self.function.as_ref().and_then(|function| function.time);
        self.forget_frame_of(&open);
        self.finish(open, Some((quote, &usage)), cut, time);
        Completeness::Whole
    }

    /// The open entry that `usage` belongs to; see the module's first lines.
    fn choose(&mut self, usage: &Usage) -> Option<usize> {
        if self.open.len() <= 1 {
            return self.open.first().map(|_| 0);
        }
        let mut candidates: Vec<usize> = (0..self.open.len()).collect();
        let mut narrow = |fits: &dyn Fn(&Open) -> bool| {
            if candidates.iter().any(|at| fits(&self.open[*at])) {
                candidates.retain(|at| fits(&self.open[*at]));
            }
        };
        // Figures come after properties, where the tool prints any.
        narrow(&|open| open.frame.is_some());
        // From sm_90 on ptxas lists no constant banks; before, always.
        narrow(&|open| open.arch.is_none_or(|arch| arch.at_least(9, 0) == usage.constant.is_empty()));
        // A kernel's stack holds at least its own frame.
        narrow(&|open| match (usage.cumulative_stack, open.frame) {
            (Some(whole), Some((_, Some(frame)))) => frame.stack <= whole,
            _ => true,
        });
        if candidates.len() > 1 {
            candidates.iter().for_each(|at| self.open[*at].ambiguous = true);
        }
        candidates.first().copied()
    }

    /// Figures that cannot be read still close the entry that they belong to.
    fn drop_oldest_candidate(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let at = self.open.iter().position(|open| open.frame.is_some()).unwrap_or(0);
        let mut open = self.open.remove(at);
        open.ambiguous |= !self.open.is_empty();
        self.forget_frame_of(&open);
        self.finish(open, None, true, None);
    }

    /// The kernel of clang's OpenMP and of old tools: properties and figures without a `Compiling` line before them.
    fn take_unopened(&mut self) -> Option<Open> {
        let function = self.function.take()?;
        Some(Open {
            name: Some(function.name),
            arch: None,
            place: function.place,
            properties: true,
            frame: Some(function.frame),
            ambiguous: false,
        })
    }

    fn nameless(&mut self, quote: Quote, usage: &Usage, cut: bool) {
        let text = self.report.texts.get(quote.text).to_vec();
        self.unread(Unread::Nameless, &text, quote.place);
        let frame = self.stray_frame.take();
        let lacks_frame = frame.is_none();
        let place = frame.as_ref().map_or(quote.place, |(quote, _)| quote.place);
        let open = Open { name: None, arch: None, place, properties: true, frame, ambiguous: false };
        let at = self.finish(open, Some((quote, usage)), cut, None);
        self.frameless = lacks_frame.then_some(at);
    }

    fn forget_frame_of(&mut self, open: &Open) {
        if let Some(name) = open.name {
            self.awaiting_frame.retain(|(owner, _)| *owner != Owner::Entry(name, open.arch));
        }
    }

    fn finish(&mut self, open: Open, usage: Option<(Quote, &Usage)>, cut: bool, time: Option<f64>) -> usize {
        let (frame_quote, frame) = open.frame.map_or((None, None), |(quote, frame)| (Some(quote), frame));
        let key = Key {
            name: open.name,
            arch: open.arch,
            entry: true,
            ambiguous: open.ambiguous,
            frame: frame_quote.map(|quote| quote.text),
            usage: usage.map(|(quote, _)| quote.text),
            burst: None,
        };
        let at = self.kernels.find_or_add(key, &mut self.report.kernels, || {
            let mut resources = usage.map_or_else(Resources::default, |(_, usage)| figures(usage, cut));
            set_frame(&mut resources, frame);
            resources.compile_time_ms = time;
            Kernel {
                name: open.name,
                kind: Kind::Entry,
                arch: open.arch,
                resources,
                ambiguous: open.ambiguous,
                unbounded_stack: false,
                linked: false,
                registers_before_link: None,
                records: 0,
                evidence: Evidence { name: Some(open.place), frame: frame_quote, usage: usage.map(|(quote, _)| quote) },
            }
        });
        self.frameless = None;
        self.times.expect(at);
        at
    }

    fn finish_without_figures(&mut self, open: Open) {
        let place = open.place;
        let name = open.name.map(|id| self.report.names.get(id).to_vec()).unwrap_or_default();
        let kernel = open.name;
        self.finish(open, None, true, None);
        self.times.clear();
        let text = self.report.texts.intern(&name[..name.len().min(MAX_QUOTE)]);
        self.keep_message(MessageKind::Unread(Unread::NoFigures), kernel, None, text, place);
    }

    /// Keeps the device function that was read last, if it is one.
    fn flush_function(&mut self) {
        let Some(function) = self.function.take() else { return };
        let burst = self.bursts.len() - 1;
        let arch = self.bursts[burst].arch;
        let key = Key {
            name: Some(function.name),
            arch,
            entry: false,
            ambiguous: false,
            frame: Some(function.frame.0.text),
            usage: None,
            burst: arch.is_none().then_some(burst),
        };
        let at = self.kernels.find_or_add(key, &mut self.report.kernels, || {
            let mut resources = Resources { compile_time_ms: function.time, ..Resources::default() };
            set_frame(&mut resources, function.frame.1);
            Kernel {
                name: Some(function.name),
                kind: Kind::Function,
                arch: None,
                resources,
                ambiguous: false,
                unbounded_stack: false,
                linked: false,
                registers_before_link: None,
                records: 0,
                evidence: Evidence { name: Some(function.place), frame: Some(function.frame.0), usage: None },
            }
        });
        if self.report.kernels[at].records == 1 {
            self.undated.push((at, burst));
        }
    }

    pub(crate) fn compile_time(&mut self, ms: f64) {
        match (&mut self.function, self.times.pending) {
            (Some(function), 0) => {
                self.times.seen = true;
                function.time = Some(ms);
            }
            _ => {
                if let Some(kernel) = self.times.take() {
                    self.report.kernels[kernel].resources.compile_time_ms.get_or_insert(ms);
                }
            }
        }
    }

    pub(crate) fn link_properties(&mut self, name: &[u8], target: Option<Arch>, place: Place) {
        self.flush_function();
        let name = self.report.names.intern(name);
        self.awaiting_link.push((name, target, place));
        if self.awaiting_link.len() > MAX_OPEN {
            self.awaiting_link.remove(0);
        }
    }

    pub(crate) fn link_used(&mut self, text: &[u8], target: Option<Arch>, place: Place) {
        self.flush_function();
        let quote = self.quote(text, place);
        let Some(usage) = self.parsed.usage(quote.text, text) else {
            return self.unread(Unread::Form, text, place);
        };
        if usage.unread_item {
            self.unread(Unread::Item, text, place);
        }
        if usage.unfinished {
            self.unread(Unread::Cut, text, place);
        }
        let candidates = self.awaiting_link.iter().filter(|waiting| waiting.1 == target).count();
        let Some(at) = self.awaiting_link.iter().position(|waiting| waiting.1 == target) else {
            return self.unread(Unread::Nameless, text, place);
        };
        let (name, arch, named_at) = self.awaiting_link.remove(at);
        let mut resources = figures(&usage, usage.unfinished);
        // The linker's one stack figure counts callees; it is the kernel's only one unless ptxas told its own frame.
        resources.stack = usage.cumulative_stack;
        let kernel = Kernel {
            name: Some(name),
            kind: Kind::Entry,
            arch,
            resources,
            ambiguous: candidates > 1,
            unbounded_stack: false,
            linked: true,
            registers_before_link: None,
            records: 0,
            evidence: Evidence { name: Some(named_at), frame: None, usage: Some(quote) },
        };
        self.keep_linked(kernel, LinkSource::Nvlink, quote.text);
    }

    fn keep_linked(&mut self, kernel: Kernel, source: LinkSource, text: NameId) {
        let key = Key {
            name: kernel.name,
            arch: kernel.arch,
            entry: source == LinkSource::Nvlink,
            ambiguous: kernel.ambiguous,
            frame: None,
            usage: Some(text),
            burst: None,
        };
        self.linked.find_or_add(key, &mut self.report.linked, || Linked { kernel, source });
    }

    /// A fatbin header of a `cuobjdump` listing.
    pub(crate) fn listed_arch(&mut self, arch: Option<Arch>) {
        self.listing.arch = arch;
        self.listing.function = None;
    }

    pub(crate) fn listed_function(&mut self, name: &[u8], place: Place) {
        let name = self.report.names.intern(name);
        self.listing.function = Some((name, place));
    }

    pub(crate) fn listed_figures(&mut self, listed: Listed, text: &[u8], place: Place) {
        let quote = self.quote(text, place);
        if listed.unread_item {
            self.unread(Unread::Item, text, place);
        }
        let function = self.listing.function.take();
        if function.is_none() {
            self.unread(Unread::Nameless, text, place);
        }
        let kernel = Kernel {
            name: function.map(|(name, _)| name),
            kind: if listed.is_entry { Kind::Entry } else { Kind::Function },
            arch: self.listing.arch,
            resources: listed.resources,
            ambiguous: false,
            unbounded_stack: listed.unbounded_stack,
            linked: true,
            registers_before_link: None,
            records: 0,
            evidence: Evidence { name: function.map(|(_, place)| place), frame: None, usage: Some(quote) },
        };
        self.keep_linked(kernel, LinkSource::Cuobjdump, quote.text);
    }

    /// The end of a `cuobjdump` listing: what follows is another file.
    pub(crate) fn end_listing(&mut self) {
        self.listing = Listing::default();
    }

    /// The count of a text that was seen before goes up by one; false when it is new.
    pub(crate) fn repeat(&mut self, text: &[u8]) -> Option<NameId> {
        let full = self.report.messages.len() >= MAX_MESSAGES;
        let id = if full { self.report.texts.find(text)? } else { self.report.texts.intern(text) };
        if let Some(at) = self.messages.get(id.index()).copied().flatten() {
            self.report.messages[at as usize].count += 1;
            return None;
        }
        (!full).then_some(id)
    }

    /// Keeps a message with a text that [`Assembler::repeat`] found to be new.
    pub(crate) fn keep_message(
        &mut self,
        kind: MessageKind,
        kernel: Option<NameId>,
        arch: Option<Arch>,
        text: NameId,
        place: Place,
    ) {
        if self.report.messages.len() >= MAX_MESSAGES {
            return;
        }
        if self.messages.len() <= text.index() {
            self.messages.resize(text.index() + 1, None);
        }
        self.messages[text.index()] = u32::try_from(self.report.messages.len()).ok();
        self.report.messages.push(Message { kind, kernel, arch, text, place, count: 1 });
    }

    /// The id of a name that a message holds.
    pub(crate) fn name(&mut self, name: &[u8]) -> NameId {
        self.report.names.intern(name)
    }

    pub(crate) fn unread(&mut self, why: Unread, text: &[u8], place: Place) {
        if let Some(id) = self.repeat(&text[..text.len().min(MAX_QUOTE)]) {
            self.keep_message(MessageKind::Unread(why), None, None, id, place);
        }
    }

    fn quote(&mut self, text: &[u8], place: Place) -> Quote {
        Quote { place, text: self.report.texts.intern(&text[..text.len().min(MAX_QUOTE)]) }
    }

    /// Facts of the input as a whole.
    pub(crate) fn facts(&mut self) -> &mut crate::model::InputFacts {
        &mut self.report.inputs[self.input as usize]
    }

    /// The end of the log.
    pub(crate) fn finish_log(&mut self) {
        self.flush_function();
        for open in std::mem::take(&mut self.open) {
            self.finish_without_figures(open);
        }
        self.date_functions();
    }

    /// ptxas prints no architecture for device functions. It is that of the entries of the same run; where output is
    /// interleaved, runs cannot be told apart and it is known only if the whole log has one.
    fn date_functions(&mut self) {
        let mut archs = self.bursts.iter().filter_map(|burst| burst.arch);
        let only = archs
            .next()
            .filter(|first| archs.all(|other| other == *first) && !self.bursts.iter().any(|burst| burst.mixed));
        for (at, burst) in std::mem::take(&mut self.undated) {
            let burst = &self.bursts[burst];
            let arch = if self.interleaved { only } else { burst.arch.filter(|_| !burst.mixed) };
            self.report.kernels[at].arch = arch;
        }
    }
}

fn set_frame(resources: &mut Resources, frame: Option<Frame>) {
    if let Some(frame) = frame {
        resources.stack = Some(frame.stack);
        resources.spill_stores = Some(frame.stores);
        resources.spill_loads = Some(frame.loads);
    }
}

/// The figures of a `Used` line. An item that a whole line lacks is zero; one that a cut line lacks is unknown.
fn figures(usage: &Usage, cut: bool) -> Resources {
    let whole = !cut;
    let zero_if = |sure: bool| sure.then_some(Bytes::ZERO);
    Resources {
        registers: Some(usage.registers),
        barriers: usage.barriers,
        cumulative_stack: usage.cumulative_stack,
        static_shared: usage.shared.or_else(|| zero_if(whole || usage.is_past_shared())),
        local: usage.local,
        constant: whole.then(|| usage.constant.as_slice().into()),
        textures: usage.textures.or(whole.then_some(0)),
        surfaces: usage.surfaces.or(whole.then_some(0)),
        samplers: usage.samplers.or(whole.then_some(0)),
        ..Resources::default()
    }
}

impl Parsed {
    fn slot(&mut self, id: NameId) -> &mut Line {
        if self.lines.len() <= id.index() {
            self.lines.resize(id.index() + 1, Line::Unknown);
        }
        &mut self.lines[id.index()]
    }

    fn frame(&mut self, id: NameId, text: &[u8]) -> Option<Frame> {
        let slot = self.slot(id);
        if let Line::Frame(frame) = slot {
            return *frame;
        }
        let frame = usage::frame(text).ok().map(|(_, frame)| frame);
        *slot = Line::Frame(frame);
        frame
    }

    fn usage(&mut self, id: NameId, text: &[u8]) -> Option<Arc<Usage>> {
        let slot = self.slot(id);
        if let Line::Usage(usage) = slot {
            return usage.clone();
        }
        let usage = usage::usage(text).map(Arc::new);
        *slot = Line::Usage(usage.clone());
        usage
    }
}

/// What an [`Index`] counts.
trait Counted {
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
    fn find_or_add<T: Counted>(&mut self, key: Key, items: &mut Vec<T>, make: impl FnOnce() -> T) -> usize {
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
