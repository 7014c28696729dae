//! Frames: the line with stack and spills that follows a `Function properties` line and names neither tool nor kernel.

use super::open::Open;
use super::room::Weight;
use super::stream::Function;
use super::usage::{self, Frame};
use super::{Assembler, Completeness, End, MAX_QUOTE, set_frame};
use crate::model::{Arch, Message, MessageKind, NameId, Place, Quote, Unread};

/// `Function properties` lines that wait for their frame at one time.
const MAX_AWAITING: usize = 256;

/// Longest name in a record that a pipe takes whole.
const WHOLE_WRITE: usize = 3900;

/// What a `Function properties` line belongs to.
#[derive(Clone, PartialEq)]
enum Owner {
    Entry(NameId, Option<Arch>),
    /// Its name is kept when its frame comes.
    Function(Vec<u8>),
    /// A name that was torn and fits no open entry.
    Nobody,
}

/// A `Function properties` line whose frame is still to come.
pub(super) struct Awaiting {
    owner: Owner,
    place: Place,
    /// Another one waits too, so the frame may be the other's.
    doubtful: bool,
}

impl Assembler<'_> {
    /// True while a `Function properties` line waits for its frame, which is on a line of its own without a tool's name.
    pub(crate) fn awaits_frame(&self) -> bool {
        !self.stream.awaiting_frame.is_empty() || self.others.iter().any(|other| !other.awaiting_frame.is_empty())
    }

    pub(crate) fn properties(&mut self, name: &[u8], place: Place) {
        self.flush_function();
        let names = &self.report.names;
        let called = |open: &Open| open.name.is_some_and(|id| names.get(id) == name);
        let owner = match self.stream.openings.expecting_properties(called) {
            Some(open) => owner_of(open),
            None => Owner::Function(name.to_vec()),
        };
        self.await_frame(owner, place);
    }

    /// Properties whose name was torn after `head`: those of the one open entry whose name begins like this.
    pub(crate) fn torn_properties(&mut self, head: &[u8], place: Place) {
        self.flush_function();
        let names = &self.report.names;
        let fits = |open: &Open| !head.is_empty() && open.name.is_some_and(|id| names.get(id).starts_with(head));
        let only = self.stream.openings.is_the_only(fits);
        let owner = match self.stream.openings.expecting_properties(fits).filter(|_| only) {
            Some(open) => owner_of(open),
            None => Owner::Nobody,
        };
        self.await_frame(owner, place);
    }

    fn await_frame(&mut self, owner: Owner, place: Place) {
        if self.stream.awaiting_frame.len() == MAX_AWAITING {
            let lost = self.stream.awaiting_frame.remove(0);
            self.lost_frame(&lost);
        }
        self.stream.awaiting_frame.push(Awaiting { owner, place, doubtful: false });
    }

    /// A frame record. One that is cut has no figures that are surely whole.
    pub(crate) fn frame(&mut self, text: &[u8], place: Place, end: End) -> Completeness {
        let quote = self.quote(text, place);
        let frame = self.parsed.frame(quote.text, text);
        if frame.is_none() {
            if end == End::MayGoOn && !usage::has_impossible_number(text) {
                return Completeness::Unfinished;
            }
            self.unread(usage::why_unread(text, Unread::Cut), text, place);
        }
        let frame = self.without_torn_start(frame, text, place);
        self.attach_frame(quote, frame);
        Completeness::Whole
    }

    /// A frame is indented: one that the log starts with lacks what was before it, maybe the first digits of its stack.
    fn without_torn_start(&mut self, frame: Option<Frame>, text: &[u8], place: Place) -> Option<Frame> {
        if place.offset > 0 || self.awaits_frame() {
            return frame;
        }
        self.unread(Unread::Cut, text, place);
        frame.map(|frame| Frame { stack: None, ..frame })
    }

    fn attach_frame(&mut self, quote: Quote, frame: Option<Frame>) {
        let awaiting = &mut self.stream.awaiting_frame;
        if awaiting.is_empty() {
            return self.orphan_frame(quote, frame);
        }
        if awaiting.len() > 1 {
            awaiting.iter_mut().for_each(|one| one.doubtful = true);
        }
        let Awaiting { owner, place, doubtful } = awaiting.remove(0);
        match owner {
            Owner::Entry(name, arch) => {
                let waiting = |open: &&mut Open| {
                    open.name == Some(name) && open.arch == arch && open.frame.is_none() && open.properties
                };
                if let Some(open) = self.stream.openings.iter_mut().find(waiting) {
                    open.frame = Some((quote, frame));
                    if doubtful {
                        open.doubt_frame();
                    }
                }
            }
            Owner::Function(name) => {
                self.flush_function();
                let ambiguous = doubtful || (name.len() > WHOLE_WRITE && self.stream.is_interleaved());
                let name = self.report.names.intern(&name);
                self.stream.function = Some(Function { name, place, frame: (quote, frame), time: None, ambiguous });
            }
            Owner::Nobody => {}
        }
    }

    /// A frame without properties before it: of the entry that waits for them, of the kernel without a name before it, or
    /// of the one that follows.
    fn orphan_frame(&mut self, quote: Quote, frame: Option<Frame>) {
        if let Some(open) = self.stream.openings.only_without_properties() {
            open.properties = true;
            open.frame = Some((quote, frame));
            return;
        }
        match self.stream.frameless.take() {
            Some(at) => {
                let kernel = &mut self.report.kernels[at];
                kernel.evidence.frame = Some(quote);
                set_frame(&mut kernel.resources, frame);
            }
            None => {
                self.finish_stray_frame();
                self.stream.stray_frame = Some((quote, frame));
            }
        }
    }

    /// A frame that nothing else came to: of a kernel or function that is known by nothing else.
    pub(super) fn finish_stray_frame(&mut self) {
        let Some((quote, frame)) = self.stream.stray_frame.take() else { return };
        let text = self.report.texts.get(quote.text).to_vec();
        self.unread(Unread::Nameless, &text, quote.place);
        let mut open = Open::new(None, None, quote.place);
        open.frame = Some((quote, frame));
        self.finish(open, None, None);
    }

    /// Gives up waiting for frames that have not come within `lines` lines.
    pub(crate) fn expire_frames(&mut self, line: u32, lines: u32) {
        let is_late = |awaiting: &mut Awaiting| awaiting.place.line.saturating_add(lines) < line;
        let streams = self.others.iter_mut().chain([&mut self.stream]);
        let late: Vec<Awaiting> =
            streams.flat_map(|stream| stream.awaiting_frame.extract_if(.., is_late).collect::<Vec<_>>()).collect();
        late.iter().for_each(|awaiting| self.lost_frame(awaiting));
    }

    /// No frame comes any more.
    pub(super) fn lose_frames(&mut self) {
        for awaiting in std::mem::take(&mut self.stream.awaiting_frame) {
            self.lost_frame(&awaiting);
        }
    }

    /// `grep ptxas` drops the line with the spills, for one; that must not look like a kernel without any.
    fn lost_frame(&mut self, awaiting: &Awaiting) {
        let (name, kernel) = match &awaiting.owner {
            Owner::Entry(name, _) => (self.report.names.get(*name), Some(*name)),
            Owner::Function(name) => (name.as_slice(), None),
            Owner::Nobody => return,
        };
        let text = [b"Function properties for ", &name[..name.len().min(MAX_QUOTE)]].concat();
        if let Some(id) = self.repeat(&text, Weight::Other, || awaiting.place) {
            let kind = MessageKind::Unread(Unread::NoFrame);
            self.keep_message(id, Message { kernel, ..Message::new(kind, id, awaiting.place) });
        }
    }

    /// The entry is complete: its frame, if it has none yet, was lost.
    pub(super) fn forget_frame_of(&mut self, open: &Open) {
        let Some(name) = open.name.filter(|_| !self.stream.awaiting_frame.is_empty()) else { return };
        let is_its = |awaiting: &mut Awaiting| awaiting.owner == Owner::Entry(name, open.arch);
        let lost: Vec<Awaiting> = self.stream.awaiting_frame.extract_if(.., is_its).collect();
        lost.iter().for_each(|awaiting| self.lost_frame(awaiting));
    }
}

/// Marks that the entry has its properties.
fn owner_of(open: &mut Open) -> Owner {
    open.properties = true;
    open.name.map_or(Owner::Nobody, |name| Owner::Entry(name, open.arch))
}
