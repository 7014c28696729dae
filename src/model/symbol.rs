//! Names as people read them: demangled, shortened, made safe to print.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt::{self, Write};
use std::ops::Range;

use super::mangled::nesting;
use cpp_demangle::{BorrowedSymbol, DemangleOptions, ParseOptions};

/// Longest demangled name; 268 bytes of input can ask for 218 MB.
const MAX_DEMANGLED: usize = 64 * 1024;
/// Deep enough for the names of template libraries, of which the deepest known takes 95.
const MAX_DEPTH: u32 = 112;
/// Lists in lists up to which even a broken name is refused within a millisecond.
const SHALLOW: usize = 8;
/// Capital letters up to which the same holds for names of any form: nothing is nested without some.
const FEW_CAPITALS: usize = 12;
/// Broken names with deeper lists that are tried in one run. No compiler makes them, and each may take a fifth of a second.
const PATIENCE: usize = 16;

thread_local! {
    /// Broken names with deep lists: once there are too many, deep names stay as they are.
    static BROKEN: RefCell<HashSet<Vec<u8>>> = RefCell::default();
}

/// Longest short name, in characters.
const MAX_SHORT: usize = 60;
const ANONYMOUS: &str = "(anonymous namespace)";

/// The full C++ signature of a mangled name; `None` where there is none, or it is too large.
#[must_use]
pub fn demangle(name: &[u8]) -> Option<String> {
    demangle_with(name, DemangleOptions::new())
}

fn demangle_with(name: &[u8], options: DemangleOptions) -> Option<String> {
    let name = without_static(name);
    if !name.starts_with(b"_Z") {
        return None;
    }
    let name = without_number(name, b'$').unwrap_or(name);
    let mut text = Capped(String::new());
    let symbol = parsed(name).or_else(|| {
        let end = without_number(name, b'_')?.len();
        parsed(&name[..end]).or_else(|| parsed(&name[..=end]))
    })?;
    symbol.structured_demangle(&mut text, &options.recursion_limit(MAX_DEPTH)).ok()?;
    Some(without_gaps(text.0))
}

/// A list without the places of empty packs, for which the demangler leaves a comma: `A<int, >` is `A<int>`.
fn without_gaps(text: String) -> String {
    const COMMA: &str = ", ";
    if !["<, ", "(, ", ", >", ", )", ", , "].iter().any(|gap| text.contains(gap)) {
        return text;
    }
    let mut list = String::with_capacity(text.len());
    for (at, letter) in text.char_indices() {
        if text[at..].starts_with(COMMA) && (list.ends_with(['<', '(']) || list.ends_with(COMMA)) {
            continue;
        }
        if letter == ' ' && text[..at].ends_with(',') && !list.ends_with(',') {
            // The comma before it is gone.
            continue;
        }
        if matches!(letter, '>' | ')') && list.ends_with(COMMA) {
            list.truncate(list.len() - COMMA.len());
            if letter == '>' && list.ends_with('>') {
                list.push(' ');
            }
        }
        list.push(letter);
    }
    list
}

/// The parts of a mangled name, if it is whole; and if that can be found out in good time, as a demangler tries all that a
/// name may mean, which takes hours over fifty bytes of a broken one.
fn parsed(name: &[u8]) -> Option<BorrowedSymbol<'_>> {
    let deep = match nesting(name) {
        Some(nesting) => nesting > SHALLOW,
        // Of a form that no kernel has: an operator, a function of the host, half a name.
        None if name.iter().filter(|byte| byte.is_ascii_uppercase()).count() > FEW_CAPITALS => return None,
        None => false,
    };
    if deep && BROKEN.with_borrow(|broken| broken.len() >= PATIENCE || broken.contains(name)) {
        return None;
    }
    let symbol = BorrowedSymbol::new_with_options(name, &ParseOptions::default().recursion_limit(MAX_DEPTH)).ok();
    if deep && symbol.is_none() {
        BROKEN.with_borrow_mut(|broken| broken.insert(name.to_vec()));
    }
    symbol
}

/// The compiler numbers copies of a function: `_Z4polyPKfi$5`, `_Z4polyPKfS0__860`, `_Z4polyPKfS0_860`.
fn without_number(name: &[u8], lead: u8) -> Option<&[u8]> {
    let at = memchr::memrchr(lead, name)?;
    (at + 1 < name.len() && name[at + 1..].iter().all(u8::is_ascii_digit)).then(|| &name[..at])
}

