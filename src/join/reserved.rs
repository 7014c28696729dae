//! Shared memory that the system keeps of every block, which some tools count in.

use hashbrown::HashMap;

use crate::model::{Arch, Bytes, Kernel, LinkSource, Linked, Report};

/// What is kept from compute capability 9.0 on. `cuobjdump -res-usage` counts it in, of kernels with shared memory always,
/// `nvlink -v` for 9.0 alone, and `ptxas -v` does not; nor does `cuobjdump` of an object that is still to be linked (measured with
/// CUDA 13.5).
const RESERVED: u32 = 1024;

/// Where the parameters of a kernel start in constant bank 0 from compute capability 9.0 on; before, they start earlier.
const PARAMETERS: u32 = 528;

/// Of which records without an architecture it is known whether the system's share is counted in.
pub(super) struct Reserved {
    /// By the other records of the same log; `None` where these differ.
    of_input: HashMap<u32, Counted>,
    /// By the GPUs that figures are asked for, where they agree. Where none are, the figures stand as they are printed: nothing
    /// is computed from them.
    of_gpus: Counted,
}

impl Reserved {
    pub(super) fn new(report: &Report, gpus: &[Arch]) -> Reserved {
        let of_gpus = gpus.iter().map(|arch| counted_in(*arch)).reduce(agreed).unwrap_or([Some(false); 2]);
        let mut of_input: HashMap<u32, Counted> = HashMap::new();
        if report.linked.iter().any(|linked| linked.kernel.arch.is_none()) {
            let kernels = report.kernels.iter().chain(report.linked.iter().map(|linked| &linked.kernel));
            for (arch, place) in kernels.filter_map(|kernel| Some((kernel.arch?, kernel.evidence.first()?))) {
                let counted = counted_in(arch);
                of_input.entry(place.input).and_modify(|known| *known = agreed(*known, counted)).or_insert(counted);
            }
        }
        Reserved { of_input, of_gpus }
    }

    /// The static shared memory of `listed` without the system's share, for `arch` where that is known; `None` where it is
    /// not known whether the figure holds that share.
    pub(super) fn own_shared(&self, linked: &Linked, arch: Option<Arch>) -> Option<Bytes> {
        let (listed, tool) = (&linked.kernel, linked.source);
        let printed = listed.resources.static_shared?;
        let Some(own) = printed.get().checked_sub(RESERVED) else { return Some(printed) };
        let counted = match arch {
            Some(arch) => is_counted_in(arch, tool),
            None if has_early_parameters(listed) => false,
            None => self.is_counted_in_log_of(listed, tool)?,
        };
        Some(if counted { Bytes(own) } else { printed })
    }

    fn is_counted_in_log_of(&self, listed: &Kernel, tool: LinkSource) -> Option<bool> {
        let input = listed.evidence.first().map(|place| place.input);
        let of_input = input.and_then(|input| self.of_input.get(&input)).copied();
        of_input.unwrap_or(self.of_gpus)[tool as usize]
    }
}

/// For each tool whether it counts the system's share in, where that is known.
type Counted = [Option<bool>; 2];

fn counted_in(arch: Arch) -> Counted {
    [LinkSource::Nvlink, LinkSource::Cuobjdump].map(|tool| Some(is_counted_in(arch, tool)))
}

/// What is known of both.
fn agreed(one: Counted, other: Counted) -> Counted {
    [0, 1].map(|tool| one[tool].filter(|_| one[tool] == other[tool]))
}

/// nvlink counts it in for 9.0 alone (measured with nvlink 13.0, 13.3 and 13.5 on 9.0 to 12.1).
fn is_counted_in(arch: Arch, tool: LinkSource) -> bool {
    match tool {
        LinkSource::Nvlink => arch.major == 9,
        LinkSource::Cuobjdump => arch.at_least(9, 0),
    }
}

fn has_early_parameters(kernel: &Kernel) -> bool {
    let banks = kernel.resources.constant.as_deref().unwrap_or_default();
    banks.iter().any(|(bank, size)| *bank == 0 && size.get() < PARAMETERS)
}
