//! How kernels and findings stand in a file: in a baseline, and in the JSON report, of which the same is read.

use std::fmt;
use std::marker::PhantomData;

use hashbrown::HashMap;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::{Accepted, Figures, From, Key, LaunchFigures, name_key};
use crate::analyse::BlockSource;
use crate::finding::Level;
use crate::model::{Arch, BlockSize, Bytes, Toolkit, symbol};

/// What marks a baseline.
pub(super) const FORMAT: &str = "warplint-baseline";

/// Registers that are possible at most: no compiler gives a thread more than the registers of an SM.
const MOST_REGISTERS: u32 = 65_536;

/// The longest name that is kept, in bytes.
const LONGEST: usize = 1 << 16;

/// A value that is written as an object: what serde derives would take a list of the same for one.
pub(super) struct Object<T>(pub(super) T);

impl<'d, T: Deserialize<'d>> Deserialize<'d> for Object<T> {
    fn deserialize<D: Deserializer<'d>>(source: D) -> Result<Object<T>, D::Error> {
        struct Keys<T>(PhantomData<T>);
        impl<'d, T: Deserialize<'d>> Visitor<'d> for Keys<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'d>>(self, keys: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(keys)).map(Object)
            }
        }
        source.deserialize_map(Keys(PhantomData))
    }
}

/// A whole file.
#[derive(Deserialize)]
pub(super) struct Document {
    pub(super) version: Option<u64>,
    pub(super) format: Option<String>,
    #[serde(default, deserialize_with = "toolkit")]
    pub(super) toolkit: Option<Toolkit>,
    pub(super) kernels: Option<Kernels>,
    #[serde(default)]
    pub(super) findings: Findings,
}

/// Its head alone, whatever the rest is.
#[derive(Deserialize)]
pub(super) struct Head {
    pub(super) version: Option<u64>,
}

/// The kernels of a file.
#[derive(Default)]
pub(super) struct Kernels {
    pub(super) all: HashMap<Key, Vec<Figures>>,
    /// Those whose figures may be another's.
    pub(super) ambiguous: usize,
}

/// The findings of a file.
#[derive(Default)]
pub(super) struct Findings(pub(super) Vec<(Accepted, u64)>);

/// A kernel as a baseline has it, and with other keys as the JSON report has it.
#[derive(Serialize, Deserialize)]
pub(super) struct WireKernel {
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel: Option<String>,
    arch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    demangled: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(skip_serializing)]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default, deserialize_with = "registers")]
    registers: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    barriers: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spill_store_bytes: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spill_load_bytes: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stack_bytes: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cumulative_stack_bytes: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none", default, deserialize_with = "shared")]
    static_shared_bytes: Option<u32>,
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    linked: bool,
    #[serde(skip_serializing_if = "is_one", default = "one")]
    records: u32,
    #[serde(skip_serializing)]
    #[serde(default)]
    ambiguous: bool,
    #[serde(
        skip_serializing_if = "Option::is_none",
        default,
        deserialize_with = "toolkit",
        serialize_with = "as_text"
    )]
    toolkit: Option<Toolkit>,
    #[serde(skip_serializing)]
    launch: Option<Object<WireLaunch>>,
    #[serde(skip_serializing_if = "Vec::is_empty", default, deserialize_with = "objects")]
    occupancy: Vec<WireOccupancy>,
}

#[derive(Deserialize)]
struct WireLaunch {
    block_source: Option<String>,
    dynamic_shared_bytes: Option<u32>,
}

#[derive(Serialize, Deserialize)]
struct WireOccupancy {
    gpu: String,
    #[serde(deserialize_with = "block")]
    block: [u32; 3],
    #[serde(skip_serializing_if = "Option::is_none")]
    block_source: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default, deserialize_with = "shared")]
    dynamic_shared_bytes: Option<u32>,
    #[serde(deserialize_with = "fraction")]
    occupancy: f64,
}

/// A finding that is accepted.
#[derive(Serialize, Deserialize)]
pub(super) struct WireFinding {
    rule: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "is_log", default = "log")]
    from: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at_most: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    severity: Option<u32>,
    #[serde(default = "once")]
    count: u32,
}

fn objects<'d, T: Deserialize<'d>, D: Deserializer<'d>>(source: D) -> Result<Vec<T>, D::Error> {
    let all = Vec::<Object<T>>::deserialize(source)?;
    Ok(all.into_iter().map(|Object(one)| one).collect())
}

fn one() -> u32 {
    1
}

fn once() -> u32 {
    1
}

fn is_one(count: &u32) -> bool {
    *count == 1
}

fn log() -> String {
    From::Log.name().to_owned()
}

fn is_log(from: &str) -> bool {
    from == From::Log.name()
}

