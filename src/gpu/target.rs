//! The limits of one compute capability, each with the place where it is published.

use std::sync::OnceLock;

use crate::model::Arch;

/// What a figure of a target can be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FigureValue {
    /// A count or a number of bytes, as the unit says.
    Number(u32),
    /// Several numbers, in rising order.
    List(Vec<u32>),
    /// Present or not.
    Flag(bool),
}

/// One figure as published: what it is, where it stands, and whether anything backs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figure {
    /// Kebab-case name, as in `rules/targets/*.toml`.
    pub key: &'static str,
    /// What it is in words.
    pub label: &'static str,
    /// Unit of the value: `threads`, `bytes`, `KiB`, …; empty for a flag.
    pub unit: &'static str,
    /// The value; `None` where nothing is published.
    pub value: Option<FigureValue>,
    /// Names of entries of [`Target::sources`] that publish it.
    pub sources: Vec<String>,
    /// True when no document or device backs the value.
    pub unverified: bool,
}

/// How a typed field is read from a TOML value.
trait Field: Sized {
    /// `None` when the value is missing or of the wrong type.
    fn read(value: Option<&toml::Value>) -> Option<Self>;
    /// The value as a report shows it.
    fn show(&self) -> Option<FigureValue>;
}

impl Field for u32 {
    fn read(value: Option<&toml::Value>) -> Option<u32> {
        u32::try_from(value?.as_integer()?).ok()
    }

    fn show(&self) -> Option<FigureValue> {
        Some(FigureValue::Number(*self))
    }
}

impl Field for Option<u32> {
    fn read(value: Option<&toml::Value>) -> Option<Option<u32>> {
        value.map_or(Some(None), |value| u32::read(Some(value)).map(Some))
    }

    fn show(&self) -> Option<FigureValue> {
        self.map(FigureValue::Number)
    }
}

impl Field for bool {
    fn read(value: Option<&toml::Value>) -> Option<bool> {
        value?.as_bool()
    }

    fn show(&self) -> Option<FigureValue> {
        Some(FigureValue::Flag(*self))
    }
}

impl Field for Vec<u32> {
    fn read(value: Option<&toml::Value>) -> Option<Vec<u32>> {
        value?.as_array()?.iter().map(|item| u32::read(Some(item))).collect()
    }

    fn show(&self) -> Option<FigureValue> {
        Some(FigureValue::List(self.clone()))
    }
}