/// Refuses to grow past [`MAX_DEMANGLED`].
struct Capped(String);

impl Write for Capped {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > MAX_DEMANGLED {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

/// The name for a message: without parameters, return type and namespaces, as `pressure<128>`, safe to print.
#[must_use]
pub fn short(name: &[u8]) -> String {
    let demangled = demangle_with(name, DemangleOptions::new().no_params().no_return_type());
    let text = match demangled {
        Some(text) => without_namespaces(&tidy(&text)).to_owned(),
        None => {
            let text = String::from_utf8_lossy(name);
            match signature_name(&text) {
                Some(called) => without_namespaces(&tidy(called)).to_owned(),
                None => without_namespaces(&text).to_owned(),
            }
        }
    };
    printable(&elide(&text, MAX_SHORT)).into_owned()
}

/// A demangled name without what nobody writes: casts of literals, as in `(unsigned int)9`, the names of the inline
/// namespaces that number the versions of a library, and the blank in `> >`.
fn tidy(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // Where the parentheses that are open begin in `out`.
    let mut open = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix(ANONYMOUS) {
            out.push_str(ANONYMOUS);
            rest = after;
            continue;
        }
        rest = &rest[c.len_utf8()..];
        match c {
            '(' => open.push(out.len()),
            ')' => {
                let cast = open.pop().filter(|at| is_literal(rest) && (out[..*at].ends_with(['<', ' ', '{'])));
                if let Some(at) = cast {
                    let bool = &out[at..] == "(bool";
                    out.truncate(at);
                    let value = ["false", "true"].into_iter().zip(["0", "1"]);
                    if let Some((word, digit)) = value.into_iter().find(|(_, digit)| bool && rest.starts_with(digit)) {
                        out.push_str(word);
                        rest = &rest[digit.len()..];
                    }
                    continue;
                }
            }
            '>' if out.ends_with("> ") => {
                out.pop();
            }
            ':' if rest.starts_with(':') => {
                let start = out.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || c == '_').len();
                if is_version(&out[start..]) && out[..start].ends_with("::") {
                    out.truncate(start);
                    rest = &rest[1..];
                    continue;
                }
                out.push(':');
                rest = &rest[1..];
            }
            _ => {}
        }
        out.push(c);
    }
    out
}

fn is_literal(text: &str) -> bool {
    text.strip_prefix('-').unwrap_or(text).starts_with(|c: char| c.is_ascii_digit())
}

/// `_V_300500_SM_800_860`, `__4`, `__v1`, `__cxx11`.
fn is_version(namespace: &str) -> bool {
    if let Some(version) = namespace.strip_prefix("_V_") {
        return version.starts_with(|c: char| c.is_ascii_digit());
    }
    let Some(version) = namespace.strip_prefix("__") else { return false };
    let number = version.strip_prefix('v').or_else(|| version.strip_prefix("cxx")).unwrap_or(version);
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// A name of at most `most` characters: of template arguments the innermost are left out first, then the last.
fn elide(text: &str, most: usize) -> Cow<'_, str> {
    if text.chars().count() <= most {
        return Cow::Borrowed(text);
    }
    let Some(levels) = levels(text) else { return cut_middle(text, most) };
    let mut length = 0;
    let mut deepest = None;
    for (depth, level) in levels.iter().enumerate() {
        length += level.characters;
        if length > most {
            break;
        }
        if length + level.opened <= most {
            deepest = Some(depth);
        }
    }
    match deepest {
        None => cut_middle(text, most),
        Some(0) => {
            let first = first_arguments(&to_depth(text, 1, most * 8), most);
            Cow::Owned(first.unwrap_or_else(|| to_depth(text, 0, usize::MAX)))
        }
        Some(depth) => Cow::Owned(to_depth(text, depth, usize::MAX)),
    }
}

/// What stands at one depth of brackets.
#[derive(Default, Clone)]
struct LevelOfName {
    characters: usize,
    opened: usize,
}

