//! Which entry the figures belong to when several entries wait for theirs: ptxas prints figures without a name, and
//! several compilers may write into one log.
//!
//! Figures that fit one open entry only are its own. Others wait beside the entries that they may belong to, until there
//! are as many of them as entries: then all of these are taken. Equal figures are no question of whose is whose; of
//! unequal ones those that one elimination after the other leaves open make their entries ambiguous.

use std::sync::Arc;

use crate::model::{Arch, NameId, Place, Quote};
use crate::parse::usage::{Frame, Usage};

/// Entries that wait for their figures at one time; more than any build runs jobs. The oldest is given up.
pub(super) const MAX_OPEN: usize = 256;

/// Entries in doubt at one time; with more the doubt is given up and said.
const MAX_DOUBT: usize = 32;

/// An entry whose figures are not complete.
pub(super) struct Open {
    pub(super) name: Option<NameId>,
    pub(super) arch: Option<Arch>,
    pub(super) place: Place,
    pub(super) properties: bool,
    pub(super) frame: Option<(Quote, Option<Frame>)>,
    /// An entry of the same name was open when the properties came: they may be its.
    twin: bool,
    pub(super) ambiguous: bool,
    /// If its figures may be another's, so may its frame: it had a twin.
    pub(super) frame_doubt: bool,
    /// Its bit in the sets of [`Waiting::candidates`], while figures wait that may be its own.
    bit: u32,
}

/// Figures that may belong to any of several entries.
struct Waiting {
    figures: Figures,
    /// A set of bits of [`Open::bit`].
    candidates: u32,
}

/// A `Used` record.
#[derive(Clone)]
pub(super) struct Figures {
    pub(super) quote: Quote,
    pub(super) usage: Arc<Usage>,
    pub(super) cut: bool,
}

impl Figures {
    fn says_the_same(&self, other: &Figures) -> bool {
        self.quote.text == other.quote.text && self.cut == other.cut
    }
}

/// All open entries of one stream, oldest first.
#[derive(Default)]
pub(super) struct Openings {
    open: Vec<Open>,
    waiting: Vec<Waiting>,
    /// Figures for which no entry was left.
    pub(super) orphans: Vec<Figures>,
}

/// An entry with its figures.
pub(super) type Complete = (Open, Figures);

impl Open {
    pub(super) fn new(name: Option<NameId>, arch: Option<Arch>, place: Place) -> Open {
        Open {
            name,
            arch,
            place,
            properties: false,
            frame: None,
            twin: false,
            ambiguous: false,
            frame_doubt: false,
            bit: 0,
        }
    }
}

impl Open {
    /// Its frame may be another's, and so may its figures.
    pub(super) fn doubt_frame(&mut self) {
        self.ambiguous = true;
        self.frame_doubt = true;
    }
}

impl Openings {
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Nothing is open, and no figures wait.
    pub(super) fn is_idle(&self) -> bool {
        self.open.is_empty() && self.waiting.is_empty() && self.orphans.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.open.len() >= MAX_OPEN
    }

