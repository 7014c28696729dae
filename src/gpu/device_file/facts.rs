//! What a device file can tell: the known keys, how people spell them, and how their values are written.

use std::ops::Range;

use nom::bytes::complete::{take_while, take_while1};
use nom::character::complete::{char, space0};
use nom::combinator::{opt, recognize};
use nom::{IResult, Parser};

use super::Problem;

/// One thing that a device file can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Name,
    Capability,
    Major,
    Minor,
    Sms,
    WarpSize,
    ThreadsPerSm,
    ThreadsPerBlock,
    BlocksPerSm,
    RegistersPerSm,
    RegistersPerBlock,
    SharedPerSm,
    SharedPerBlock,
    SharedOptin,
    SharedReserved,
    L2,
    Memory,
    Clock,
    MemoryClock,
    BusWidth,
}

/// How many keys there are.
const KEYS: usize = Key::BusWidth as usize + 1;

/// Spellings, in lower case and without anything but letters and digits: those of the C structure, of Python, of
/// `deviceQuery`, and those that a person would write.
const SPELLINGS: &[(Key, &[&str])] = &[
    (Key::Name, &["name", "devicename", "gpuname"]),
    (
        Key::Capability,
        &["computecapability", "cudacapability", "cudacapabilitymajorminorversionnumber", "capability", "cc"],
    ),
    (Key::Major, &["major", "computecapabilitymajor", "computemajor"]),
    (Key::Minor, &["minor", "computecapabilityminor", "computeminor"]),
    (
        Key::Sms,
        &[
            "sms",
            "smcount",
            "numsms",
            "numberofsms",
            "multiprocessors",
            "multiprocessorcount",
            "numberofmultiprocessors",
        ],
    ),
    (Key::WarpSize, &["warpsize", "threadsperwarp"]),
    (
        Key::ThreadsPerSm,
        &[
            "maxthreadspersm",
            "threadspersm",
            "maxthreadspermultiprocessor",
            "threadspermultiprocessor",
            "maximumnumberofthreadspermultiprocessor",
        ],
    ),
    (Key::ThreadsPerBlock, &["maxthreadsperblock", "threadsperblock", "maximumnumberofthreadsperblock"]),
    (
        Key::BlocksPerSm,
        &["maxblockspersm", "blockspersm", "maxblockspermultiprocessor", "maximumnumberofblockspermultiprocessor"],
    ),
    (
        Key::RegistersPerSm,
        &["registerspersm", "regspersm", "maxregisterspersm", "regspermultiprocessor", "registerspermultiprocessor"],
    ),
    (
        Key::RegistersPerBlock,
        &["registersperblock", "regsperblock", "maxregistersperblock", "totalnumberofregistersavailableperblock"],
    ),
    (
        Key::SharedPerSm,
        &[
            "sharedmemorypersm",
            "sharedmempersm",
            "sharedmempermultiprocessor",
            "sharedmemorypermultiprocessor",
            "totalsharedmemorypermultiprocessor",
            "maxsharedmemorypermultiprocessor",
        ],
    ),
    (
        Key::SharedPerBlock,
        &["sharedmemoryperblock", "sharedmemperblock", "totalamountofsharedmemoryperblock", "maxsharedmemoryperblock"],
    ),
    (Key::SharedOptin, &["sharedmemperblockoptin", "sharedmemoryperblockoptin", "maxsharedmemoryperblockoptin"]),
    (Key::SharedReserved, &["reservedsharedmemperblock", "reservedsharedmemoryperblock"]),
    (Key::L2, &["l2cache", "l2cachesize"]),
    (
        Key::Memory,
        &["devicememory", "globalmemory", "memory", "totalglobalmem", "totalmemory", "totalamountofglobalmemory"],
    ),
    (Key::Clock, &["clock", "clockrate", "boostclock", "maxclockrate", "gpuclockrate", "gpumaxclockrate"]),
    (Key::MemoryClock, &["memoryclock", "memoryclockrate"]),
    (Key::BusWidth, &["memorybuswidth", "buswidth", "globalmemorybuswidth"]),
];

/// What the number of a key counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Count,
    Bytes,
    Megahertz,
}