/// The brackets of a name; `None` where they do not match, as in `operator<`.
fn levels(text: &str) -> Option<Vec<LevelOfName>> {
    let mut levels = vec![LevelOfName::default()];
    let mut depth = 0_usize;
    let mut anonymous = 0;
    for (at, c) in text.char_indices() {
        if text[at..].starts_with(ANONYMOUS) {
            anonymous = at + ANONYMOUS.len();
        }
        let plain = at < anonymous;
        if !plain && matches!(c, '>' | ')' | ']' | '}') {
            depth = depth.checked_sub(1)?;
        }
        levels[depth].characters += 1;
        if !plain && matches!(c, '<' | '(' | '[' | '{') {
            levels[depth].opened += 1;
            depth += 1;
            if levels.len() == depth {
                levels.push(LevelOfName::default());
            }
        }
    }
    (depth == 0).then_some(levels)
}

/// `text` with `…` for what stands deeper than `deepest`, up to about `most` bytes.
fn to_depth(text: &str, deepest: usize, most: usize) -> String {
    let mut out = String::new();
    let mut depth = 0_usize;
    let mut anonymous = 0;
    for (at, c) in text.char_indices() {
        if out.len() >= most {
            break;
        }
        if text[at..].starts_with(ANONYMOUS) {
            anonymous = at + ANONYMOUS.len();
        }
        let plain = at < anonymous;
        if !plain && matches!(c, '>' | ')' | ']' | '}') {
            depth = depth.saturating_sub(1);
        }
        if depth <= deepest {
            out.push(c);
        }
        if !plain && matches!(c, '<' | '(' | '[' | '{') {
            depth += 1;
            let empty = text[at + c.len_utf8()..].starts_with(['>', ')', ']', '}']);
            if depth == deepest + 1 && !empty {
                out.push('…');
            }
        }
    }
    out
}

/// `name<first, second, …>` with as many arguments, without their namespaces, as there is room for; `None` where there is
/// none for the first.
fn first_arguments(text: &str, most: usize) -> Option<String> {
    let start = text.find(['<', '(', '[', '{']).filter(|at| text.as_bytes()[*at] == b'<')? + 1;
    let mut short = text[..start].to_owned();
    let mut length = short.chars().count();
    let mut depth = 0_usize;
    let mut from = start;
    for (at, c) in text.char_indices().skip_while(|(at, _)| *at < start) {
        match c {
            '<' | '(' | '[' | '{' => depth += 1,
            '>' | ')' | ']' | '}' if depth > 0 => depth -= 1,
            ',' | '>' if depth == 0 => {
                let argument = without_namespaces(text[from..at].trim_start());
                // Room for the `, …>` that ends it.
                length += argument.chars().count() + 2;
                if length + 2 > most {
                    break;
                }
                short.push_str(argument);
                if c == '>' {
                    // What follows the arguments is as long as it is.
                    let whole = format!("{short}{}", &text[at..]);
                    return (whole.chars().count() <= most).then_some(whole);
                }
                short.push_str(", ");
                from = at + 1;
            }
            _ => {}
        }
    }
    (short.len() > start).then(|| format!("{short}…>"))
}

/// The whole name, demangled where that is possible, safe to print.
#[must_use]
pub fn full(name: &[u8]) -> String {
    let text = demangle(name).map_or_else(|| String::from_utf8_lossy(name), Cow::Owned);
    printable(&text).into_owned()
}

/// `ns::k<4>` of a demangled `void ns::k<4>(float*)`; `None` for what is no signature.
fn signature_name(text: &str) -> Option<&str> {
    let open = position_at_depth_0(text, |rest| rest.starts_with('(') && !rest.starts_with("(anonymous"))?;
    let head = &text[..open];
    let start = rposition_at_depth_0(head, b' ').map_or(0, |blank| blank + 1);
    (open > start).then(|| &head[start..])
}

