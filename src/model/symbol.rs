//! Names as people read them: demangled, shortened, made safe to print; and the base that instantiations share.

use std::borrow::Cow;
use std::fmt::{self, Write};

use cpp_demangle::{BorrowedSymbol, DemangleOptions, ParseOptions};

/// Longest demangled name; 268 bytes of input can ask for 218 MB.
const MAX_DEMANGLED: usize = 64 * 1024;
/// Deep enough for the names of template libraries, shallow enough for the stack that the program gives itself.
const MAX_DEPTH: u32 = 1000;
/// Longest short name, in characters.
const MAX_SHORT: usize = 60;

/// The full C++ signature of a mangled name; `None` where there is none, or it is too large.
#[must_use]
pub fn demangle(name: &[u8]) -> Option<String> {
    demangle_with(name, DemangleOptions::new())
}

fn demangle_with(name: &[u8], options: DemangleOptions) -> Option<String> {
    if !name.starts_with(b"_Z") {
        return None;
    }
    let parse = ParseOptions::default().recursion_limit(MAX_DEPTH);
    let symbol = BorrowedSymbol::new_with_options(without_clone(name), &parse).ok()?;
    let mut text = Capped(String::new());
    symbol.structured_demangle(&mut text, &options.recursion_limit(MAX_DEPTH)).ok()?;
    Some(text.0)
}

/// The compiler numbers copies of a function: `_Z4polyPKfi$5`.
fn without_clone(name: &[u8]) -> &[u8] {
    match memchr::memrchr(b'$', name) {
        Some(at) if at + 1 < name.len() && name[at + 1..].iter().all(u8::is_ascii_digit) => &name[..at],
        _ => name,
    }
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
        Some(text) => without_namespaces(&text).to_owned(),
        None => {
            let text = String::from_utf8_lossy(name);
            match signature_name(&text) {
                Some(called) => without_namespaces(called).to_owned(),
                None => text.into_owned(),
            }
        }
    };
    printable(&cut_middle(&text, MAX_SHORT)).into_owned()
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

fn without_namespaces(text: &str) -> &str {
    let mut start = 0;
    let mut depth = 0_i32;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'<' | b'(' | b'[' | b'{' => depth += 1,
            b'>' | b')' | b']' | b'}' => depth -= 1,
            b':' if depth == 0 => start = at + 1,
            _ => {}
        }
    }
    // An operator's name may hold any of these; then the whole name is the best there is.
    if depth == 0 && start < text.len() { &text[start..] } else { text }
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

/// `text` with control characters, and characters that change the direction of text, shown as escapes: a name from a log
/// must not be able to steer a terminal.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    let harmful = |c: char| {
        c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(harmful) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if harmful(c) {
            safe.extend(c.escape_unicode());
        } else {
            safe.push(c);
        }
    }
    Cow::Owned(safe)
}

/// What all instantiations of a template share: the qualified name without template arguments and parameters, read off
/// the name without demangling it. A name of another form is its own base.
#[must_use]
pub fn base(name: &[u8]) -> Cow<'_, [u8]> {
    if let Some(mangled) = name.strip_prefix(b"_Z") {
        return mangled_base(mangled).map_or(Cow::Borrowed(name), Cow::Owned);
    }
    let end = name.iter().position(|b| matches!(b, b'<' | b'('));
    match end {
        Some(end) if end > 0 => Cow::Borrowed(&name[..end]),
        _ => Cow::Borrowed(name),
    }
}

/// The identifiers of `N2ns6kernelILi4EE…` or `8pressureILi128EE…`: each is its length and its letters.
fn mangled_base(mangled: &[u8]) -> Option<Vec<u8>> {
    let mut rest = mangled.strip_prefix(b"N").unwrap_or(mangled);
    let mut base = Vec::new();
    loop {
        // Internal linkage and cv-qualifiers stand before a name, `S` names a part of the standard library.
        rest = rest.strip_prefix(b"L").or_else(|| rest.strip_prefix(b"K")).unwrap_or(rest);
        rest = rest.strip_prefix(b"St").unwrap_or(rest);
        let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        if digits == 0 {
            break;
        }
        let length: usize = std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
        let identifier = rest.get(digits..digits.checked_add(length)?)?;
        if !base.is_empty() {
            base.extend_from_slice(b"::");
        }
        // The name of an anonymous namespace holds a hash that differs from build to build.
        let anonymous = identifier.starts_with(b"_GLOBAL__N_");
        base.extend_from_slice(if anonymous { b"(anonymous namespace)" } else { identifier });
        rest = &rest[digits + length..];
    }
    (!base.is_empty()).then_some(base)
}

