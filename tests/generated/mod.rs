//! Kernels made up at random, and printed as ptxas prints them in each era.

use proptest::prelude::*;
use proptest::sample::select;

/// Which items and records a release prints.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Era {
    /// The CUDA release.
    pub(crate) release: &'static str,
    pub(crate) properties: bool,
    /// Memory is declared plus system memory, as `52+16 bytes smem`.
    pub(crate) plus: bool,
    pub(crate) barriers: bool,
    pub(crate) cumulative: bool,
    pub(crate) times: bool,
}

const OLDEST: Era =
    Era { release: "2", properties: false, plus: true, barriers: false, cumulative: false, times: false };
const MIDDLE: Era = Era { release: "11.8", properties: true, plus: false, ..OLDEST };
const NEWEST: Era = Era { release: "13.5", barriers: true, cumulative: true, times: true, ..MIDDLE };

/// What was printed when, from the oldest on.
pub(crate) const ERAS: [Era; 10] = [
    OLDEST,
    Era { release: "4", properties: true, ..OLDEST },
    Era { release: "10", cumulative: true, ..MIDDLE },
    MIDDLE,
    Era { release: "12.0", ..MIDDLE },
    Era { release: "12.4", cumulative: true, ..MIDDLE },
    Era { release: "12.6", times: false, ..NEWEST },
    Era { release: "12.9", ..NEWEST },
    Era { release: "13.0", ..NEWEST },
    NEWEST,
];

/// A kernel with the figures that its log tells.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Made {
    pub(crate) name: String,
    pub(crate) arch: String,
    pub(crate) registers: u32,
    pub(crate) barriers: u32,
    pub(crate) stack: u32,
    pub(crate) stores: u32,
    pub(crate) loads: u32,
    pub(crate) callees: u32,
    pub(crate) shared: u32,
    pub(crate) constant: Vec<(u8, u32)>,
    pub(crate) textures: u32,
    pub(crate) time: u32,
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "_Z[1-9][a-zA-Z_]{1,30}I[a-zA-Z0-9_]{0,90}E[a-zA-Z_]{1,20}",
        "[a-z_][a-z0-9_]{0,40}",
        "void [a-z]{1,9}<[a-z0-9, ]{1,20}::'lambda'\\(int\\)>\\([a-z]{1,8}, [a-z&*]{1,9}\\)",
    ]
}

/// A kernel for one of `archs`.
pub(crate) fn kernel(archs: &'static [&'static str]) -> impl Strategy<Value = Made> {
    let figures = (1_u32..256, 0_u32..17, 0_u32..5000, 0_u32..3000, 0_u32..3000, prop_oneof![Just(0), 1_u32..600]);
    let more = (prop_oneof![Just(0), 1_u32..99999], prop::option::of(1_u32..999), 0_u32..4, 0_u32..999_999);
    (name(), select(archs), figures, more).prop_map(|(name, arch, figures, (shared, bank, textures, time))| {
        let (registers, barriers, stack, stores, loads, callees) = figures;
        let own = |own: u8| bank.map(|size| (own, size));
        let constant = match number(arch) {
            ..20 => own(1).into_iter().collect(),
            20..90 => [(0, 352)].into_iter().chain(own(2)).collect(),
            _ => Vec::new(),
        };
        Made {
            name,
            arch: arch.to_owned(),
            registers,
            barriers,
            stack,
            stores,
            loads,
            callees,
            shared,
            constant,
            textures,
            time,
        }
    })
}

/// 90 of `sm_90a`.
fn number(arch: &str) -> u32 {
    arch.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(u32::MAX)
}

impl Made {
    /// Shared memory that the system takes of each block, where ptxas counts it.
    fn system(&self, era: Era) -> u32 {
        if era.plus && number(&self.arch) < 20 { 16 } else { 0 }
    }

    /// Local memory, where ptxas still counts it apart from the stack.
    fn local(&self, era: Era) -> Option<u32> {
        (era.plus && self.stack > 0).then_some(self.stack)
    }

    /// The records that ptxas writes, each of one or two lines.
    pub(crate) fn records(&self, era: Era) -> Vec<String> {
        let mut records =
            vec![format!("ptxas info    : Compiling entry function '{}' for '{}'\n", self.name, self.arch)];
        if era.properties {
            records.push(format!(
                "ptxas info    : Function properties for {}\n    {} bytes stack frame, {} bytes spill stores, {} bytes spill loads\n",
                self.name, self.stack, self.stores, self.loads
            ));
        }
        records.push(format!("ptxas info    : {}\n", self.used(era)));
        if era.times {
            records.push(format!("ptxas info    : Compile time = {}.{:03} ms\n", self.time / 1000, self.time % 1000));
        }
        records
    }

    fn used(&self, era: Era) -> String {
        let mut items = vec![format!("Used {} registers", self.registers)];
        if era.barriers {
            items.push(format!("used {} barriers", self.barriers));
        }
        if let Some(size) = self.cumulative(era) {
            items.push(format!("{size} bytes cumulative stack size"));
        }
        if let Some(size) = self.local(era) {
            items.push(format!("{size}+0 bytes lmem"));
        }
        if self.shared + self.system(era) > 0 {
            let system = if era.plus { format!("+{}", self.system(era)) } else { String::new() };
            items.push(format!("{}{system} bytes smem", self.shared));
        }
        items.extend(self.constant.iter().map(|(bank, size)| format!("{size} bytes cmem[{bank}]")));
        if self.textures > 0 {
            items.push(format!("{} textures", self.textures));
        }
        items.join(", ")
    }

    fn cumulative(&self, era: Era) -> Option<u32> {
        let size = self.stack + self.callees;
        (era.cumulative && era.properties && size > 0).then_some(size)
    }

    /// Its facts, as `facts::kernel` writes them.
    pub(crate) fn facts(&self, era: Era) -> String {
        let known = |is: bool, value: u32| if is { value.to_string() } else { "?".to_owned() };
        let banks: String = self.constant.iter().map(|(bank, size)| format!(" {bank}:{size}")).collect();
        let framed = era.properties;
        format!(
            "entry {} {}: {} registers, {} barriers, stack {}, cumulative {}, spills {}+{}, shared {}, local {}, constant [{banks} ], textures {}/0/0, {} ms",
            self.name,
            self.arch,
            self.registers,
            known(era.barriers, self.barriers),
            known(framed, self.stack),
            self.cumulative(era).map_or_else(|| "?".to_owned(), |size| size.to_string()),
            known(framed, self.stores),
            known(framed, self.loads),
            self.shared + self.system(era),
            self.local(era).map_or_else(|| "?".to_owned(), |size| size.to_string()),
            self.textures,
            if era.times { (f64::from(self.time) / 1000.0).to_string() } else { "?".to_owned() },
        )
    }
}