/// Declares every figure once: field, type, key in the TOML, unit, words. The struct, its reader and the list that
/// reports print all follow from it, so a figure cannot be in one and missing from another.
macro_rules! figures {
    ($($(#[$doc:meta])* $field:ident: $type:ty = $key:literal, $unit:literal, $label:literal;)*) => {
        /// The limits of one compute capability. They belong to the device: a suffix as in `sm_90a` changes nothing.
        ///
        /// Every figure stands in `rules/targets/sm_*.toml` with its source; [`Target::figures`] lists both.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Target {
            /// The compute capability, without a suffix.
            pub arch: Arch,
            /// The family in words, as in `Ampere GA100`.
            pub family: String,
            /// Architecture names of the compiler, as in `sm_90`, `sm_90a` (from the help text of `ptxas` 13.5).
            pub names: Vec<String>,
            /// Whether `ptxas` of CUDA 13.5 compiles for it.
            pub in_ptxas_13_5: bool,
            /// What is worth knowing besides the figures.
            pub notes: Option<String>,
            /// Name and citation of each source, sorted by name.
            pub sources: Vec<(String, String)>,
            provenance: Vec<(&'static str, Vec<String>, bool)>,
            $($(#[$doc])* pub $field: $type,)*
        }

        impl Target {
            /// Reads one file of `rules/targets`; the error names what is missing or malformed.
            fn parse(text: &str) -> Result<Target, String> {
                let file: toml::Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
                let mut provenance = Vec::new();
                let limits = file.get("limits").and_then(toml::Value::as_table).ok_or("limits")?;
                $(
                    let figure = limits.get($key);
                    if let Some(figure) = figure {
                        provenance.push(($key, strings(figure.get("source")).ok_or($key)?, is_unverified(figure)));
                    }
                    let $field = <$type as Field>::read(figure.and_then(|figure| figure.get("value"))).ok_or($key)?;
                )*
                Ok(Target {
                    arch: compute_capability(string(file.get("compute-capability")).ok_or("compute-capability")?)
                        .ok_or("compute-capability")?,
                    family: string(file.get("family")).ok_or("family")?.to_owned(),
                    names: strings(file.get("names").and_then(|names| names.get("value"))).ok_or("names")?,
                    in_ptxas_13_5: bool::read(file.get("in-ptxas-13-5")).ok_or("in-ptxas-13-5")?,
                    notes: string(file.get("notes")).map(str::to_owned),
                    sources: citations(file.get("sources")).ok_or("sources")?,
                    provenance,
                    $($field,)*
                })
            }

            /// Every figure in the order of the file, with its unit and sources; what is unknown has no value.
            #[must_use]
            pub fn figures(&self) -> Vec<Figure> {
                vec![$(self.figure($key, $unit, $label, Field::show(&self.$field)),)*]
            }
        }
    };
}

figures! {
    /// Threads of a warp. Source: CUDA Programming Guide.
    warp_size: u32 = "warp-size", "threads", "warp size";
    /// Warps that an SM can hold. Source: CUDA Programming Guide, limits by compute capability.
    max_warps_per_sm: u32 = "max-warps-per-sm", "warps", "warps an SM";
    /// Threads that an SM can hold. Source: CUDA Programming Guide, limits by compute capability.
    max_threads_per_sm: u32 = "max-threads-per-sm", "threads", "threads an SM";
    /// Blocks that an SM can hold. Source: NVIDIA's occupancy header.
    max_blocks_per_sm: u32 = "max-blocks-per-sm", "blocks", "blocks an SM";
    /// Threads of the largest block. Source: CUDA Programming Guide.
    max_threads_per_block: u32 = "max-threads-per-block", "threads", "threads a block";
    /// 32-bit registers of an SM. Source: CUDA Programming Guide, limits by compute capability.
    registers_per_sm: u32 = "registers-per-sm", "registers", "registers an SM";
    /// 32-bit registers that one block may take. Source: CUDA Programming Guide, device queries.
    registers_per_block: u32 = "registers-per-block", "registers", "registers a block";
    /// Registers that the compiler gives a thread at most. Source: CUDA Programming Guide.
    max_registers_per_thread: u32 = "max-registers-per-thread", "registers", "registers a thread";
    /// Registers a thread up to which the occupancy calculation answers: one more than compilers use from 7.0 on.
    /// Source: NVIDIA's occupancy header.
    header_max_registers_per_thread: u32 =
        "header-max-registers-per-thread", "registers", "registers a thread, calculator";
    /// Registers are handed to a warp in multiples of this many. Source: NVIDIA's occupancy header.
    register_alloc_unit: u32 = "register-alloc-unit", "registers", "register unit of a warp";
    /// The launch check counts the warps of a block up to a multiple of this. Source: NVIDIA's occupancy header.
    warp_alloc_granularity: u32 = "warp-alloc-granularity", "warps", "warp unit of a block";
    /// Shared memory of an SM, bytes. Source: CUDA Programming Guide, limits by compute capability.
    shared_per_sm: u32 = "shared-per-sm", "bytes", "shared memory an SM";
    /// Shared memory that a block may take without opting in, bytes. Source: CUDA Programming Guide.
    shared_per_block_default: u32 = "shared-per-block-default", "bytes", "shared memory a block";
    /// Shared memory that a block may take after opting in, bytes. Source: CUDA Programming Guide.
    shared_per_block_optin: u32 = "shared-per-block-optin", "bytes", "shared memory a block, opt-in";
    /// Shared memory that the system takes of each block, bytes. Source: device queries, tuning guides, header.
    shared_reserved_per_block: u32 = "shared-reserved-per-block", "bytes", "shared memory reserved a block";
    /// Shared memory is handed to a block in multiples of this many bytes. Source: NVIDIA's occupancy header.
    shared_alloc_unit: u32 = "shared-alloc-unit", "bytes", "shared memory unit of a block";
    /// Sizes that the shared part of the unified cache can be set to, KiB, rising. Source: NVIDIA's occupancy header.
    shared_configs_kib: Vec<u32> = "shared-configs-kib", "KiB", "shared memory settings";
    /// Unified L1 cache and shared memory of an SM, KiB; `None` where they are apart or nothing is published.
    /// Source: CUDA Programming Guide.
    unified_l1_kib: Option<u32> = "unified-l1-kib", "KiB", "L1 cache and shared memory";
    /// Parts of an SM with a scheduler and a register file each. Source: NVIDIA's occupancy header.
    sub_partitions: u32 = "sub-partitions", "", "sub-partitions an SM";
    /// Instructions that a scheduler issues in a cycle at most. Source: technical specification tables.
    issues_per_scheduler: u32 = "issues-per-scheduler", "a cycle", "instructions a scheduler";
    /// Single-precision lanes of an SM. Source: technical specification tables.
    fp32_lanes_per_sm: u32 = "fp32-lanes-per-sm", "lanes", "FP32 lanes an SM";
    /// Double-precision results of an SM in a clock, of additions, multiplications and both in one; `None` where nothing
    /// is published, or products differ. Source: CUDA Programming Guide, and the peak rates of products.
    fp64_per_clock_per_sm: Option<u32> = "fp64-per-clock-per-sm", "a clock", "FP64 results an SM";
    /// Tensor cores of an SM. Source: technical specification tables.
    tensor_cores_per_sm: u32 = "tensor-cores-per-sm", "", "tensor cores an SM";
    /// Blocks of a cluster that runs on every device of its kind; 1 where there are no clusters. Source: tuning guides.
    max_cluster_portable: u32 = "max-cluster-portable", "blocks", "blocks a cluster, portable";
    /// Blocks of the largest cluster after opting in; 1 where there are no clusters. Source: tuning guides.
    max_cluster_non_portable: u32 = "max-cluster-non-portable", "blocks", "blocks a cluster, at most";
    /// Block barriers of an SM; they limit occupancy from 9.0 on. Source: NVIDIA's occupancy header.
    barriers_per_sm: Option<u32> = "barriers-per-sm", "barriers", "barriers an SM";
    /// Virtual resources of an SM; 0 before 10.0, which has none. Source: NVIDIA's occupancy header.
    virtual_resources_per_sm: u32 = "virtual-resources-per-sm", "", "virtual resources an SM";
    /// Whether global loads can be cached in halves of the SM, which then hold a block each.
    /// Source: NVIDIA's occupancy header.
    partitioned_caching: bool = "partitioned-caching", "", "partitioned global caching";
}

impl Target {
    fn figure(&self, key: &'static str, unit: &'static str, label: &'static str, value: Option<FigureValue>) -> Figure {
        let (sources, unverified) = self
            .provenance
            .iter()
            .find(|(name, ..)| *name == key)
            .map(|(_, sources, unverified)| (sources.clone(), *unverified))
            .unwrap_or_default();
        Figure { key, label, unit, value, sources, unverified }
    }

    /// The citation behind the name of a source.
    #[must_use]
    pub fn citation(&self, source: &str) -> Option<&str> {
        self.sources.iter().find(|(name, _)| name == source).map(|(_, text)| text.as_str())
    }

    /// The compute capability as people write it: `9.0`.
    #[must_use]
    pub fn compute_capability(&self) -> String {
        format!("{}.{}", self.arch.major, self.arch.minor)
    }

    /// Whether blocks can be grouped into clusters.
    #[must_use]
    pub fn has_clusters(&self) -> bool {
        self.max_cluster_non_portable > 1
    }

    /// Says that a figure was taken from somewhere else, such as a file with the figures of one device.
    pub(crate) fn cite(&mut self, key: &'static str, source: &str, unverified: bool) {
        let entry = (key, vec![source.to_owned()], unverified);
        match self.provenance.iter_mut().find(|(name, ..)| *name == key) {
            Some(old) => *old = entry,
            None => self.provenance.push(entry),
        }
    }

    /// The target of an architecture; `None` for one that the tables lack. A suffix does not matter.
    ///
    /// Each file is read when it is first asked for, and no other is.
    #[must_use]
    pub fn of(arch: Arch) -> Option<&'static Target> {
        let entry = FILES.iter().find(|entry| entry.arch == arch.device())?;
        Some(entry.target.get_or_init(|| {
            Target::parse(entry.text).expect("bug: an embedded target file is malformed; its test reads them all")
        }))
    }

    /// The compute capabilities that the tables hold, rising.
    pub fn known() -> impl ExactSizeIterator<Item = Arch> {
        FILES.iter().map(|entry| entry.arch)
    }

    /// The known compute capability nearest to one that is not known: the latest earlier one, else the first.
    #[must_use]
    pub fn nearest(arch: Arch) -> Arch {
        Target::known().filter(|known| *known <= arch.device()).last().unwrap_or(FILES[0].arch)
    }
}

/// Reads `9.0` or `12.1`.
#[must_use]
pub(crate) fn compute_capability(text: &str) -> Option<Arch> {
    let (major, minor) = text.split_once('.')?;
    let digits = |part: &str| (!part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit())).then_some(());
    digits(major)?;
    digits(minor)?;
    Some(Arch::new(major.parse().ok()?, minor.parse().ok()?)).filter(|arch| arch.minor <= 9)
}

fn string(value: Option<&toml::Value>) -> Option<&str> {
    value?.as_str()
}

fn strings(value: Option<&toml::Value>) -> Option<Vec<String>> {
    value?.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}

fn is_unverified(figure: &toml::Value) -> bool {
    figure.get("unverified").and_then(toml::Value::as_bool).unwrap_or(false)
}

fn citations(value: Option<&toml::Value>) -> Option<Vec<(String, String)>> {
    value?.as_table()?.iter().map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned()))).collect()
}

