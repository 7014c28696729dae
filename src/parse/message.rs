//! Warnings, advisories and errors of the CUDA tools, told apart by their text: the codes in parentheses are re-used
//! between releases, the words are not.

use nom::bytes::complete::{tag, take_until};
use nom::character::complete::{digit1, hex_digit1, space1};
use nom::combinator::{map_res, opt};
use nom::sequence::{delimited, preceded, terminated};
use nom::{IResult, Parser};

use super::envelope::Severity;
use super::sentences::{self, StopsIn};
use super::usage;
use crate::model::{Bytes, MessageKind};

/// What a text says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reading<'a> {
    pub(crate) kind: MessageKind,
    /// The kernel or function that it names.
    pub(crate) kernel: Option<&'a [u8]>,
    /// The text stops before what it is about: the rest may stand on the next line.
    pub(crate) unfinished: bool,
}

impl Reading<'_> {
    /// The same, which names nobody unless its name is `sure`.
    pub(crate) fn named_if(self, sure: bool) -> Self {
        Reading { kernel: self.kernel.filter(|_| sure), ..self }
    }
}

/// Reads the text of a message; `None` for information that says nothing that a person acts on.
pub(crate) fn read(severity: Severity, text: &[u8]) -> Option<Reading<'_>> {
    if severity < Severity::Error && is_launch_bounds(text) {
        let whole = text.ends_with(b"ignored") || contains(text, b"ignored when");
        return Some(reading(MessageKind::LaunchBounds, bare_entry(text), text, whole));
    }
    let said = without_code(text);
    let kernel = quoted_function(said).or_else(|| bare_entry(said));
    if severity >= Severity::Error {
        let limit = shared_limit(said);
        // Whatever stands behind what the sentence ends with is no part of it.
        let whole = limit.is_some() && contains(said, b" max)");
        return Some(reading(limit.unwrap_or(MessageKind::Error), kernel, text, whole));
    }
    if let Some((kind, whole)) = known(said, kernel) {
        return Some(reading(kind, kernel, text, whole));
    }
    let is_advisory =
        said.starts_with(b"Advisory: ") || (said.starts_with(b"Command line option") && contains(said, b"ignored"));
    let advice = is_advisory || contains(said, b"Potential Performance Loss") || said.len() != text.len();
    if severity == Severity::Info && !advice && (text.is_empty() || sentences::beginning(text).is_none()) {
        return None;
    }
    Some(reading(MessageKind::Warning, kernel, text, false))
}

/// The reading of `text`, of which it may be known that it is `whole`.
fn reading<'a>(kind: MessageKind, kernel: Option<&'a [u8]>, text: &'a [u8], whole: bool) -> Reading<'a> {
    let stops = if whole { None } else { sentences::beginning(text) };
    // A name that holds quotes may stop behind one of them.
    let kernel = kernel.filter(|_| stops != Some(StopsIn::Anything));
    Reading { kind, kernel, unfinished: stops.is_some() }
}

/// What a warning or an advice says of which a rule speaks, and whether it surely is whole.
fn known(said: &[u8], kernel: Option<&[u8]>) -> Option<(MessageKind, bool)> {
    if said.starts_with(b"Registers are spilled to local memory") {
        let (stores, loads) = spill_bytes(said)?;
        return Some((MessageKind::Spill { stores, loads }, true));
    }
    if said.starts_with(b"Local memory used for") {
        let frame = frame_size(said);
        return Some((MessageKind::LocalMemory { frame }, frame.is_some()));
    }
    if said.starts_with(b"Stack size for entry function") {
        return Some((MessageKind::UnboundedStack, said.ends_with(b"statically determined")));
    }
    if is_register_cap(said) {
        return Some((MessageKind::RegisterCap, false));
    }
    if contains(said, b"'setmaxnreg' ignored") {
        return Some((MessageKind::Setmaxnreg, said.ends_with(b".")));
    }
    if contains(said, b"wgmma.mma_async instructions are serialized") {
        return Some((MessageKind::WgmmaSerialized, false));
    }
    contains(said, b"is injected in around line").then_some((MessageKind::WgmmaInjected, kernel.is_some()))
}

/// Whether plain quotes are where the sentences that are known have some.
pub(crate) fn is_quoted(text: &[u8]) -> bool {
    contains(text, b"function '") || contains(text, b"'setmaxnreg'") || capped_function(text).is_some()
}

