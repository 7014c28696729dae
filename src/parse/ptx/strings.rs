//! The strings of the section `.debug_str`, which hold the names of functions that were inlined.

use hashbrown::HashMap;

/// The strings of a module.
#[derive(Debug, Default)]
pub struct Strings {
    bytes: Vec<u8>,
    /// Where the string of a label begins.
    starts: HashMap<Vec<u8>, usize>,
}

impl Strings {
    /// Reads those of a module; none where it has no such section.
    #[must_use]
    pub fn of(text: &[u8]) -> Strings {
        let mut strings = Strings::default();
        let section = memchr::memmem::rfind(text, b".debug_str").map_or(&b""[..], |at| &text[at..]);
        let start = memchr::memchr(b'{', section).map_or(section.len(), |at| at + 1);
        let end = memchr::memchr(b'}', section).unwrap_or(section.len()).max(start);
        for line in section[start..end].split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii) {
            if let Some(label) = line.strip_suffix(b":") {
                strings.starts.insert(label.to_vec(), strings.bytes.len());
            } else if let Some(list) = line.strip_prefix(b".b8") {
                let number = |part: &[u8]| std::str::from_utf8(part.trim_ascii()).ok()?.parse::<u8>().ok();
                strings.bytes.extend(list.split(|byte| *byte == b',').filter_map(number));
            }
        }
        strings
    }

    /// The function that the code after `.loc 2 3 5, function_name $L__info_string0+12, inlined_at 1 4 5` comes from.
    #[must_use]
    pub fn function(&self, directive: &[u8]) -> Option<&[u8]> {
        let marker = b"function_name";
        let rest = directive[memchr::memmem::find(directive, marker)? + marker.len()..].trim_ascii_start();
        let word = &rest[..memchr::memchr3(b',', b'\n', b' ', rest).unwrap_or(rest.len())];
        let (label, offset) = match memchr::memchr(b'+', word) {
            Some(plus) => (&word[..plus], std::str::from_utf8(&word[plus + 1..]).ok()?.trim().parse().ok()?),
            None => (word, 0_usize),
        };
        let string = self.bytes.get(self.starts.get(label.trim_ascii())?.checked_add(offset)?..)?;
        let name = &string[..memchr::memchr(0, string)?];
        (!name.is_empty()).then_some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_function_of_inlined_code_is_named_by_its_string() {
        let text = b".section .debug_str\n\t{\n$L__info_string0:\n.b8 95,90,0\n.b8 104, 105\n.b8 0\n$L__info_string1:\n.b8 97,0\n\t}\n";
        let strings = Strings::of(text);
        let of =
            |word: &str| strings.function(format!(".loc 2 3 5, function_name {word}, inlined_at 1 4 5").as_bytes());
        assert_eq!(of("$L__info_string0"), Some(&b"_Z"[..]));
        assert_eq!(of("$L__info_string0+3"), Some(&b"hi"[..]));
        assert_eq!(of("$L__info_string1"), Some(&b"a"[..]));
        assert_eq!((of("$L__info_string2"), of("$L__info_string1+9"), of("")), (None, None, None));
    }

    #[test]
    fn broken_sections_hold_no_strings() {
        for text in ["", ".debug_str", ".debug_str }{", ".debug_str { .b8 300,x,\nA:", ".debug_str {\nA:\n.b8 65"] {
            assert_eq!(Strings::of(text.as_bytes()).function(b".loc 1 1 1, function_name A, inlined_at 1 1 1"), None);
        }
    }
}
