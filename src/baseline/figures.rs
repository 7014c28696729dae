//! The figures of one kernel that are compared from build to build.

use crate::analyse::{BlockSource, Numbers};
use crate::model::{BlockSize, Bytes, Kernel, Kind, Report, Toolkit};

/// What is written down of a kernel. What is unknown is compared with nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures {
    /// The name as people read it, or as the log has it: for people alone.
    pub name: Option<Box<str>>,
    /// Whether it is a device function, which cannot be launched.
    pub is_function: bool,
    /// Registers a thread.
    pub registers: Option<u32>,
    /// Hardware barriers a block.
    pub barriers: Option<u32>,
    /// Bytes of spill stores.
    pub spill_stores: Option<Bytes>,
    /// Bytes of spill loads.
    pub spill_loads: Option<Bytes>,
    /// Stack frame of the function itself.
    pub stack: Option<Bytes>,
    /// Stack of the kernel and everything it calls.
    pub cumulative_stack: Option<Bytes>,
    /// Static shared memory a block.
    pub static_shared: Option<Bytes>,
    /// Whether registers and shared memory are those of the linker; `None` where that is not told.
    pub linked: Option<bool>,
    /// How many records said exactly this.
    pub records: u32,
    /// The toolkit that compiled it, where that is known.
    pub toolkit: Option<Toolkit>,
    /// How it is launched, and what occupancy that gives.
    pub launches: Vec<LaunchFigures>,
}

/// A launch of a kernel on one GPU.
#[derive(Debug, Clone, PartialEq)]
pub struct LaunchFigures {
    /// The GPU.
    pub gpu: Box<str>,
    /// The block; the best one where `source` says that none is known.
    pub block: BlockSize,
    /// Where the block comes from.
    pub source: BlockSource,
    /// Dynamic shared memory, where it is told.
    pub dynamic_shared: Option<Bytes>,
    /// Active warps over those that the SM can hold.
    pub occupancy: f64,
}

impl LaunchFigures {
    /// Whether somebody told the block.
    #[must_use]
    pub fn is_told(&self) -> bool {
        self.source != BlockSource::Sweep
    }
}

/// Where barriers stand among the numbers.
const BARRIERS: usize = 5;

