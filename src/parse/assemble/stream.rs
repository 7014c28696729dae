//! What is under way in one stream of records: the output of one job, where lines say whose they are, else of all.

use super::frames::Awaiting;
use super::link::Listing;
use super::open::Openings;
use crate::model::{Arch, NameId, Place, Quote};
use crate::parse::usage::{Frame, Usage};

/// Streams that are told apart at one time; the one that was silent longest ends when there are more.
pub(super) const MAX_STREAMS: usize = 64;

/// The stream of lines without a mark.
pub(crate) const UNMARKED: u32 = 0;

/// One stream.
#[derive(Default)]
pub(super) struct Stream {
    pub(super) id: u32,
    pub(super) openings: Openings,
    /// `Function properties` lines whose frame is still to come.
    pub(super) awaiting_frame: Vec<Awaiting>,
    /// Linker properties whose figures are still to come.
    pub(super) awaiting_link: Vec<(NameId, Option<Arch>, Place)>,
    pub(super) listing: Listing,
    pub(super) function: Option<Function>,
    /// A frame whose name was cut off.
    pub(super) stray_frame: Option<(Quote, Option<Frame>)>,
    /// A kernel without a name that has no frame yet.
    pub(super) frameless: Option<usize>,
    pub(super) times: Times,
    bursts: Vec<Burst>,
    /// The ptxas run in which each kernel was reported, for device functions whose architecture is still open.
    undated: Vec<(usize, usize)>,
    interleaved: bool,
    /// Entries have properties here.
    pub(super) has_properties: bool,
}

/// A device function; it turns out to be a kernel when a `Used` line follows though no entry is open.
pub(super) struct Function {
    pub(super) name: NameId,
    pub(super) place: Place,
    pub(super) frame: (Quote, Option<Frame>),
    pub(super) time: Option<f64>,
    pub(super) ambiguous: bool,
}

/// One run of ptxas.
#[derive(Default)]
struct Burst {
    arch: Option<Arch>,
    mixed: bool,
    /// A device function came before the first entry.
    leading_function: bool,
    /// Its entries have a count of barriers, as from 12.6 on.
    barriers: bool,
    /// One of its entries has a cumulative stack.
    cumulative: bool,
}

impl Stream {
    pub(super) fn new(id: u32) -> Stream {
        Stream { id, bursts: vec![Burst::default()], ..Stream::default() }
    }

    pub(super) fn is_interleaved(&self) -> bool {
        self.interleaved
    }

    /// A new run of ptxas reports.
    pub(super) fn begin_burst(&mut self) {
        self.bursts.push(Burst::default());
    }

    /// An entry for `arch` is reported.
    pub(super) fn note_entry(&mut self, arch: Option<Arch>) {
        if let (Some(burst), Some(arch)) = (self.bursts.last_mut(), arch) {
            burst.mixed |= burst.arch.is_some_and(|known| known != arch);
            burst.arch = Some(arch);
            self.interleaved |= burst.mixed;
        }
        self.interleaved |= !self.openings.is_empty();
    }

    /// A time that is no kernel's: that of the function at hand, if no other can have come between.
    pub(super) fn time_function(&mut self, ms: f64) -> bool {
        let Some(function) = &mut self.function else { return false };
        self.interleaved |= function.time.is_some();
        function.time = Some(ms).filter(|_| !self.interleaved);
        true
    }

    /// The ptxas run at hand: its architecture, and, while it has none, a number that tells it from others.
    pub(super) fn burst(&self) -> (Option<Arch>, u32) {
        let number = u32::try_from(self.bursts.len()).unwrap_or(u32::MAX);
        (self.bursts.last().and_then(|burst| burst.arch), number ^ self.id.rotate_right(8))
    }

    /// Figures of an entry of the ptxas run at hand.
    pub(super) fn note_figures(&mut self, usage: &Usage) {
        if let Some(burst) = self.bursts.last_mut() {
            burst.barriers |= usage.barriers.is_some();
            burst.cumulative |= usage.cumulative_stack.is_some();
        }
    }

    /// Whether the ptxas run at hand, which ends, compiled for a later link: then, and in none but older releases
    /// otherwise, device functions come before entries, and no stack is cumulative.
    pub(super) fn is_separate(&self) -> bool {
        let separate = |burst: &Burst| burst.leading_function && burst.barriers && !burst.cumulative;
        !self.interleaved && self.bursts.last().is_some_and(separate)
    }

    /// The architecture of the function at `kernel` is told when the stream ends.
    pub(super) fn date_later(&mut self, kernel: usize) {
        if let Some(burst) = self.bursts.last_mut() {
            burst.leading_function |= burst.arch.is_none();
        }
        self.undated.push((kernel, self.bursts.len() - 1));
    }

    /// ptxas prints no architecture for device functions. It is that of the entries of the same run; where output is
    /// interleaved, runs cannot be told apart and it is known only if the whole stream has one.
    pub(super) fn dated_functions(&mut self) -> Vec<(usize, Option<Arch>)> {
        let mut archs = self.bursts.iter().filter_map(|burst| burst.arch);
        let only = archs
            .next()
            .filter(|first| archs.all(|other| other == *first) && !self.bursts.iter().any(|burst| burst.mixed));
        let of_burst = |burst: &Burst| burst.arch.filter(|_| !burst.mixed);
        let arch = |burst: usize| if self.interleaved { only } else { of_burst(&self.bursts[burst]) };
        std::mem::take(&mut self.undated).into_iter().map(|(kernel, burst)| (kernel, arch(burst))).collect()
    }
}

/// Compile times name nobody either. One is given to a kernel only if no other could have had it.
#[derive(Default)]
pub(super) struct Times {
    /// Kernels whose time is still to come.
    pending: usize,
    /// The one of them, where there has been only one since none was pending.
    only: Option<usize>,
    /// The one whose time came last.
    given: Option<usize>,
}

impl Times {
    /// A time is to come, of `kernel` if that is known.
    pub(super) fn expect(&mut self, kernel: Option<usize>) {
        self.pending += 1;
        self.only = kernel.filter(|_| self.pending == 1);
    }

    pub(super) fn none_is_pending(&self) -> bool {
        self.pending == 0
    }

    /// The kernel whose time this one is.
    pub(super) fn take(&mut self) -> Option<usize> {
        self.pending = self.pending.saturating_sub(1);
        self.given = self.only.take();
        self.given
    }

    /// The kernel whose time came last, once.
    pub(super) fn retract(&mut self) -> Option<usize> {
        self.given.take()
    }
}
