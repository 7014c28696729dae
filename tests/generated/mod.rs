//! Kernels made up at random, and printed as ptxas prints them in each era.

use proptest::prelude::*;
use proptest::sample::select;

/// Which items and records a release prints.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Era {
    pub(crate) properties: bool,
    pub(crate) barriers: bool,
    pub(crate) cumulative: bool,
    pub(crate) times: bool,
}

/// CUDA 3, 8, 12.0, 12.4, 12.6 and 13.5.
pub(crate) const ERAS: [Era; 6] = [
    Era { properties: false, barriers: false, cumulative: false, times: false },
    Era { properties: true, barriers: false, cumulative: true, times: false },
    Era { properties: true, barriers: false, cumulative: false, times: false },
    Era { properties: true, barriers: false, cumulative: true, times: false },
    Era { properties: true, barriers: true, cumulative: true, times: false },
    Era { properties: true, barriers: true, cumulative: true, times: true },
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

/// A kernel for one of `archs`, none of which is older than sm_20.
pub(crate) fn kernel(archs: &'static [&'static str]) -> impl Strategy<Value = Made> {
    let figures = (1_u32..256, 0_u32..17, 0_u32..5000, 0_u32..3000, 0_u32..3000, prop_oneof![Just(0), 1_u32..600]);
    let more = (prop_oneof![Just(0), 1_u32..99999], prop::option::of(1_u32..999), 0_u32..4, 0_u32..999_999);
    (name(), select(archs), figures, more).prop_map(|(name, arch, figures, (shared, bank, textures, time))| {
        let (registers, barriers, stack, stores, loads, callees) = figures;
        let lists_banks = arch.trim_matches(|c: char| !c.is_ascii_digit()).parse::<u32>().is_ok_and(|n| n < 90);
        let banks = [(0, 352)].into_iter().chain(bank.map(|size| (2, size)));
        let constant = if lists_banks { banks.collect() } else { Vec::new() };
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

impl Made {
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
        if self.shared > 0 {
            items.push(format!("{} bytes smem", self.shared));
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
            "entry {} {}: {} registers, {} barriers, stack {}, cumulative {}, spills {}+{}, shared {}, local ?, constant [{banks} ], textures {}/0/0, {} ms",
            self.name,
            self.arch,
            self.registers,
            known(era.barriers, self.barriers),
            known(framed, self.stack),
            self.cumulative(era).map_or_else(|| "?".to_owned(), |size| size.to_string()),
            known(framed, self.stores),
            known(framed, self.loads),
            self.shared,
            self.textures,
            if era.times { (f64::from(self.time) / 1000.0).to_string() } else { "?".to_owned() },
        )
    }
}