fn as_text<S: serde::Serializer>(toolkit: &Option<Toolkit>, serializer: S) -> Result<S::Ok, S::Error> {
    match toolkit {
        Some(toolkit) => serializer.collect_str(toolkit),
        None => serializer.serialize_none(),
    }
}

fn toolkit<'d, D: Deserializer<'d>>(source: D) -> Result<Option<Toolkit>, D::Error> {
    let text = Option::<String>::deserialize(source)?;
    text.map(|text| text.parse().map_err(de::Error::custom)).transpose()
}

fn registers<'d, D: Deserializer<'d>>(source: D) -> Result<Option<u32>, D::Error> {
    most(source, MOST_REGISTERS, "registers that a thread can have")
}

/// No block has a gibibyte.
fn shared<'d, D: Deserializer<'d>>(source: D) -> Result<Option<u32>, D::Error> {
    most(source, 1 << 30, "bytes that a block can have")
}

fn most<'d, D: Deserializer<'d>>(source: D, most: u32, what: &str) -> Result<Option<u32>, D::Error> {
    let count = Option::<u32>::deserialize(source)?;
    match count.filter(|count| *count > most) {
        Some(count) => Err(de::Error::custom(format!("{count} is more than the {what}"))),
        None => Ok(count),
    }
}

fn block<'d, D: Deserializer<'d>>(source: D) -> Result<[u32; 3], D::Error> {
    let [x, y, z] = <[u32; 3]>::deserialize(source)?;
    BlockSize::new(x, y, z).map(BlockSize::dimensions).map_err(de::Error::custom)
}

fn fraction<'d, D: Deserializer<'d>>(source: D) -> Result<f64, D::Error> {
    let share = f64::deserialize(source)?;
    let is_share = (0.0..=1.0).contains(&share);
    if is_share { Ok(share) } else { Err(de::Error::custom(format!("an occupancy is 0 to 1, and not {share}"))) }
}

fn arch<E: de::Error>(text: Option<String>) -> Result<Option<Arch>, E> {
    text.map(|text| text.parse().map_err(|_| E::custom(format!("`{}` is no architecture", symbol::printable(&text)))))
        .transpose()
}

fn text<E: de::Error>(text: Option<String>) -> Result<Option<Box<str>>, E> {
    match text {
        Some(text) if text.len() > LONGEST => Err(E::custom(format!("a name of {} bytes", text.len()))),
        text => Ok(text.map(String::into_boxed_str)),
    }
}

impl<'d> Deserialize<'d> for Kernels {
    fn deserialize<D: Deserializer<'d>>(source: D) -> Result<Kernels, D::Error> {
        struct List;
        impl<'d> Visitor<'d> for List {
            type Value = Kernels;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of kernels")
            }

            fn visit_seq<A: SeqAccess<'d>>(self, mut list: A) -> Result<Kernels, A::Error> {
                let mut kernels = Kernels::default();
                while let Some(Object(wire)) = list.next_element::<Object<WireKernel>>()? {
                    kernels.add(wire)?;
                }
                Ok(kernels)
            }
        }
        source.deserialize_seq(List)
    }
}

impl Kernels {
    fn add<E: de::Error>(&mut self, wire: WireKernel) -> Result<(), E> {
        if wire.ambiguous {
            self.ambiguous += 1;
            return Ok(());
        }
        let own = text(wire.kernel)?;
        let raw = text(wire.name)?;
        // A kernel whose name was cut off its log is known by nothing.
        let Some(kernel) = own.or_else(|| raw.as_deref().map(|raw| name_key(raw.as_bytes()).into())) else {
            return Ok(());
        };
        let key = Key { kernel, arch: arch(wire.arch)? };
        let bytes = |size: Option<u32>| size.map(Bytes);
        // The report tells of the launch what a baseline tells of each occupancy.
        let (source, dynamic) =
            wire.launch.map_or((None, None), |Object(one)| (one.block_source, one.dynamic_shared_bytes));
        let launch = |one: WireOccupancy| {
            let [x, y, z] = one.block;
            // A name that a later version knows tells no less of the block.
            let told = one.block_source.as_deref().or(source.as_deref());
            let source =
                told.map_or(BlockSource::Sweep, |name| BlockSource::named(name).unwrap_or(BlockSource::Option));
            Some(LaunchFigures {
                gpu: one.gpu.into(),
                block: BlockSize::new(x, y, z).ok()?,
                source,
                dynamic_shared: bytes(one.dynamic_shared_bytes.or(dynamic)).filter(|size| size.get() <= 1 << 30),
                occupancy: one.occupancy,
            })
        };
        let figures = Figures {
            name: raw.or(text(wire.demangled)?),
            is_function: wire.kind.as_deref() == Some("function"),
            registers: wire.registers,
            barriers: wire.barriers,
            spill_stores: bytes(wire.spill_store_bytes),
            spill_loads: bytes(wire.spill_load_bytes),
            stack: bytes(wire.stack_bytes),
            cumulative_stack: bytes(wire.cumulative_stack_bytes),
            static_shared: bytes(wire.static_shared_bytes),
            linked: Some(wire.linked),
            records: wire.records.max(1),
            toolkit: wire.toolkit,
            launches: wire.occupancy.into_iter().filter_map(launch).collect(),
        };
        self.all.entry(key).or_default().push(figures);
        Ok(())
    }
}