/// The last part of a name; of an operator, which says nothing alone, with its class, and of a lambda's with its function.
fn without_namespaces(text: &str) -> &str {
    let mut starts = [0; 3];
    let mut depth = 0_i32;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'<' | b'(' | b'[' | b'{' => depth += 1,
            b'>' | b')' | b']' | b'}' => depth -= 1,
            b':' if depth == 0 && text[at + 1..].starts_with(|c| c != ':') => starts = [starts[1], starts[2], at + 1],
            _ => {}
        }
    }
    // An operator's name may hold any of these; then the whole name is the best there is.
    if depth != 0 {
        return text;
    }
    let [function, class, own] = starts.map(|start| &text[start..]);
    let is_operator = own.strip_prefix("operator").is_some_and(|rest| rest.starts_with(|c: char| !is_word(c)));
    match is_operator {
        false => own,
        true if class.starts_with('{') => function,
        true => class,
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// First byte position outside template arguments where `found` holds for the rest of the text.
fn position_at_depth_0(text: &str, found: impl Fn(&str) -> bool) -> Option<usize> {
    let mut depth = 0_i32;
    let mut skip_to = 0;
    for (at, byte) in text.bytes().enumerate() {
        if at < skip_to {
            continue;
        }
        if text.as_bytes()[at..].starts_with(b"(anonymous namespace)") {
            skip_to = at + "(anonymous namespace)".len();
            continue;
        }
        match byte {
            b'<' => depth += 1,
            b'>' => depth -= 1,
            b'(' if depth == 0 && found(&text[at..]) => return Some(at),
            _ => {}
        }
    }
    None
}

fn rposition_at_depth_0(text: &str, wanted: u8) -> Option<usize> {
    let mut depth = 0_i32;
    let bytes = text.as_bytes();
    for at in (0..bytes.len()).rev() {
        match bytes[at] {
            b'>' | b')' => depth += 1,
            b'<' | b'(' => depth -= 1,
            byte if byte == wanted && depth == 0 => return Some(at),
            _ => {}
        }
    }
    None
}

/// `text` of at most `most` characters, the middle left out.
#[must_use]
pub fn cut_middle(text: &str, most: usize) -> Cow<'_, str> {
    let count = text.chars().count();
    if count <= most {
        return Cow::Borrowed(text);
    }
    let head = most * 2 / 3;
    let tail = most - head - 1;
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(count - tail).collect();
    Cow::Owned(format!("{start}…{end}"))
}

/// `text` with control characters, and characters that nobody sees or that change the direction of text, shown as escapes:
/// a name from a log must not be able to steer a terminal. A tab is a blank.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\t' => safe.push(' '),
            _ if is_harmful(c) => safe.extend(c.escape_unicode()),
            _ => safe.push(c),
        }
    }
    Cow::Owned(safe)
}

/// Whether a character steers a terminal, is not seen, or changes the direction of text.
#[must_use]
pub fn is_harmful(c: char) -> bool {
    let unseen = matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{feff}');
    c.is_control() || unseen || matches!(c, '\u{61c}' | '\u{2066}'..='\u{2069}')
}

/// The mangled name within a name that the compiler gives to what is static in a file,
/// `__nv_static_51__0afad4c0_22_cuda_device_runtime_cu_f78b5b52_735892__Z16memset_3d_deviceI…`; other names as they are.
#[must_use]
pub fn without_static(name: &[u8]) -> &[u8] {
    let Some(rest) = name.strip_prefix(b"__nv_static_") else { return name };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    // The name of the file may hold `__Z` too, its length is told; where it is told wrong the first will do.
    let length = std::str::from_utf8(&rest[..digits]).ok().and_then(|digits| digits.parse::<usize>().ok());
    let told = length.and_then(|length| rest.get(digits.checked_add(length)?.saturating_sub(2)..)).unwrap_or(rest);
    let lead = |text: &'_ [u8]| memchr::memmem::find(text, b"__Z");
    match (lead(told), lead(rest)) {
        (Some(at), _) => &told[at + 1..],
        (None, Some(at)) => &rest[at + 1..],
        (None, None) => name,
    }
}

/// Whether a kernel is one that the CUDA device runtime brings along, which nobody wrote.
#[must_use]
pub fn is_of_device_runtime(name: &[u8]) -> bool {
    name.starts_with(b"__nv_static_") && memchr::memmem::find(name, b"cuda_device_runtime").is_some()
}

/// The template arguments of a kernel, as `float,4`: without blanks, casts and versions of namespaces; `None` where it has
/// none, or is not understood.
#[must_use]
pub fn arguments(name: &[u8]) -> Option<String> {
    let demangled = demangle_with(name, DemangleOptions::new().no_params().no_return_type());
    let text = match demangled {
        Some(text) => tidy(&text),
        None => tidy(signature_name(&String::from_utf8_lossy(name))?),
    };
    let inner = text.strip_suffix('>')?;
    let open = opening_of_last(inner)?;
    Some(inner[open + 1..].chars().filter(|c| !c.is_whitespace()).collect())
}