impl Key {
    /// The key that `spelling` means.
    pub(super) fn spelled(spelling: &str) -> Option<Key> {
        let bare = bare(spelling);
        SPELLINGS.iter().find(|(_, spellings)| spellings.contains(&bare.as_str())).map(|(key, _)| *key)
    }

    fn kind(self) -> Kind {
        match self {
            Key::SharedPerSm | Key::SharedPerBlock | Key::SharedOptin | Key::SharedReserved | Key::L2 | Key::Memory => {
                Kind::Bytes
            }
            Key::Clock | Key::MemoryClock => Kind::Megahertz,
            _ => Kind::Count,
        }
    }

    /// Figures that are told in several ways, each rounded, and that limit nothing.
    fn is_rounded(self) -> bool {
        matches!(self, Key::Memory | Key::Clock | Key::MemoryClock)
    }

    /// Whether a word after the key, without a sign between them, may make another thing of it: `memory clock`.
    pub(super) fn begins_phrases(self) -> bool {
        self.is_rounded() || matches!(self, Key::Capability | Key::Sms | Key::L2)
    }

    /// Zero means something only for these.
    fn may_be_zero(self) -> bool {
        matches!(self, Key::Minor | Key::SharedReserved | Key::L2 | Key::Clock | Key::MemoryClock | Key::BusWidth)
    }
}

fn bare(spelling: &str) -> String {
    spelling.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// A number with the place where it stands in the file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Value {
    /// The count, bytes or megahertz.
    pub(super) number: f64,
    /// Where it stands.
    pub(super) span: Range<usize>,
}

/// Everything that was found about the first device of the file.
#[derive(Debug, Clone, Default)]
pub(super) struct Facts {
    /// The device's own name.
    pub(super) name: Option<String>,
    /// Names of further devices in the same file.
    pub(super) others: Vec<String>,
    values: [Option<Value>; KEYS],
}

impl Facts {
    /// What the file says about `key`.
    pub(super) fn get(&self, key: Key) -> Option<&Value> {
        self.values[key as usize].as_ref()
    }

    /// Whether any number was found.
    pub(super) fn has_numbers(&self) -> bool {
        self.values.iter().any(Option::is_some)
    }

    /// Keeps the first value of a key; one that says otherwise is a fault.
    fn set(&mut self, key: Key, value: Value) -> Result<(), Problem> {
        match &mut self.values[key as usize] {
            Some(first) if first.number != value.number && !key.is_rounded() => Err(contradiction(first, value.span)),
            Some(_) => Ok(()),
            slot => {
                *slot = Some(value);
                Ok(())
            }
        }
    }

    /// Reads the value of a numeric `key` from `text`, which starts at byte `at` of the file; `unit` is what the key
    /// itself said, as in `shared memory (KB): 164`.
    pub(super) fn read(&mut self, key: Key, text: &str, at: usize, unit: &str) -> Result<(), Problem> {
        let span = at..at + text.trim_end().len().max(1).min(text.len());
        if key == Key::Capability {
            return self.read_capability(text, span);
        }
        let (rest, (number, own)) = quantity(text).map_err(|_| not_a_number(span.clone()))?;
        if goes_on(rest) {
            return Err(not_a_number(span));
        }
        let unit = if own.is_empty() { unit } else { own };
        let number = scaled(key.kind(), number, unit).ok_or_else(|| unknown_unit(unit, span.clone()))?;
        if number == 0.0 && !key.may_be_zero() {
            return Err(Problem {
                message: "a device has at least one of these".to_owned(),
                label: "this is zero".to_owned(),
                help: "leave the line out when the figure is not known".to_owned(),
                span,
            });
        }
        self.set(key, Value { number, span })
    }

    fn read_capability(&mut self, text: &str, span: Range<usize>) -> Result<(), Problem> {
        let numbers: Vec<&str> =
            text.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty()).take(2).collect();
        let [major, minor] = numbers.as_slice() else { return Err(not_a_capability(span)) };
        // `8e5` and `-8.0` hold two numbers, and are no capability.
        let end = (minor.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
        if text[..end].contains(|c: char| c.is_ascii_alphabetic() || c == '-') {
            return Err(not_a_capability(span));
        }
        let (Ok(major), Ok(minor)) = (major.parse::<u8>(), minor.parse::<u8>()) else {
            return Err(not_a_capability(span));
        };
        self.set(Key::Major, Value { number: f64::from(major), span: span.clone() })?;
        self.set(Key::Minor, Value { number: f64::from(minor), span })
    }
}