impl WireKernel {
    /// A kernel as it is written, its toolkit left out where it is `usual`.
    pub(super) fn new(key: &Key, figures: &Figures, usual: Option<Toolkit>) -> WireKernel {
        let bytes = |size: Option<Bytes>| size.map(Bytes::get);
        // What was read from a baseline is demangled already, and is no mangled name.
        let called =
            figures.name.as_deref().map(|name| symbol::demangle(name.as_bytes()).unwrap_or_else(|| name.into()));
        let occupancy = |one: &LaunchFigures| WireOccupancy {
            gpu: one.gpu.as_ref().into(),
            block: one.block.dimensions(),
            block_source: Some(one.source.name().into()),
            dynamic_shared_bytes: bytes(one.dynamic_shared),
            occupancy: one.occupancy,
        };
        WireKernel {
            kernel: Some(key.kernel.as_ref().into()),
            arch: key.arch.map(|arch| arch.to_string()),
            demangled: called.filter(|called| called.as_str() != &*key.kernel),
            kind: figures.is_function.then(|| "function".to_owned()),
            name: None,
            registers: figures.registers,
            barriers: figures.barriers,
            spill_store_bytes: bytes(figures.spill_stores),
            spill_load_bytes: bytes(figures.spill_loads),
            stack_bytes: bytes(figures.stack),
            cumulative_stack_bytes: bytes(figures.cumulative_stack.filter(|size| Some(*size) != figures.stack)),
            static_shared_bytes: bytes(figures.static_shared),
            linked: figures.linked == Some(true),
            records: figures.records,
            ambiguous: false,
            toolkit: figures.toolkit.filter(|one| Some(*one) != usual),
            launch: None,
            occupancy: figures.launches.iter().map(occupancy).collect(),
        }
    }
}

impl<'d> Deserialize<'d> for Findings {
    fn deserialize<D: Deserializer<'d>>(source: D) -> Result<Findings, D::Error> {
        struct List;
        impl<'d> Visitor<'d> for List {
            type Value = Findings;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of findings")
            }

            fn visit_seq<A: SeqAccess<'d>>(self, mut list: A) -> Result<Findings, A::Error> {
                let mut findings = Findings::default();
                while let Some(Object(wire)) = list.next_element::<Object<WireFinding>>()? {
                    let count = u64::from(wire.count);
                    findings.0.push((wire.accepted()?, count));
                }
                Ok(findings)
            }
        }
        source.deserialize_seq(List)
    }
}

impl WireFinding {
    pub(super) fn new(accepted: &Accepted, count: u64) -> WireFinding {
        let own = |text: &Option<Box<str>>| text.as_deref().map(str::to_owned);
        WireFinding {
            rule: accepted.rule.as_ref().into(),
            kernel: own(&accepted.kernel),
            arch: accepted.arch.map(|arch| arch.to_string()),
            gpu: own(&accepted.gpu),
            path: own(&accepted.path),
            from: accepted.from.name().to_owned(),
            fingerprint: own(&accepted.fingerprint),
            at_most: (accepted.cap < Level::Deny).then(|| accepted.cap.name().to_owned()),
            severity: accepted.severity,
            count: u32::try_from(count).unwrap_or(u32::MAX),
        }
    }

    fn accepted<E: de::Error>(self) -> Result<Accepted, E> {
        let from = From::ALL.into_iter().find(|from| from.name() == self.from);
        let cap = match &self.at_most {
            None => Some(Level::Deny),
            Some(name) => Level::named(name),
        };
        let unknown = |what: &str, name: &str| E::custom(format!("`{}` is no {what}", symbol::printable(name)));
        Ok(Accepted {
            kernel: text(self.kernel)?,
            arch: arch(self.arch)?,
            rule: self.rule.into(),
            gpu: text(self.gpu)?,
            path: text(self.path)?,
            from: from.ok_or_else(|| unknown("kind of input: log, ptx or source", &self.from))?,
            fingerprint: text(self.fingerprint)?,
            cap: cap.ok_or_else(|| unknown("level", self.at_most.as_deref().unwrap_or_default()))?,
            severity: self.severity,
        })
    }
}