/// One embedded file, read when first wanted.
struct Entry {
    arch: Arch,
    text: &'static str,
    target: OnceLock<Target>,
}

macro_rules! files {
    ($(($major:literal, $minor:literal, $file:literal),)*) => {
        static FILES: [Entry; [$($file),*].len()] = [$(Entry {
            arch: Arch::new($major, $minor),
            text: include_str!(concat!("../../rules/targets/", $file, ".toml")),
            target: OnceLock::new(),
        }),*];
    };
}

files! {
    (3, 0, "sm_30"),
    (3, 2, "sm_32"),
    (3, 5, "sm_35"),
    (3, 7, "sm_37"),
    (5, 0, "sm_50"),
    (5, 2, "sm_52"),
    (5, 3, "sm_53"),
    (6, 0, "sm_60"),
    (6, 1, "sm_61"),
    (6, 2, "sm_62"),
    (7, 0, "sm_70"),
    (7, 2, "sm_72"),
    (7, 5, "sm_75"),
    (8, 0, "sm_80"),
    (8, 6, "sm_86"),
    (8, 7, "sm_87"),
    (8, 8, "sm_88"),
    (8, 9, "sm_89"),
    (9, 0, "sm_90"),
    (10, 0, "sm_100"),
    (10, 1, "sm_101"),
    (10, 3, "sm_103"),
    (10, 7, "sm_107"),
    (11, 0, "sm_110"),
    (12, 0, "sm_120"),
    (12, 1, "sm_121"),
}