impl Figures {
    /// Whether nothing is known that two builds could differ in.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        let counts = [self.registers, self.barriers];
        let sizes = [self.spill_stores, self.spill_loads, self.stack, self.cumulative_stack, self.static_shared];
        counts.iter().all(Option::is_none) && sizes.iter().all(Option::is_none)
    }

    /// What is surely known of the kernel with index `at`, if there is one.
    #[must_use]
    pub fn of(report: &Report, numbers: &Numbers, at: usize) -> Option<Figures> {
        let kernel = report.kernels.get(at)?;
        let mut figures = Figures::plain(kernel);
        figures.name = kernel.name.map(|name| String::from_utf8_lossy(report.names.get(name)).into());
        figures.set_in(report, numbers, at, kernel);
        Some(figures)
    }

    /// The figures of a kernel alone: most are those of the build before, and then nothing else matters.
    #[must_use]
    pub fn plain(kernel: &Kernel) -> Figures {
        let (sure, framed) = (!kernel.ambiguous, !(kernel.ambiguous && kernel.frame_ambiguous));
        let resources = &kernel.resources;
        Figures {
            name: None,
            is_function: kernel.kind == Kind::Function,
            registers: resources.registers.filter(|_| sure),
            barriers: resources.barriers.filter(|_| sure),
            spill_stores: resources.spill_stores.filter(|_| framed),
            spill_loads: resources.spill_loads.filter(|_| framed),
            stack: resources.stack.filter(|_| framed),
            // A bound that the compiler does not know is no figure.
            cumulative_stack: resources.cumulative_stack.filter(|_| sure && !kernel.unbounded_stack),
            static_shared: resources.static_shared.filter(|_| sure),
            linked: Some(kernel.linked),
            records: kernel.records.max(1),
            toolkit: None,
            launches: Vec::new(),
        }
    }

    /// Adds what the run knows of the kernel beside its figures.
    pub fn set_in(&mut self, report: &Report, numbers: &Numbers, at: usize, kernel: &Kernel) {
        self.toolkit = toolkit(report, kernel);
        self.launches = launches(numbers, at, kernel);
    }

    /// Whether any figure is.
    #[must_use]
    pub fn is_known(&self) -> bool {
        let known = [self.registers.is_some(), self.spill().is_some(), self.stack().is_some()];
        known.contains(&true) || self.static_shared.is_some()
    }

    /// Bytes of spill stores and loads together.
    #[must_use]
    pub fn spill(&self) -> Option<u64> {
        match (self.spill_stores, self.spill_loads) {
            (None, None) => None,
            (stores, loads) => Some([stores, loads].into_iter().flatten().map(|bytes| u64::from(bytes.get())).sum()),
        }
    }

    /// The larger stack that is told.
    #[must_use]
    pub fn stack(&self) -> Option<Bytes> {
        self.stack.max(self.cumulative_stack)
    }

    /// The figures alone, whatever was said of launches, toolkits and copies: what is equal here is equal.
    #[must_use]
    pub fn numbers(&self) -> [Option<u32>; 6] {
        let bytes = |size: Option<Bytes>| size.map(Bytes::get);
        [
            bytes(self.spill_stores),
            bytes(self.spill_loads),
            self.registers,
            bytes(self.stack()),
            bytes(self.static_shared),
            self.counted_barriers(),
        ]
    }

    /// Whether the figures differ. Barriers that only one of two toolkits tells are no difference.
    #[must_use]
    pub fn differs_from(&self, other: &Figures) -> bool {
        let (mut one, mut two) = (self.numbers(), other.numbers());
        if one[BARRIERS].is_none() || two[BARRIERS].is_none() {
            (one[BARRIERS], two[BARRIERS]) = (None, None);
        }
        one != two
    }

    /// Hardware barriers, where the compiler could count them.
    #[must_use]
    pub fn counted_barriers(&self) -> Option<u32> {
        self.barriers.filter(|count| *count < 16)
    }

    /// Whether registers and shared memory are comparable: those of the linker and of ptxas are different figures.
    #[must_use]
    pub fn is_alike(&self, other: &Figures) -> bool {
        self.linked.zip(other.linked).is_none_or(|(one, two)| one == two) && self.is_function == other.is_function
    }

    /// The worst of each figure; what one of them does not tell is unknown of all.
    #[must_use]
    pub fn worst<'f>(all: impl IntoIterator<Item = &'f Figures>) -> Option<Figures> {
        let mut all = all.into_iter();
        let first = all.next()?.clone();
        Some(all.fold(first, |mut worst, one| {
            fn larger<T: Ord>(one: Option<T>, two: Option<T>) -> Option<T> {
                one.zip(two).map(|(one, two)| one.max(two))
            }
            let alike = worst.is_alike(one);
            worst.registers = larger(worst.registers, one.registers).filter(|_| alike);
            worst.barriers = larger(worst.barriers, one.barriers).filter(|_| alike);
            worst.spill_stores = larger(worst.spill_stores, one.spill_stores);
            worst.spill_loads = larger(worst.spill_loads, one.spill_loads);
            worst.stack = larger(worst.stack, one.stack);
            worst.cumulative_stack = larger(worst.cumulative_stack, one.cumulative_stack);
            worst.static_shared = larger(worst.static_shared, one.static_shared).filter(|_| alike);
            worst.records = worst.records.saturating_add(one.records);
            worst.toolkit = worst.toolkit.filter(|toolkit| Some(*toolkit) == one.toolkit);
            worst
        }))
    }
}

/// The toolkit that compiled a kernel, as far as its input tells.
fn toolkit(report: &Report, kernel: &Kernel) -> Option<Toolkit> {
    let usage = kernel.evidence.usage.map(|quote| quote.place);
    let place = usage.or_else(|| kernel.evidence.first())?;
    report.inputs.get(place.input as usize)?.toolkit
}

fn launches(numbers: &Numbers, at: usize, kernel: &Kernel) -> Vec<LaunchFigures> {
    if kernel.ambiguous {
        return Vec::new();
    }
    let one = |judged: &crate::analyse::Judged| LaunchFigures {
        gpu: numbers.gpu(judged).name.as_str().into(),
        block: judged.block,
        source: judged.source,
        dynamic_shared: Some(judged.launch.dynamic_shared).filter(|size| !size.is_zero()),
        occupancy: judged.occupancy.fraction(),
    };
    numbers.of(at).map(one).collect()
}