/// The name without what differs from build to build: the hash that the name of an anonymous namespace holds.
#[must_use]
pub fn key(name: &[u8]) -> Cow<'_, [u8]> {
    const LEAD: &[u8] = b"_GLOBAL__N_";
    let Some(at) = memchr::memmem::find(name, LEAD) else { return Cow::Borrowed(name) };
    let digits = name[..at].iter().rev().take_while(|b| b.is_ascii_digit()).count();
    let length = std::str::from_utf8(&name[at - digits..at]).ok().and_then(|digits| digits.parse::<usize>().ok());
    let Some(end) = length.and_then(|length| at.checked_add(length)).filter(|end| *end <= name.len()) else {
        return Cow::Borrowed(name);
    };
    let mut stable = name[..at - digits].to_vec();
    stable.extend_from_slice(b"(anonymous namespace)");
    stable.extend_from_slice(&key(&name[end..]));
    Cow::Owned(stable)
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
        ] {
            assert_eq!(short(name.as_bytes()), expected, "{name}");
        }
    }

    #[test]
    fn signatures_are_whole_and_bombs_are_refused() {
        assert_eq!(demangle(b"_Z5heavyILi200EEvPf").as_deref(), Some("void heavy<200>(float*)"));
        assert_eq!(demangle(b"scale_c"), None);
        let mut bomb = String::from("_Z1kI");
        bomb.push_str(&"4pairI".repeat(3000));
        assert_eq!(demangle(bomb.as_bytes()), None);
        assert!(short(bomb.as_bytes()).chars().count() <= MAX_SHORT);
    }

    #[test]
    fn instantiations_share_a_base_and_different_kernels_do_not() {
        let same = |a: &str, b: &str| base(a.as_bytes()) == base(b.as_bytes());
        assert!(same("_Z8pressureILi128EEvPfPKf", "_Z8pressureILi24EEvPfPKf"));
        assert!(same("_ZN2wl8pack_sumIdLi8EEEvT_", "_ZN2wl8pack_sumIfLi4EEEvT_"));
        assert!(same(
            "_ZN40_GLOBAL__N__0209cbc7_8_basic_cu_165af4d411anon_kernelEPi",
            "_ZN40_GLOBAL__N__ffffffff_8_basic_cu_0000000011anon_kernelEPi"
        ));
        assert!(same("void k<1>(int)", "void k<2>(int)"));
        assert!(!same("_Z1aPf", "_Z1bPf"));
        assert!(!same("kernel_1", "kernel_2"));
        assert_eq!(base(b"_Z99short"), &b"_Z99short"[..]);
    }

    #[test]
    fn a_key_survives_another_build() {
        let (one, two) = (
            b"_ZN40_GLOBAL__N__0209cbc7_8_basic_cu_165af4d411anon_kernelEPi",
            b"_ZN40_GLOBAL__N__ffffffff_8_basic_cu_0000000011anon_kernelEPi",
        );
        assert_eq!(key(one), key(two));
        assert_ne!(key(one), key(b"_ZN40_GLOBAL__N__0209cbc7_8_basic_cu_165af4d412other_kernelEPi"));
        assert_eq!(key(b"_ZN99_GLOBAL__N_x"), &b"_ZN99_GLOBAL__N_x"[..]);
    }

    #[test]
    fn nothing_in_a_name_reaches_the_terminal_as_a_command() {
        assert_eq!(printable("k\x1b[2J\u{202e}x"), "k\\u{1b}[2J\\u{202e}x");
        assert_eq!(short(b"k\x1b[31m\xff"), "k\\u{1b}[31m\u{fffd}");
        assert_eq!(cut_middle("abcdefghij", 6), "abcd…j");
    }
}
