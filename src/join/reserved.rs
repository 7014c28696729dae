//! Shared memory that the system keeps of every block, which some tools count in.

use hashbrown::HashMap;

use crate::model::{Arch, Bytes, Kernel, Report};

/// What is kept from compute capability 9.0 on. `nvlink -v` and `cuobjdump -res-usage` count it in, of kernels with shared
/// memory always, and `ptxas -v` does not; nor does `cuobjdump` of an object that is still to be linked (measured with
/// CUDA 13.5).
const RESERVED: u32 = 1024;

/// Where the parameters of a kernel start in constant bank 0 from compute capability 9.0 on; before, they start earlier.
const PARAMETERS: u32 = 528;

/// Of which records without an architecture it is known whether the system's share is counted in.
pub(super) struct Reserved {
    /// By the other records of the same log; `None` where these differ.
    of_input: HashMap<u32, Option<bool>>,
    /// By the GPUs that figures are asked for, where they agree. Where none are, the figures stand as they are printed: nothing
    /// is computed from them.
    of_gpus: Option<bool>,
}

impl Reserved {
    pub(super) fn new(report: &Report, gpus: &[Arch]) -> Reserved {
        let first = gpus.first().is_some_and(|arch| is_counted_in(*arch));
        let of_gpus = Some(first).filter(|counted| gpus.iter().all(|arch| is_counted_in(*arch) == *counted));
        let mut of_input = HashMap::new();
        if report.linked.iter().any(|linked| linked.kernel.arch.is_none()) {
            let kernels = report.kernels.iter().chain(report.linked.iter().map(|linked| &linked.kernel));
            for (arch, place) in kernels.filter_map(|kernel| Some((kernel.arch?, kernel.evidence.first()?))) {
                let counted = Some(is_counted_in(arch));
                let known = of_input.entry(place.input).or_insert(counted);
                *known = known.filter(|_| *known == counted);
            }
        }
        Reserved { of_input, of_gpus }
    }

    /// The static shared memory of `listed` without the system's share, for `arch` where that is known; `None` where it is
    /// not known whether the figure holds that share.
    pub(super) fn own_shared(&self, listed: &Kernel, arch: Option<Arch>) -> Option<Bytes> {
        let printed = listed.resources.static_shared?;
        let Some(own) = printed.get().checked_sub(RESERVED) else { return Some(printed) };
        let counted = match arch {
            Some(arch) => is_counted_in(arch),
            None if has_early_parameters(listed) => false,
            None => self.is_counted_in_log_of(listed)?,
        };
        Some(if counted { Bytes(own) } else { printed })
    }

    fn is_counted_in_log_of(&self, listed: &Kernel) -> Option<bool> {
        let input = listed.evidence.first().map(|place| place.input);
        input.and_then(|input| self.of_input.get(&input)).copied().unwrap_or(self.of_gpus)
    }
}

fn is_counted_in(arch: Arch) -> bool {
    arch.at_least(9, 0)
}

fn has_early_parameters(kernel: &Kernel) -> bool {
    let banks = kernel.resources.constant.as_deref().unwrap_or_default();
    banks.iter().any(|(bank, size)| *bank == 0 && size.get() < PARAMETERS)
}
