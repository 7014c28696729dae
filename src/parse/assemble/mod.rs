//! Puts records together into kernels.
//!
//! ptxas prints the figures of a kernel in up to four records, of which only two carry its name, and several compilers
//! may write into one log at once. So records are attached by name where they have one. A `Used` record, which has none,
//! belongs to an entry that is open (its name was printed, its figures not yet); see [`open`] for which. Where lines say
//! themselves which job wrote them, each job is a [`stream`] of its own.

mod frames;
mod index;
mod link;
mod open;
mod room;
mod stream;

use std::sync::Arc;

use self::index::{Index, Key, Parsed};
use self::open::{Complete, Figures, Open};
use self::room::Room;
pub(crate) use self::room::Weight;
use self::stream::{Function, Stream};
use super::block::{self, FunctionBlock, KernelBlock};
use super::usage::{self, Frame, Usage};
use crate::model::{
    Arch, Bytes, Evidence, Kernel, Kind, Message, MessageKind, NameId, Place, Quote, Report, Resources, Unread,
};

/// Longest text of a line that is kept as evidence.
const MAX_QUOTE: usize = 400;

/// The state of one log while it is read.
pub(crate) struct Assembler<'r> {
    report: &'r mut Report,
    input: u32,
    /// What is under way in the stream that the line at hand belongs to, and in the others.
    stream: Stream,
    others: Vec<Stream>,
    parsed: Parsed,
    kernels: Index,
    linked: Index,
    room: Room,
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

/// Where the lines of a kernel's report stand.
pub(crate) struct Places {
    pub(crate) name: Place,
    pub(crate) frame: Place,
    pub(crate) used: Place,
}