    pub(super) fn push(&mut self, open: Open) {
        self.open.push(open);
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Open> {
        self.open.iter_mut()
    }

    /// Takes the one entry that has no properties yet and fits; newest first, as it nearly always is the newest.
    pub(super) fn expecting_properties(&mut self, fits: impl Fn(&Open) -> bool) -> Option<&mut Open> {
        let at = self.open.iter().rposition(|open| !open.properties && fits(open))?;
        let name = self.open[at].name;
        let twins = |open: &Open| !open.properties && open.name == name;
        if self.open.len() > 1 && self.open.iter().filter(|open| twins(open)).count() > 1 {
            self.open.iter_mut().filter(|open| twins(open)).for_each(|open| {
                open.twin = true;
                open.frame_doubt = true;
            });
        }
        Some(&mut self.open[at])
    }

    /// The one open entry, if its properties have not come.
    pub(super) fn only_without_properties(&mut self) -> Option<&mut Open> {
        match self.open.as_mut_slice() {
            [only] if !only.properties && only.frame.is_none() => Some(only),
            _ => None,
        }
    }

    /// Whether an entry without properties fits.
    pub(super) fn expects(&self, fits: impl Fn(&Open) -> bool) -> bool {
        self.open.iter().any(|open| !open.properties && fits(open))
    }

    /// Whether exactly one entry without properties fits.
    pub(super) fn is_the_only(&self, fits: impl Fn(&Open) -> bool) -> bool {
        self.open.iter().filter(|open| !open.properties && fits(open)).count() == 1
    }

    /// Takes figures in. Of the entries that they complete, the last one's figures are these when `true` comes with them.
    pub(super) fn take(&mut self, figures: Figures, complete: &mut Vec<Complete>) -> bool {
        if self.open.len() == 1 && self.waiting.is_empty() {
            complete.push((self.open.remove(0), figures));
            return true;
        }
        let candidates = self.candidates(&figures.usage);
        if let [at] = candidates[..] {
            let open = self.remove(at);
            complete.push((open, figures));
            self.settle(complete);
            // The one that was taken now must be the last.
            let last = complete.len() - 1;
            complete.swap(0, last);
            return true;
        }
        if candidates.len() > MAX_DOUBT || !self.give_bits(&candidates) {
            self.take_by_force(figures, complete);
            return false;
        }
        let candidates = candidates.iter().fold(0, |set, at| set | self.open[*at].bit);
        self.waiting.push(Waiting { figures, candidates });
        self.settle(complete);
        false
    }

    /// Too much is in doubt to wait for more.
    fn take_by_force(&mut self, figures: Figures, complete: &mut Vec<Complete>) {
        self.give_up(complete);
        let candidates = self.candidates(&figures.usage);
        if candidates.len() > 1 {
            candidates.iter().for_each(|at| self.open[*at].ambiguous = true);
        }
        match candidates.first() {
            Some(at) => complete.push((self.remove(*at), figures)),
            None => self.orphans.push(figures),
        }
    }

    /// Positions of the entries that `usage` may belong to.
    fn candidates(&self, usage: &Usage) -> Vec<usize> {
        let mut candidates: Vec<usize> = (0..self.open.len()).collect();
        let mut narrow = |fits: &dyn Fn(&Open) -> bool| {
            if candidates.iter().any(|at| fits(&self.open[*at])) {
                candidates.retain(|at| fits(&self.open[*at]));
            }
        };
        // Figures come after properties, where the tool prints any.
        narrow(&|open| self.frame_of(open).is_some());
        // From sm_90 on ptxas lists no constant banks; from sm_20 to then, always.
        narrow(&|open| match open.arch {
            Some(arch) if arch.at_least(9, 0) => usage.constant.is_empty(),
            Some(arch) if arch.at_least(2, 0) => !usage.constant.is_empty(),
            _ => true,
        });
        // A stack holds at least the frame of its kernel, where that is sure.
        narrow(&|open| match (usage.cumulative_stack, open.frame) {
            (Some(whole), Some((_, Some(frame)))) if !open.twin && !open.ambiguous => {
                frame.stack.is_none_or(|stack| stack <= whole)
            }
            _ => true,
        });
        candidates
    }

    /// The frame that is its own or, as far as one can tell, that of an entry of the same name.
    fn frame_of<'a>(&'a self, open: &'a Open) -> Option<&'a (Quote, Option<Frame>)> {
        open.frame.as_ref().or_else(|| {
            let twins = self.open.iter().filter(|other| open.twin && other.twin && other.name == open.name);
            twins.filter_map(|other| other.frame.as_ref()).next()
        })
    }

    /// False when there are no bits left.
    fn give_bits(&mut self, entries: &[usize]) -> bool {
        for at in entries {
            if self.open[*at].bit == 0 {
                let used = self.open.iter().fold(0, |set, open| set | open.bit);
                let Some(free) = 1_u32.checked_shl(used.trailing_ones()) else { return false };
                self.open[*at].bit = free;
            }
        }
        true
    }

    /// Takes an entry out, and out of the doubts about others.
    fn remove(&mut self, at: usize) -> Open {
        let mut open = self.open.remove(at);
        for waiting in &mut self.waiting {
            waiting.candidates &= !open.bit;
        }
        open.bit = 0;
        if open.twin {
            self.settle_twins(&mut open);
        }
        open
    }

    /// `taken` gets its figures now, so a frame of its name that was printed is its own.
    fn settle_twins(&mut self, taken: &mut Open) {
        let name = taken.name;
        let twins = |open: &&mut Open| open.twin && open.name == name;
        if taken.frame.is_none()
            && let Some(other) = self.open.iter_mut().filter(twins).find(|open| open.frame.is_some())
        {
            std::mem::swap(&mut taken.frame, &mut other.frame);
            std::mem::swap(&mut taken.properties, &mut other.properties);
        }
        let own = taken.frame.map(|(quote, _)| quote.text);
        let differs = |open: &&mut Open| open.frame.is_some_and(|(quote, _)| Some(quote.text) != own);
        for other in self.open.iter_mut().filter(twins).filter(differs) {
            other.doubt_frame();
            taken.doubt_frame();
        }
        if self.open.iter_mut().filter(twins).count() == 1 {
            self.open.iter_mut().filter(twins).for_each(|open| open.twin = false);
        }
    }

    /// Gives figures that wait to entries as far as it is certain that all of these are complete.
    fn settle(&mut self, complete: &mut Vec<Complete>) {
        while let Some(set) = self.tight_set() {
            self.settle_set(set, complete);
        }
        if self.waiting.is_empty() {
            self.open.iter_mut().for_each(|open| open.bit = 0);
        }
    }

    /// Candidates that are as many as the figures that can be of no other entry.
    fn tight_set(&self) -> Option<u32> {
        let within = |set: u32| self.waiting.iter().filter(move |waiting| waiting.candidates & !set == 0).count();
        let all = self.waiting.iter().fold(0, |set, waiting| set | waiting.candidates);
        let sets = self.waiting.iter().map(|waiting| waiting.candidates);
        sets.chain([all]).find(|set| *set != 0 && within(*set) >= set.count_ones() as usize)
    }

    fn settle_set(&mut self, set: u32, complete: &mut Vec<Complete>) {
        let (inside, outside): (Vec<Waiting>, Vec<Waiting>) =
            std::mem::take(&mut self.waiting).into_iter().partition(|waiting| waiting.candidates & !set == 0);
        self.waiting = outside;
        let equal = inside.iter().all(|one| one.figures.says_the_same(&inside[0].figures));
        let mut doubts = inside;
        let mut rest = set;
        if !equal {
            self.eliminate(&mut doubts, &mut rest, complete);
        }
        let doubtful = !equal && doubts.iter().any(|one| !one.figures.says_the_same(&doubts[0].figures));
        self.give_in_order(doubts, rest, doubtful, complete);
    }

    /// Pairs that leave no choice: figures with one candidate, or an entry that only one of the figures may belong to.
    fn eliminate(&mut self, doubts: &mut Vec<Waiting>, rest: &mut u32, complete: &mut Vec<Complete>) {
        while let Some((at, bit)) = forced_pair(doubts, *rest) {
            let one = doubts.remove(at);
            *rest &= !bit;
            doubts.iter_mut().for_each(|other| other.candidates &= !bit);
            self.give(bit, one.figures, false, complete);
        }
    }

    fn give_in_order(&mut self, doubts: Vec<Waiting>, mut rest: u32, doubtful: bool, complete: &mut Vec<Complete>) {
        for one in doubts {
            let fitting = one.candidates & rest;
            let choice = if fitting == 0 { rest } else { fitting };
            let Some(bit) = self.oldest_of(choice) else {
                self.orphans.push(one.figures);
                continue;
            };
            rest &= !bit;
            self.give(bit, one.figures, doubtful, complete);
        }
    }

    fn oldest_of(&self, set: u32) -> Option<u32> {
        self.open.iter().map(|open| open.bit).find(|bit| bit & set != 0)
    }

    fn give(&mut self, bit: u32, figures: Figures, doubtful: bool, complete: &mut Vec<Complete>) {
        let Some(at) = self.open.iter().position(|open| open.bit == bit) else { return };
        let mut open = self.remove(at);
        open.ambiguous |= doubtful;
        complete.push((open, figures));
    }

    /// Gives all figures that wait to some entry, and says of all that it may be another.
    fn give_up(&mut self, complete: &mut Vec<Complete>) {
        let waiting = std::mem::take(&mut self.waiting);
        let all = waiting.iter().fold(0, |set, one| set | one.candidates);
        self.open.iter_mut().filter(|open| open.bit & all != 0).for_each(|open| open.ambiguous = true);
        self.give_in_order(waiting, all, true, complete);
        self.open.iter_mut().for_each(|open| open.bit = 0);
    }

    /// Gives up every doubt; the entries that are left have no figures. Figures without an entry are none.
    pub(super) fn finish(&mut self, complete: &mut Vec<Complete>) -> Vec<Open> {
        self.give_up(complete);
        std::mem::take(&mut self.open)
    }

    /// Takes the entry that has waited longest, of those with a frame where there are any.
    pub(super) fn take_oldest(&mut self, with_frame: bool, complete: &mut Vec<Complete>) -> Option<Open> {
        self.give_up(complete);
        let framed = self.open.iter().position(|open| with_frame && open.frame.is_some());
        let at = framed.unwrap_or(0);
        (!self.open.is_empty()).then(|| self.remove(at))
    }
}

/// Figures, by position, and the bit of the one entry that is theirs.
fn forced_pair(doubts: &[Waiting], rest: u32) -> Option<(usize, u32)> {
    if let Some(at) = doubts.iter().position(|one| one.candidates.count_ones() == 1) {
        return Some((at, doubts[at].candidates));
    }
    let bits = (0..u32::BITS).map(|shift| 1_u32 << shift).filter(|bit| rest & bit != 0);
    for bit in bits {
        let mut fitting = doubts.iter().enumerate().filter(|(_, one)| one.candidates & bit != 0);
        if let (Some((at, _)), None) = (fitting.next(), fitting.next()) {
            return Some((at, bit));
        }
    }
    None
}
