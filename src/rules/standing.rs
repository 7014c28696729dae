//! Kernels whose figures are judged mildly, or not at all: tensor-core work, library code, builds for debugging.

use hashbrown::HashSet;

use super::{Context, debug_build};
use crate::finding::Level;
use crate::model::{Kernel, MessageKind, NameId, Place};

/// The namespaces of libraries whose kernels are not the user's to tune, mangled and as people write them.
const LIBRARIES: [&str; 6] =
    ["_ZN3cub", "_ZN6thrust", "_ZN7cutlass9reference", "cub::", "thrust::", "cutlass::reference::"];

/// What is known of the kernels of a report beside their figures.
pub(super) struct Standing {
    /// For each input whether its device code is built for debugging.
    debug: Vec<bool>,
    /// Kernels whose PTX has instructions of the tensor cores, or that an advisory on wgmma or setmaxnreg names.
    tensor: HashSet<NameId>,
}

impl Standing {
    pub(super) fn of(context: &Context<'_>) -> Standing {
        use MessageKind::{Setmaxnreg, WgmmaInjected, WgmmaSerialized};
        let advisories = context.messages_of(|kind| matches!(kind, WgmmaSerialized | WgmmaInjected | Setmaxnreg));
        let functions = context.report.modules.iter().flat_map(|module| &module.functions);
        let seen = functions.filter(|function| function.tensor).map(|function| function.name);
        Standing {
            debug: debug_build::inputs(context),
            tensor: advisories.filter_map(|(_, message)| message.kernel).chain(seen).collect(),
        }
    }

    /// Whether figures that were printed at `place` are those of optimised code, as far as the input tells.
    pub(super) fn is_optimised(&self, place: Option<Place>) -> bool {
        !place.is_some_and(|place| self.debug.get(place.input as usize).copied().unwrap_or(false))
    }

    /// The loudest that a finding on the kernel's occupancy may be; `None` where there is to be none.
    pub(super) fn cap(&self, context: &Context<'_>, kernel: &Kernel) -> Option<Level> {
        if !self.is_optimised(kernel.evidence.first()) {
            return None;
        }
        let by_design = kernel.name.is_some_and(|name| self.tensor.contains(&name) || is_library(context, name));
        Some(if by_design { Level::Note } else { Level::Deny })
    }
}

fn is_library(context: &Context<'_>, name: NameId) -> bool {
    let name = context.report.names.get(name);
    let name = name.strip_prefix(b"void ").unwrap_or(name);
    LIBRARIES.iter().any(|library| name.starts_with(library.as_bytes()))
}

/// Whether the name is that of code which the CUDA device runtime brings with it.
pub(super) fn is_device_runtime(name: &[u8]) -> bool {
    name.starts_with(b"__nv_static_") && memchr::memmem::find(name, b"_cuda_device_runtime_").is_some()
}

/// Whether the kernel stores or loads spilled registers.
pub(super) fn spills(kernel: &Kernel) -> bool {
    kernel.resources.spill_stores.max(kernel.resources.spill_loads).is_some_and(|bytes| !bytes.is_zero())
}

#[cfg(test)]
mod tests {
    use crate::rules::records::{named, record};
    use crate::rules::testing::lint;

    #[test]
    fn kernels_of_libraries_get_a_note_at_most() {
        for name in [
            "_ZN3cub21CUB_200302_800_900_NS18DeviceRadixSortKerEPf",
            "_ZN6thrust24THRUST_200302_800_900_NS4scanEPf",
            "_ZN7cutlass9reference6device4GemmEPf",
            "void cub::Kernel<int>(int*)",
        ] {
            let found = lint(&named(name, "sm_80", "128 registers"), &["--block", "256"]).concat();
            assert!(found.starts_with("note[register-limited-occupancy]"), "{name}: {found}");
        }
        // A library's type among the template arguments makes no library kernel.
        let own = named("_Z1kIN3cub3SumEEvPf", "sm_80", "128 registers");
        assert!(lint(&own, &["--block", "256"]).concat().starts_with("warning["));
    }

    #[test]
    fn kernels_of_the_device_runtime_have_no_findings() {
        let name = "__nv_static_51__0afad4c0_22_cuda_device_runtime_cu_f78b5b52_735892__Z16memcpy_3d_deviceIjEvT_";
        let log = named(name, "sm_80", "128 registers").replace("0 bytes spill stores", "8 bytes spill stores");
        assert!(lint(&log, &["--block", "256"]).is_empty());
    }

    #[test]
    fn a_kernel_that_an_advisory_on_tensor_cores_names_gets_a_note_at_most() {
        let advisory = "ptxas info    : (C7519) warpgroup.arrive is injected in around line 29 by compiler to allow use of registers in GMMA in function 'k'\n";
        let log = format!("{advisory}{}", record("sm_90a", "168 registers"));
        let found: Vec<String> =
            lint(&log, &["--block", "384"]).into_iter().filter(|l| l.contains("occupancy]")).collect();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("note[register-limited-occupancy]"), "{found:?}");
    }

    #[test]
    fn code_built_for_debugging_is_not_judged_by_its_figures() {
        let log = format!("nvcc -G -c a.cu\n{}", record("sm_80", "128 registers, 105000 bytes smem"))
            .replace("0 bytes stack frame", "800 bytes stack frame");
        let found = lint(&log, &["--block", "256"]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("warning[debug-build]"), "{found:?}");
        let spilling = log.replace("0 bytes spill stores", "8 bytes spill stores");
        assert_eq!(lint(&spilling, &["--block", "256"]), found);
    }
}