/// Where the list begins that the end of `text` is in.
fn opening_of_last(text: &str) -> Option<usize> {
    let mut depth = 0_i32;
    for (at, byte) in text.bytes().enumerate().rev() {
        match byte {
            b'>' | b')' => depth += 1,
            b'<' | b'(' if depth == 0 => return (byte == b'<').then_some(at),
            b'<' | b'(' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// How many parameters a kernel has by its name; `None` where that does not tell it.
#[must_use]
pub fn parameters(name: &[u8]) -> Option<u32> {
    let text = demangle(name).map_or_else(|| String::from_utf8_lossy(name), Cow::Owned);
    let open = position_at_depth_0(&text, |rest| rest.starts_with('(') && !rest.starts_with("(anonymous"))?;
    let inner = text[open + 1..].trim_end().strip_suffix(')')?;
    if inner.is_empty() || inner == "void" {
        return Some(0);
    }
    let mut depth = 0_i32;
    let mut count = 1;
    for byte in inner.bytes() {
        match byte {
            b'<' | b'(' | b'[' | b'{' => depth += 1,
            b'>' | b')' | b']' | b'}' => depth -= 1,
            b',' if depth == 0 => count += 1,
            _ => {}
        }
    }
    (depth == 0).then_some(count)
}

/// The name of the file that a name was declared in, for what is static in a file or in an anonymous namespace, with all but
/// letters and digits as `_`: `basic_cu` of `_GLOBAL__N__0209cbc7_8_basic_cu_165af4d4`.
#[must_use]
pub fn file_of(name: &[u8]) -> Option<&[u8]> {
    const LEADS: [&[u8]; 2] = [b"_GLOBAL__N__", b"__nv_static_"];
    let (lead, at) = LEADS.iter().find_map(|lead| Some((*lead, memchr::memmem::find(name, lead)?)))?;
    let mut rest = &name[at + lead.len()..];
    if lead == LEADS[1] {
        // The length of all that follows.
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        rest = rest[digits..].strip_prefix(b"__")?;
    }
    let hash = rest.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let rest = rest[hash..].strip_prefix(b"_")?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let length: usize = std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
    rest[digits..].strip_prefix(b"_")?.get(..length).filter(|file| !file.is_empty())
}

/// The name without what differs from build to build: the hashes that the names of anonymous namespaces and of what is
/// static in a file hold, and the number of a copy of a function.
#[must_use]
pub fn key(name: &[u8]) -> Cow<'_, [u8]> {
    let name = without_static(name);
    let name = without_number(name, b'$').unwrap_or(name);
    let mut stable: Vec<u8> = Vec::new();
    let mut copied = 0;
    // In every such name stands this.
    for at in memchr::memmem::find_iter(name, b"AL_") {
        let Some(span) = FOLDED.iter().find_map(|lead| namespace(name, at, lead)).filter(|span| span.start >= copied)
        else {
            continue;
        };
        stable.extend_from_slice(&name[copied..span.start]);
        stable.extend_from_slice(ANONYMOUS.as_bytes());
        copied = span.end;
    }
    if copied == 0 {
        return Cow::Borrowed(name);
    }
    stable.extend_from_slice(&name[copied..]);
    Cow::Owned(stable)
}

/// How the compiler calls the anonymous namespace of a file, and what is static in one.
const FOLDED: [&[u8]; 2] = [b"_GLOBAL__N_", b"_INTERNAL_"];

/// The bytes of the namespace whose name begins with `lead`, its length included, where that holds `AL_` at `at`.
fn namespace(name: &[u8], at: usize, lead: &[u8]) -> Option<Range<usize>> {
    let start = at.checked_sub(memchr::memmem::find(lead, b"AL_")?)?;
    let hash = name.get(start..)?.strip_prefix(lead)?;
    let least = lead.len() + hashed(hash);
    // A namespace of a person's own may be called `_INTERNAL_x`.
    if lead == FOLDED[1] && least == lead.len() {
        return None;
    }
    // Of `4bar236_GLOBAL__N_…` the first two is of the name before, and tells a length that is too large.
    let digits = name[..start].iter().rev().take(5).take_while(|byte| byte.is_ascii_digit()).count();
    (1..=digits).find_map(|digits| {
        let length: usize = std::str::from_utf8(&name[start - digits..start]).ok()?.parse().ok()?;
        let end = start.checked_add(length)?;
        (length >= least && end <= name.len()).then_some(start - digits..end)
    })
}

/// The bytes of `_0209cbc7_8_basic_cu_165af4d4` or `0209cbc7_8_basic_cu_165af4d4` at the start of `text`; 0 where there is
/// something else.
fn hashed(text: &[u8]) -> usize {
    let hex = |text: &[u8]| text.iter().take(9).take_while(|byte| byte.is_ascii_hexdigit()).count() == 8;
    let rest = text.strip_prefix(b"_").unwrap_or(text);
    let lead = text.len() - rest.len();
    let Some(file) = rest.get(8..).filter(|_| hex(rest)).and_then(|rest| rest.strip_prefix(b"_")) else { return 0 };
    let digits = file.iter().take(4).take_while(|byte| byte.is_ascii_digit()).count();
    let length = std::str::from_utf8(&file[..digits]).ok().and_then(|digits| digits.parse::<usize>().ok());
    let end = length.map(|length| digits + 1 + length).filter(|end| *end <= file.len());
    let Some(end) = end else { return 0 };
    let last = file[end..].strip_prefix(b"_").filter(|rest| hex(rest)).map_or(0, |_| 9);
    lead + 9 + end + last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_are_what_a_person_calls_the_kernel() {
        for (name, expected) in [
            ("_Z8pressureILi128EEvPfPKf", "pressure<128>"),
            ("scale_c", "scale_c"),
            ("_Z11scale_plainPfPKffi", "scale_plain"),
            ("_ZN2wl6detail8pack_sumIdLi8EEEvNS0_4PackIT_XT0_EEEPS3_", "pack_sum<double, 8>"),
            ("_ZN40_GLOBAL__N__0209cbc7_8_basic_cu_165af4d411anon_kernelEPi", "anon_kernel"),
            ("_Z4polyPKfi$5", "poly"),
            ("void wl::detail::pack_sum<float, 4>(wl::detail::Pack<float, 4>, float*)", "pack_sum<float, 4>"),
            ("(anonymous namespace)::anon_kernel(int*)", "anon_kernel"),
            ("sweepCells(grid, int*, double)", "sweepCells"),
            (
                "void k_lambda<host(int*)::'lambda'(int)>(host(int*)::'lambda'(int), int*)",
                "k_lambda<host(int*)::'lambda'(int)>",
            ),
            ("Z8advectorPfS_S_S", "Z8advectorPfS_S_S"),
            ("__nv_static_21__0209cbc7_5_st_cu_rec__Z4statPf", "stat"),
            ("_Z4polyPKfS0__860", "poly"),
            ("_Z4polyPKfS0_860", "poly"),
            ("_Z3hotILj9ELm1248EEvPf", "hot<9, 1248>"),
            ("_Z9mul_mat_qIL9ggml_type2ELi8ELb0EEvPKcS2_Pfiiiii", "mul_mat_q<2, 8, false>"),
            ("void k<(bool)1, (ggml_type)-2>(int)", "k<true, -2>"),
            ("_Z1kIN3cub17_V_300500_SM_800_8NullTypeEEvv", "k<cub::NullType>"),
            ("_Z1kIN4cuda3std3__44plusIvEEEvv", "k<cuda::std::plus<void>>"),
            ("_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator() const"),
            ("_ZN1n6SquareclEi", "Square::operator()"),
            ("_ZN1n6SquareplERKS0_", "Square::operator+"),
            ("_Z15operator_kernelPf", "operator_kernel"),
            ("_ZN1AcvfEv", "A::operator float"),
            ("_Z1fIiEDTplfp_fp_ET_S0_", "f<int>"),
            ("_Z1kIDF16_EvT_", "k<_Float16>"),
        ] {
            assert_eq!(short(name.as_bytes()), expected, "{name}");
        }
    }

    #[test]
    fn long_names_lose_their_innermost_arguments_first() {
        let shortened = |text: &str| elide(text, 30).into_owned();
        assert_eq!(shortened("kernel<policy<int, float>, half>"), "kernel<policy<…>, half>");
        assert_eq!(shortened("kernel<a<b<c<int>>>, d<e<long long>>>"), "kernel<a<b<…>>, d<e<…>>>");
        assert_eq!(shortened("kernel<first, second<int>, third, fourth>"), "kernel<first, second<…>, …>");
        assert_eq!(shortened("kernel<ns::detail::second<int>, ns::third>"), "kernel<second<…>, third>");
        assert_eq!(shortened("a_kernel<one_very_long_argument_of_it, 2>"), "a_kernel<…>");
        assert_eq!(shortened("k<(anonymous namespace)::p<int, float>>"), "k<(anonymous namespace)::p<…>>");
        assert_eq!(shortened("a_name_without_any_arguments_that_is_long"), "a_name_without_any_a…t_is_long");
        let deep = format!("kernel{}int{}", "<a".repeat(20_000), ">".repeat(20_000));
        assert!(elide(&deep, 60).chars().count() <= 60);
        assert!(elide(&"(<".repeat(20_000), 60).chars().count() <= 60);
    }

    #[test]
    fn signatures_are_whole_and_bombs_are_refused() {
        assert_eq!(demangle(b"_Z5heavyILi200EEvPf").as_deref(), Some("void heavy<200>(float*)"));
        assert_eq!(demangle(b"scale_c"), None);
        for (name, shown) in [
            ("_Z1kIN1AIJiEEEJEEvT_DpT0_", "void k<A<int> >(A<int>)"),
            ("_Z1kI1AIJEiEEvT_", "void k<A<int> >(A<int>)"),
            ("_Z1kIJEEvDpT_", "void k<>()"),
            ("_Z1kIiJEcEvT_T1_", "void k<int, char>(int, char)"),
        ] {
            assert_eq!(demangle(name.as_bytes()).as_deref(), Some(shown), "{name}");
        }
        let mut bomb = String::from("_Z1kI");
        bomb.push_str(&"4pairI".repeat(3000));
        assert_eq!(demangle(bomb.as_bytes()), None);
        // Hours, if nobody looked first.
        let broken = |part: &str| format!("_Z1kI{}", part.repeat(60));
        for part in ["St8functionIF", "LSt1aI", "XLN1aI", "DTnwL", "StC1I", "StcvF"] {
            assert_eq!(demangle(broken(part).as_bytes()), None, "{part}");
        }
        let nested = |inner: &str| format!("_Z4goodI{}{inner}{}vv", "1AI".repeat(9), "E".repeat(10));
        for _ in 0..2000 {
            let closed = format!("_Z1kI{}{}", "St1aI".repeat(11), "E".repeat(12));
            assert_eq!(demangle(closed.as_bytes()), None);
        }
        // However often one broken name is met, others are shown.
        assert!(short(nested("i").as_bytes()).starts_with("good<A<"));
        for number in 0..PATIENCE {
            let closed = format!("_Z3k{number:02}I{}{}", "St1aI".repeat(9), "E".repeat(10));
            assert_eq!(demangle(closed.as_bytes()), None);
        }
        assert!(short(nested("f").as_bytes()).starts_with("_Z4good"), "enough is enough");
        assert!(short(bomb.as_bytes()).chars().count() <= MAX_SHORT);
    }

    #[test]
    fn arguments_parameters_and_file_are_read_off_a_name() {
        for (name, expected) in [
            ("_Z8pressureILi128EEvPfPKf", Some("128")),
            ("_ZN2wl6detail8pack_sumIdLi8EEEvNS0_4PackIT_XT0_EEEPS3_", Some("double,8")),
            ("_Z1kI1AIiEEvPT_", Some("A<int>")),
            ("void k<(bool)1, (ggml_type)-2>(int)", Some("true,-2")),
            ("_ZN1AIiE1fEPf", None),
            ("scale_c", None),
        ] {
            assert_eq!(arguments(name.as_bytes()).as_deref(), expected, "{name}");
        }
        for (name, expected) in [
            ("_Z8pressureILi128EEvPfPKf", Some(2)),
            ("_Z5emptyv", Some(0)),
            ("_ZN40_GLOBAL__N__0209cbc7_8_basic_cu_165af4d411anon_kernelEPi", Some(1)),
            ("sweepCells(grid, int*, std::pair<int, int>)", Some(3)),
            ("scale_c", None),
        ] {
            assert_eq!(parameters(name.as_bytes()), expected, "{name}");
        }
        let file = |name: &'static str| file_of(name.as_bytes()).map(String::from_utf8_lossy);
        let anonymous = "_ZN40_GLOBAL__N__0209cbc7_8_basic_cu_165af4d411anon_kernelEPi";
        assert_eq!(file(anonymous).as_deref(), Some("basic_cu"));
        assert_eq!(file("__nv_static_21__0209cbc7_5_st_cu_rec__Z4statPf").as_deref(), Some("st_cu"));
        assert_eq!(file("_Z5emptyv"), None);
    }

    #[test]
    fn a_key_survives_another_build() {
        let (one, two) = (
            b"_ZN40_GLOBAL__N__0209cbc7_8_basic_cu_165af4d411anon_kernelEPi",
            b"_ZN40_GLOBAL__N__ffffffff_8_basic_cu_0000000011anon_kernelEPi",
        );
        assert_eq!(key(one), key(two));
        assert_ne!(key(one), key(b"_ZN40_GLOBAL__N__0209cbc7_8_basic_cu_165af4d412other_kernelEPi"));
        assert_eq!(
            key(b"__nv_static_21__0209cbc7_5_st_cu_rec__Z4statPf"),
            key(b"__nv_static_21__ffffffff_5_st_cu_rec__Z4statPf")
        );
        assert_eq!(key(b"_ZN99_GLOBAL__N_x"), &b"_ZN99_GLOBAL__N_x"[..]);
        // What nvcc 13.5 makes of one source in two folders, and of the file under another name; also in a template argument,
        // and where device code is compiled to be linked.
        let static_anonymous = |hash: &str, file: &str| {
            let inner = format!("_ZN36_GLOBAL__N__{hash}_4_{file}_cu_884ad2bb2tkINS_1TEEEvT_Pi");
            let of_type = format!("_Z2tkIN36_GLOBAL__N__{hash}_4_{file}_cu_884ad2bb1TENS0_1UEEvT_Pi");
            [inner.clone(), of_type, format!("__nv_static_25__{hash}_4_{file}_cu_884ad2bb_{inner}")]
        };
        for (one, two) in static_anonymous("fd3ca0b6", "a").iter().zip(static_anonymous("36607313", "b")) {
            assert_eq!(key(one.as_bytes()), key(two.as_bytes()));
            assert!(!key(one.as_bytes()).windows(4).any(|part| part == b"fd3c"), "{one}");
        }
        let internal = key(b"_ZN4bar239_INTERNAL_fdb4ab2c_9_csrcol_cu_d5b33f9311anon_kernelEPi");
        assert_eq!(String::from_utf8_lossy(&internal), "_ZN4bar2(anonymous namespace)11anon_kernelEPi");
        assert_eq!(key(b"_ZN10_INTERNAL_4kernEPi"), &b"_ZN10_INTERNAL_4kernEPi"[..]);
        assert_eq!(key(b"_Z4polyPKfi$5"), key(b"_Z4polyPKfi$12"));
        let many = "12_GLOBAL__N_1".repeat(100_000);
        assert_eq!(key(many.as_bytes()).len(), 100_000 * ANONYMOUS.len());
    }

    #[test]
    fn damaged_names_are_names_too() {
        for name in [
            "_ZN3cub17_V_300500_SM_800_6detail6reduceILi4EN4cuda3std3__44plusIvEEfEEvT0_",
            "_Z8k_lambdaIZ4hostPiEUliE_EvT_S0_",
            "__nv_static_21__0209cbc7_5_st_cu_rec__Z4statILi1EXadL_Z1fvEEEvPf",
            "void k<(bool)1, (ns::kind)-2, (anonymous namespace)::a<b> >::f<4>(int)",
            "__nv_static_18446744073709551615__Z1kv",
        ] {
            for at in 0..name.len() {
                for byte in *b"(<>)0ESINZ_:\xc3" {
                    let mut damaged = name.as_bytes().to_vec();
                    damaged[at] = byte;
                    assert!(short(&damaged).chars().count() <= MAX_SHORT + 5, "{name}");
                    let _ = (key(&damaged), crate::model::base(&damaged), is_of_device_runtime(&damaged));
                    let _ = (arguments(&damaged), parameters(&damaged), file_of(&damaged));
                }
                let _ = (short(&name.as_bytes()[..at]), crate::model::base(&name.as_bytes()[..at]));
            }
        }
    }

    #[test]
    fn nothing_in_a_name_reaches_the_terminal_as_a_command() {
        assert_eq!(printable("k\x1b[2J\u{202e}x"), "k\\u{1b}[2J\\u{202e}x");
        for c in ['\u{feff}', '\u{200b}', '\u{200d}', '\u{2028}', '\u{2029}', '\u{2066}', '\u{9b}'] {
            assert!(printable(&c.to_string()).is_ascii(), "{c:?}");
        }
        assert_eq!(short(b"k\x1b[31m\xff"), "k\\u{1b}[31m\u{fffd}");
        assert_eq!(cut_middle("abcdefghij", 6), "abcd…j");
    }
}