/// Whether an advice on `setmaxnreg` is the one that only code gets that is linked later.
pub(crate) fn is_of_separate_compilation(text: &[u8]) -> bool {
    contains(text, b"compatibility across compilation units")
}

/// What a message that stopped the build says besides, where it is a warning that `-Werror` made an error of.
pub(crate) fn warned(severity: Severity, text: &[u8]) -> Option<Reading<'_>> {
    if severity < Severity::Error {
        return None;
    }
    read(Severity::Warning, text).filter(|reading| reading.kind != MessageKind::Warning)
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(text, part).is_some()
}

/// A sentence that is the same of every kernel but for its name.
pub(crate) struct Sentence<'a> {
    /// Its number, below [`Sentence::COUNT`].
    pub(crate) number: usize,
    pub(crate) before: &'a [u8],
    /// Where the name starts, in bytes.
    pub(crate) name_at: u16,
    pub(crate) name: &'a [u8],
    pub(crate) after: &'a [u8],
}

impl Sentence<'_> {
    pub(crate) const COUNT: usize = BOUNDS.len() * IGNORED.len();
}

/// The sentence on launch bounds that are out of range: the one that a large build repeats for thousands of kernels.
pub(crate) fn sentence(text: &[u8]) -> Option<Sentence<'_>> {
    let bounds = BOUNDS.iter().position(|lead| text.starts_with(lead))?;
    let (before, rest) = text.split_at_checked(BOUNDS[bounds].len() + 1)?;
    // A mangled name ends at the first blank.
    let (name, after) = rest.split_at(memchr::memchr(b' ', rest)?);
    let ignored = IGNORED.iter().position(|end| after == *end)?;
    let number = bounds * IGNORED.len() + ignored;
    let name_at = u16::try_from(before.len()).ok()?;
    (before.ends_with(b" ") && !name.is_empty()).then_some(Sentence { number, before, name_at, name, after })
}

/// Launch bounds that are out of range, up to the name.
const BOUNDS: [&[u8]; 2] = [b"Value of threads per SM for entry", b"Value of minnctapersm for entry"];

/// What ptxas says of them behind the name.
const IGNORED: [&[u8]; 3] = [
    b" is out of range. .minnctapersm will be ignored",
    b" is out of range. .minnctapersm and .maxntid will be ignored",
    b" is out of range. minnctapersm will be ignored",
];

fn is_launch_bounds(text: &[u8]) -> bool {
    BOUNDS.iter().any(|lead| text.starts_with(lead))
        || text.starts_with(b".minnctapersm is ignored")
        || text.starts_with(b".maxntid is ignored")
}

fn is_register_cap(text: &[u8]) -> bool {
    text.starts_with(b"Overriding maximum register limit")
        || text.starts_with(b"Overriding global maxrregcount")
        || text.starts_with(b"For profile ")
        || text.starts_with(b"Too big maxrregcount")
}

/// `(C7510) Potential …` without the code.
fn without_code(text: &[u8]) -> &[u8] {
    let code: IResult<&[u8], &[u8]> = delimited(tag("(C"), digit1, (tag(")"), space1)).parse(text);
    code.map_or(text, |(rest, _)| rest)
}

/// The name in `function '<name>'` or `Function '<name>'`; it may hold quotes itself, so it ends where the sentence goes on.
fn quoted_function(text: &[u8]) -> Option<&[u8]> {
    const LEAD: &[u8] = b"unction '";
    let function = memchr::memmem::find(text, LEAD).map(|at| at + LEAD.len());
    let start = function.or_else(|| capped_function(text))?;
    let rest = &text[start..];
    const AFTER: [&[u8]; 7] = [b"', ", b"' cannot", b"' uses", b"' with ", b"' in line", b"' in '", b"' is "];
    let end = AFTER.iter().filter_map(|after| memchr::memmem::find(rest, after)).min();
    let end = end.or_else(|| memchr::memrchr(b'\'', rest))?;
    (end > 0).then(|| &rest[..end])
}

/// Where the name starts in `Overriding maximum register limit <n> for '<name>'`.
fn capped_function(text: &[u8]) -> Option<usize> {
    const LIMIT: &[u8] = b"register limit ";
    let number = memchr::memmem::find(text, LIMIT)? + LIMIT.len();
    let digits = text[number..].iter().take_while(|b| b.is_ascii_digit()).count();
    let for_name = text[number + digits..].strip_prefix(b" for '").filter(|_| digits > 0)?;
    Some(text.len() - for_name.len())
}