impl<'r> Assembler<'r> {
    pub(crate) fn new(report: &'r mut Report, input: u32) -> Assembler<'r> {
        Assembler {
            report,
            input,
            stream: Stream::new(stream::UNMARKED),
            others: Vec::new(),
            parsed: Parsed::default(),
            kernels: Index::default(),
            linked: Index::default(),
            room: Room::default(),
        }
    }

    /// The records that come now are of the stream `id`.
    pub(crate) fn select(&mut self, id: u32) {
        if self.stream.id == id {
            return;
        }
        let next = match self.others.iter().position(|other| other.id == id) {
            Some(at) => self.others.remove(at),
            None => Stream::new(id),
        };
        // The longest silent is the first.
        let last = std::mem::replace(&mut self.stream, next);
        self.others.push(last);
        if self.others.len() > stream::MAX_STREAMS {
            let silent = self.others.remove(0);
            let last = std::mem::replace(&mut self.stream, silent);
            self.finish_stream();
            self.stream = last;
        }
    }

    /// True when a `Used` record that comes now would have neither name nor frame.
    pub(crate) fn lacks_frame(&self) -> bool {
        self.stream.openings.is_empty() && self.stream.function.is_none() && self.stream.stray_frame.is_none()
    }

    /// Whether an entry waits for its figures.
    pub(crate) fn has_open_entry(&self) -> bool {
        !self.stream.openings.is_empty()
    }

    /// A new run of ptxas reports.
    pub(crate) fn module(&mut self) {
        self.end_burst();
        self.stream.begin_burst();
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
        self.stream.note_entry(arch);
        if self.stream.openings.is_full() {
            let mut complete = Vec::new();
            let oldest = self.stream.openings.take_oldest(false, &mut complete);
            self.finish_all(complete, false);
            if let Some(oldest) = oldest {
                self.finish_without_figures(oldest);
            }
        }
        self.stream.openings.push(Open::new(name, arch, place));
    }

    /// True when no record is under way: what comes now has nothing to be attached to but itself.
    pub(crate) fn is_idle(&self) -> bool {
        let stream = &self.stream;
        self.others.is_empty()
            && stream.openings.is_idle()
            && stream.stray_frame.is_none()
            && stream.frameless.is_none()
    }

    /// The whole report of a kernel, while nothing else is open. False, and nothing done, when its figures are not whole.
    /// Its places are asked for only when it says something new.
    pub(crate) fn whole_kernel(&mut self, block: &KernelBlock<'_>, places: impl FnOnce() -> Places) -> bool {
        let texts = &self.report.texts;
        let frame = self.parsed.frame(block.frame, texts.get(block.frame));
        let usage = self.parsed.usage(block.used, texts.get(block.used)).filter(|_| frame.is_some());
        let Some(usage) = usage.filter(|usage| !usage.unfinished && !usage.unread_item) else { return false };
        let name = self.report.names.intern_if(block.name, block::is_plain_name);
        if name.is_none() {
            return false;
        }
        self.flush_function();
        self.stream.note_entry(Some(block.arch));
        self.stream.note_figures(&usage);
        self.stream.has_properties = true;
        let key = Key {
            name,
            arch: Some(block.arch),
            entry: true,
            ambiguous: false,
            frame: Some(block.frame),
            usage: Some(block.used),
            burst: None,
        };
        let at = self.kernels.find_or_add(key, &mut self.report.kernels, || {
            let places = places();
            let mut open = Open::new(name, Some(block.arch), places.name);
            open.frame = Some((Quote { place: places.frame, text: block.frame }, frame));
            let quote = Quote { place: places.used, text: block.used };
            kernel(open, Some(&Figures { quote, usage, cut: false }), None)
        });
        self.stream.times.expect(Some(at));
        true
    }

    /// The whole report of a device function, while nothing else is open. False, and nothing done, when it is not whole.
    /// The places of name and frame are asked for only when it is: lines are counted forwards.
    pub(crate) fn whole_function(
        &mut self,
        block: &FunctionBlock<'_>,
        places: impl FnOnce() -> (Place, Place),
    ) -> bool {
        let text = block.frame;
        let Some(frame) = self.parsed.frame(text, self.report.texts.get(text)) else { return false };
        let Some(name) = self.report.names.intern_if(block.name, block::is_plain_name) else { return false };
        self.flush_function();
        let (name_place, frame_place) = places();
        let frame = (Quote { place: frame_place, text }, Some(frame));
        self.stream.function = Some(Function { name, place: name_place, frame, time: None, ambiguous: false });
        true
    }

    /// Whether an entry called `name` waits for its properties.
    pub(crate) fn expects_properties_of(&mut self, name: &[u8]) -> bool {
        let names = &self.report.names;
        self.stream.openings.expects(|open| open.name.is_some_and(|id| names.get(id) == name))
    }

    /// A `Used` record. Where it is cut, what is missing is unknown, not zero.
    pub(crate) fn used(&mut self, text: &[u8], place: Place, end: End) -> Completeness {
        // What cannot be read is not kept as evidence: it may be endless.
        let read = usage::starts_whole(text).then(|| self.quote(text, place));
        let read = read.and_then(|quote| Some((quote, self.parsed.usage(quote.text, text)?)));
        let Some((quote, usage)) = read else {
            if end == End::MayGoOn && usage::is_start_of_used(text) {
                return Completeness::Unfinished;
            }
            self.unread(usage::why_unread(text, Unread::Form), text, place);
            self.close_without_figures();
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
        self.attach_figures(Figures { quote, usage, cut });
        Completeness::Whole
    }

    fn attach_figures(&mut self, figures: Figures) {
        self.stream.note_figures(&figures.usage);
        if self.stream.openings.is_empty() {
            return match self.take_unopened() {
                Some((open, time)) => {
                    let at = self.finish(open, Some(&figures), time);
                    self.stream.times.expect(Some(at));
                }
                None => self.nameless(figures),
            };
        }
        let mut complete = Vec::new();
        let last_is_new = self.stream.openings.take(figures, &mut complete);
        self.finish_all(complete, last_is_new);
        if !last_is_new {
            self.stream.times.expect(None);
        }
    }

    /// Keeps entries whose figures are complete; of the last the time is still to come, if it `is_new`.
    fn finish_all(&mut self, complete: Vec<Complete>, is_new: bool) {
        let last = complete.len();
        for (count, (open, figures)) in (1..).zip(complete) {
            self.forget_frame_of(&open);
            let open = self.doubt_name(open);
            let at = self.finish(open, Some(&figures), None);
            if is_new && count == last {
                self.stream.times.expect(Some(at));
            }
        }
        for figures in std::mem::take(&mut self.stream.openings.orphans) {
            self.nameless(figures);
        }
    }

    /// Where others have properties, an entry without any may have a name that never was: a write of over 4096 bytes
    /// can be torn, and its head joined with another's tail.
    fn doubt_name(&mut self, mut open: Open) -> Open {
        let prints_properties = open.arch.is_some_and(|arch| arch.at_least(2, 0));
        self.stream.has_properties |= open.properties;
        if prints_properties && !open.properties && self.stream.has_properties {
            open.doubt_frame();
        }
        open
    }

    /// Figures that cannot be read still close the entry that they belong to.
    fn close_without_figures(&mut self) {
        let mut complete = Vec::new();
        let open = self.stream.openings.take_oldest(true, &mut complete);
        self.finish_all(complete, false);
        if let Some(mut open) = open {
            open.ambiguous |= !self.stream.openings.is_empty();
            self.forget_frame_of(&open);
            self.finish(open, None, None);
            self.stream.times.expect(None);
        }
    }

    /// The kernel of clang's OpenMP and of old tools: properties and figures without a `Compiling` line before them.
    fn take_unopened(&mut self) -> Option<(Open, Option<f64>)> {
        let function = self.stream.function.take()?;
        let mut open = Open::new(Some(function.name), None, function.place);
        open.frame = Some(function.frame);
        if function.ambiguous {
            open.doubt_frame();
        }
        Some((open, function.time))
    }

    fn nameless(&mut self, figures: Figures) {
        let quote = figures.quote;
        let text = self.report.texts.get(quote.text).to_vec();
        self.unread(Unread::Nameless, &text, quote.place);
        let frame = self.stream.stray_frame.take();
        let lacks_frame = frame.is_none();
        let place = frame.as_ref().map_or(quote.place, |(quote, _)| quote.place);
        let mut open = Open::new(None, None, place);
        open.frame = frame;
        let at = self.finish(open, Some(&figures), None);
        self.stream.times.expect(Some(at));
        self.stream.frameless = lacks_frame.then_some(at);
    }

    fn finish(&mut self, open: Open, read: Option<&Figures>, time: Option<f64>) -> usize {
        let key = Key {
            name: open.name,
            arch: open.arch,
            entry: true,
            ambiguous: open.ambiguous,
            frame: open.frame.map(|(quote, _)| quote.text),
            usage: read.map(|read| read.quote.text),
            burst: None,
        };
        let at = self.kernels.find_or_add(key, &mut self.report.kernels, || kernel(open, read, time));
        self.stream.frameless = None;
        at
    }

    fn finish_without_figures(&mut self, open: Open) {
        let place = open.place;
        let name = open.name.map(|id| self.report.names.get(id).to_vec()).unwrap_or_default();
        let kernel = open.name;
        self.finish(open, None, None);
        let text = self.report.texts.intern(&name[..name.len().min(MAX_QUOTE)]);
        let kind = MessageKind::Unread(Unread::NoFigures);
        self.keep_message(text, Message { kernel, ..Message::new(kind, text, place) });
    }

    /// Keeps the device function that was read last, if it is one.
    fn flush_function(&mut self) {
        if self.stream.function.is_none() {
            return;
        }
        let Some(function) = self.stream.function.take() else { return };
        if is_copy(self.report.names.get(function.name)) {
            self.facts().separate = true;
        }
        let (arch, number) = self.stream.burst();
        let key = Key {
            name: Some(function.name),
            arch,
            entry: false,
            ambiguous: function.ambiguous,
            frame: Some(function.frame.0.text),
            usage: None,
            burst: arch.is_none().then_some(number),
        };
        let at = self.kernels.find_or_add(key, &mut self.report.kernels, || {
            let mut resources = Resources { compile_time_ms: function.time, ..Resources::default() };
            set_frame(&mut resources, function.frame.1);
            Kernel {
                resources,
                ambiguous: function.ambiguous,
                frame_ambiguous: function.ambiguous,
                evidence: Evidence {
                    name: Some(function.place),
                    frame: Some(function.frame.0),
                    usage: None,
                    head: None,
                },
                ..Kernel::new(Some(function.name), Kind::Function, None)
            }
        });
        if self.report.kernels[at].records == 1 {
            self.stream.date_later(at);
        }
    }

    pub(crate) fn compile_time(&mut self, ms: f64) {
        if !self.stream.times.none_is_pending() {
            if let Some(kernel) = self.stream.times.take() {
                self.report.kernels[kernel].resources.compile_time_ms.get_or_insert(ms);
            }
        } else if !self.stream.time_function(ms) {
            // One too many: the head of the log is missing, and the last may have been another's.
            if let Some(kernel) = self.stream.times.retract() {
                self.report.kernels[kernel].resources.compile_time_ms = None;
            }
        }
    }

    /// The id of a text that a message is made of.
    pub(crate) fn text(&mut self, text: &[u8]) -> NameId {
        self.report.texts.intern(text)
    }

    /// The id of what stands before the text of a message; nearly always that of the message before.
    pub(crate) fn lead(&mut self, lead: &[u8]) -> NameId {
        let known = self.report.messages.last().and_then(|message| message.lead);
        match known.filter(|id| self.report.texts.get(*id) == lead) {
            Some(id) => id,
            None => self.text(lead),
        }
    }

    /// The id of a name that a message holds.
    pub(crate) fn name(&mut self, name: &[u8]) -> NameId {
        self.report.names.intern(name)
    }

    /// A line, or a part of it, that could not be read. Of several reasons on one line the first is told.
    pub(crate) fn unread(&mut self, why: Unread, text: &[u8], place: Place) {
        let text = &text[..text.len().min(MAX_QUOTE)];
        let known = self.report.texts.find(text).and_then(|id| self.message_at(id));
        if known.is_some_and(|at| self.report.messages[at].place == place) {
            return;
        }
        if let Some(id) = self.repeat(text, Weight::Other, || place) {
            self.keep_message(id, Message::new(MessageKind::Unread(why), id, place));
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
        self.finish_stream();
        while let Some(other) = self.others.pop() {
            self.stream = other;
            self.finish_stream();
        }
        self.tell_lost();
    }

    fn end_burst(&mut self) {
        self.flush_function();
        if self.stream.is_separate() {
            self.facts().separate = true;
        }
    }

    fn finish_stream(&mut self) {
        self.end_burst();
        self.lose_frames();
        self.finish_stray_frame();
        let mut complete = Vec::new();
        let left = self.stream.openings.finish(&mut complete);
        self.finish_all(complete, false);
        for open in left {
            self.finish_without_figures(open);
        }
        for (kernel, arch) in self.stream.dated_functions() {
            self.report.kernels[kernel].arch = arch;
        }
    }
}

/// Whether `name` is that of a numbered copy, as `_Z4polyPKfi$5`, which ptxas makes of a function only where others may call
/// the function itself: in code that is linked later.
fn is_copy(name: &[u8]) -> bool {
    let digits = name.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    let original = name[..name.len() - digits].strip_suffix(b"$").unwrap_or_default();
    digits > 0 && !original.is_empty()
}

/// The kernel of an entry with its figures.
fn kernel(open: Open, read: Option<&Figures>, time: Option<f64>) -> Kernel {
    let mut resources = read.map_or_else(Resources::default, |read| figures(&read.usage, read.cut));
    let (quote, frame) = open.frame.map_or((None, None), |(quote, frame)| (Some(quote), frame));
    set_frame(&mut resources, frame);
    resources.compile_time_ms = time;
    Kernel {
        resources,
        ambiguous: open.ambiguous,
        frame_ambiguous: open.ambiguous && open.frame_doubt,
        evidence: Evidence { name: Some(open.place), frame: quote, usage: read.map(|read| read.quote), head: None },
        family: None,
        ..Kernel::new(open.name, Kind::Entry, open.arch)
    }
}

fn set_frame(resources: &mut Resources, frame: Option<Frame>) {
    if let Some(frame) = frame {
        resources.stack = frame.stack;
        resources.spill_stores = Some(frame.stores);
        resources.spill_loads = Some(frame.loads);
    }
}

/// The figures of a `Used` line. An item that a whole line lacks is zero; one that a cut line lacks is unknown, and so is
/// what an item that was not understood may have said.
fn figures(usage: &Usage, cut: bool) -> Resources {
    let whole = !cut && usage.is_understood();
    let zero_if = |sure: bool| sure.then_some(Bytes::ZERO);
    Resources {
        registers: Some(usage.registers),
        barriers: usage.barriers,
        cumulative_stack: usage.cumulative_stack,
        static_shared: usage.shared.or_else(|| zero_if(whole || usage.is_past_shared())),
        local: usage.local,
        constant: whole.then(|| Arc::clone(&usage.constant)),
        textures: usage.textures.or(whole.then_some(0)),
        surfaces: usage.surfaces.or(whole.then_some(0)),
        samplers: usage.samplers.or(whole.then_some(0)),
        ..Resources::default()
    }
}