/// Whether what follows a number and its unit belongs to the number still, as in `1e5`, `1e+5`, `0x10` and `1.2.3`.
fn goes_on(rest: &str) -> bool {
    rest.strip_prefix(['+', '-', '.']).unwrap_or(rest).starts_with(|c: char| c.is_ascii_digit())
}

fn contradiction(first: &Value, span: Range<usize>) -> Problem {
    Problem {
        message: "a device figure is told twice, and differently".to_owned(),
        label: format!("before it was {}", first.number),
        help: "keep the line that is right; figures of a second device follow a line with its name".to_owned(),
        span,
    }
}

fn not_a_number(span: Range<usize>) -> Problem {
    Problem {
        message: "a device figure cannot be read".to_owned(),
        label: "expected a number".to_owned(),
        help: "write it as in `registers per SM 65536` or `shared memory per SM 164 KB`".to_owned(),
        span,
    }
}

fn not_a_capability(span: Range<usize>) -> Problem {
    Problem {
        message: "the compute capability cannot be read".to_owned(),
        label: "expected two numbers, as in 8.0".to_owned(),
        help: "write it as in `compute capability 8.0`".to_owned(),
        span,
    }
}

fn unknown_unit(unit: &str, span: Range<usize>) -> Problem {
    Problem {
        message: format!("`{unit}` is no unit for this figure"),
        label: "cannot be converted".to_owned(),
        help: "sizes are in bytes, KB, MB or GB (1024 each), clocks in kHz, MHz or GHz".to_owned(),
        span,
    }
}

/// A number with its unit: `65,536`, `164 KB`, `1410 MHz (1.41 GHz)`, `5120-bit`. What follows is left.
pub(super) fn quantity(text: &str) -> IResult<&str, (f64, &str)> {
    let (rest, _) = (space0, opt(char('"'))).parse(text)?;
    let digits = |c: char| c.is_ascii_digit() || c == ',' || c == '_';
    let (rest, whole) = recognize((take_while1(|c: char| c.is_ascii_digit()), take_while(digits))).parse(rest)?;
    let (rest, fraction) = opt(recognize((char('.'), take_while1(|c: char| c.is_ascii_digit())))).parse(rest)?;
    let (rest, _) = (space0, opt(char('-'))).parse(rest)?;
    let (rest, unit) = take_while(|c: char| c.is_ascii_alphabetic()).parse(rest)?;
    let plain: String = whole.chars().filter(char::is_ascii_digit).collect();
    let number = format!("{plain}{}", fraction.unwrap_or(""));
    // A run of digits always is a number, at worst an infinite one, which no check lets pass.
    Ok((rest, (number.parse().unwrap_or(f64::INFINITY), unit)))
}

fn scaled(kind: Kind, number: f64, unit: &str) -> Option<f64> {
    let unit = unit.to_ascii_lowercase();
    let factor = match (kind, unit.as_str()) {
        // The words after a count say what is counted, as in `108 SMs`.
        (Kind::Count, _) => 1.0,
        (Kind::Bytes, "" | "b" | "byte" | "bytes") => 1.0,
        (Kind::Bytes, "k" | "kb" | "kib" | "kbytes") => 1024.0,
        (Kind::Bytes, "m" | "mb" | "mib" | "mbytes") => 1024.0 * 1024.0,
        (Kind::Bytes, "g" | "gb" | "gib" | "gbytes") => 1024.0 * 1024.0 * 1024.0,
        // The C structure has kilohertz; a person who leaves the unit out means megahertz.
        (Kind::Megahertz, "") if number < 10_000.0 => 1.0,
        (Kind::Megahertz, "" | "khz") => 1e-3,
        (Kind::Megahertz, "mhz") => 1.0,
        (Kind::Megahertz, "ghz") => 1e3,
        _ => return None,
    };
    Some(number * factor)
}