/// The unquoted name in `… for entry <name> is out of range` and `… in function <name>. Try …`.
fn bare_entry(text: &[u8]) -> Option<&[u8]> {
    const RANGE: &[u8] = b" is out of range";
    // A log may hold a hundred thousand of these, and a search has a price of its own, however near the end is.
    if let Some(rest) = BOUNDS.iter().find_map(|lead| text.strip_prefix(*lead)?.strip_prefix(b" ")) {
        return name_before(rest, RANGE);
    }
    [(&b"for entry "[..], RANGE), (b" in function ", b". Try ")]
        .into_iter()
        .find_map(|(lead, after)| {
            let at = memchr::memmem::find(text, lead)?;
            Some((&text[at + lead.len()..], after))
        })
        .and_then(|(rest, after)| name_before(rest, after))
}

/// The name at the start of `text`, after which the sentence goes on with `after`.
fn name_before<'a>(text: &'a [u8], after: &[u8]) -> Option<&'a [u8]> {
    // A mangled name ends at the first blank; only a demangled one needs the longer search.
    let first = memchr::memchr(after[0], text).filter(|at| text[*at..].starts_with(after));
    let end = first.or_else(|| memchr::memmem::find(text, after))?;
    (end > 0).then(|| &text[..end])
}

/// `…', 8 bytes spill stores, 16 bytes spill loads`
fn spill_bytes(text: &[u8]) -> Option<(Bytes, Bytes)> {
    let stores_at = memchr::memmem::rfind(text, b" bytes spill stores, ")?;
    let stores = usage::last_number(&text[..stores_at]);
    let rest = &text[stores_at + b" bytes spill stores, ".len()..];
    let loads_at = memchr::memmem::find(rest, b" bytes spill loads")?;
    Some((Bytes(stores?), Bytes(usage::whole_number(&rest[..loads_at])?)))
}

/// `…, size of stack frame: 728 bytes`
fn frame_size(text: &[u8]) -> Option<Bytes> {
    let before = text.strip_suffix(b" bytes")?;
    usage::last_number(before).map(Bytes)
}

/// `… uses too much shared data (0xc400 bytes, 0xc000 max)`, also with `+ 0x10 bytes system`.
fn shared_limit(text: &[u8]) -> Option<MessageKind> {
    let (_, (declared, system, limit)) = shared_figures(text).ok()?;
    Some(MessageKind::SharedTooLarge { needed: Bytes(declared) + Bytes(system.unwrap_or(0)), limit: Bytes(limit) })
}

fn shared_figures(text: &[u8]) -> IResult<&[u8], (u32, Option<u32>, u32)> {
    const LEAD: &str = "uses too much shared data (";
    let (figures, _) = (take_until(LEAD), tag(LEAD)).parse(text)?;
    let system = opt(delimited((space1, tag("+"), space1), hex, (space1, tag("bytes system"))));
    let declared = terminated(hex, (space1, tag("bytes")));
    let (rest, (declared, system, _, limit)) = (declared, system, (tag(","), space1), hex).parse(figures)?;
    Ok((rest, (declared, system, limit)))
}

fn hex(input: &[u8]) -> IResult<&[u8], u32> {
    let digits = preceded(tag("0x"), hex_digit1);
    map_res(digits, |digits: &[u8]| u32::from_str_radix(std::str::from_utf8(digits).unwrap_or_default(), 16))
        .parse(input)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warning(text: &str) -> Reading<'_> {
        read(Severity::Warning, text.as_bytes()).expect("a message")
    }

    fn info(text: &str) -> Reading<'_> {
        read(Severity::Info, text.as_bytes()).expect("a message")
    }

    #[test]
    fn spills_and_local_memory_come_with_their_bytes() {
        let spill = warning(
            "Registers are spilled to local memory in function 'fusion_31', 8 bytes spill stores, 16 bytes spill loads",
        );
        assert_eq!(spill.kind, MessageKind::Spill { stores: Bytes(8), loads: Bytes(16) });
        assert_eq!(spill.kernel, Some(&b"fusion_31"[..]));
        let local = warning("Local memory used for function 'reg_hungry', size of stack frame: 728 bytes");
        assert_eq!(local.kind, MessageKind::LocalMemory { frame: Some(Bytes(728)) });
        assert_eq!(local.kernel, Some(&b"reg_hungry"[..]));
    }

    #[test]
    fn advisories_are_known_by_their_words_and_not_by_their_codes() {
        for text in [
            "(C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to wgmma pipeline crossing function boundary at a function call in the function 'k'",
            "(C7519) Potential Performance Loss: wgmma.mma_async instructions are serialized due to program dependence on compiler-inserted WG.AR in divergent path in the function 'k' in line 19",
            "(C9999) Potential Performance Loss: wgmma.mma_async instructions are serialized due to the presence of Extern calls in the function 'k'",
        ] {
            assert_eq!((info(text).kind, info(text).kernel), (MessageKind::WgmmaSerialized, Some(&b"k"[..])), "{text}");
        }
        let injected = info(
            "(C7519) warpgroup.arrive is injected in around line 29 by compiler to allow use of registers in GMMA in function 'k_acc_read'",
        );
        assert_eq!((injected.kind, injected.kernel), (MessageKind::WgmmaInjected, Some(&b"k_acc_read"[..])));
        let nameless = info(
            "Potential Performance Loss: 'setmaxnreg' ignored to maintain compatibility across compilation units.",
        );
        assert_eq!((nameless.kind, nameless.kernel), (MessageKind::Setmaxnreg, None));
    }

    #[test]
    fn launch_bounds_name_their_kernel_without_quotes() {
        let bounds = warning(
            "Value of threads per SM for entry k_maxntid_huge is out of range. .minnctapersm and .maxntid will be ignored",
        );
        assert_eq!(
            (bounds.kind, bounds.kernel, bounds.unfinished),
            (MessageKind::LaunchBounds, Some(&b"k_maxntid_huge"[..]), false)
        );
        assert!(warning("Value of threads per SM for entry").unfinished);
        assert!(!warning(".minnctapersm is ignored when neither .maxntid nor .reqntid is specified.").unfinished);
    }

    #[test]
    fn errors_keep_their_figures() {
        let text = "Entry function '_Z7too_bigPf' uses too much shared data (0xc400 bytes, 0xc000 max)";
        let error = read(Severity::Error, text.as_bytes()).expect("an error");
        assert_eq!(error.kind, MessageKind::SharedTooLarge { needed: Bytes(50176), limit: Bytes(49152) });
        assert_eq!(error.kernel, Some(&b"_Z7too_bigPf"[..]));
        let old = b"Entry function 'k' uses too much shared data (0x4030 bytes + 0x10 bytes system, 0x4000 max)";
        assert_eq!(
            read(Severity::Error, old).expect("an error").kind,
            MessageKind::SharedTooLarge { needed: Bytes(0x4040), limit: Bytes(0x4000) }
        );
        let cap =
            b"entry function '_Z5k_limPfi' with max regcount of 32 calls function '_Z6ext_fnfi' with regcount of 46";
        assert_eq!(read(Severity::Error, cap).expect("an error").kernel, Some(&b"_Z5k_limPfi"[..]));
        let stack = b"Function 'k' uses 4096 bytes stack but limited to 1024";
        assert_eq!(read(Severity::Error, stack).expect("an error").kernel, Some(&b"k"[..]));
        let few = b"(C7602) Insufficient registers (64) to compile instruction at line 267 in function k_starved. Try to compile with register target of 154 or higher.";
        assert_eq!(read(Severity::Fatal, few).expect("an error").kernel, Some(&b"k_starved"[..]));
    }

    #[test]
    fn a_name_with_quotes_inside_is_taken_whole() {
        let text =
            "Stack size for entry function 'void k<host(int*)::'lambda'(int)>(int)' cannot be statically determined";
        assert_eq!(warning(text).kernel, Some(&b"void k<host(int*)::'lambda'(int)>(int)"[..]));
    }

    #[test]
    fn plain_information_says_nothing_to_act_on() {
        assert_eq!(read(Severity::Info, b"Processing k_maxnreg"), None);
        for limit in ["256", "128", "63"] {
            let cap =
                format!("Overriding maximum register limit {limit} for 'reg_hungry' with  32 of maxrregcount option");
            assert_eq!((info(&cap).kind, info(&cap).kernel), (MessageKind::RegisterCap, Some(&b"reg_hungry"[..])));
        }
    }
}
