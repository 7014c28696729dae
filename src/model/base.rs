//! What all instantiations of a template share, read off a mangled name without demangling it: one pass, no allocation
//! beyond the answer.

use std::borrow::Cow;

use super::symbol::without_static;

/// Deepest nesting that is followed.
const MAX_DEPTH: u32 = 64;

/// The qualified name, as `A<…>::f`, with the template arguments left out at every level and without parameters. A name
/// of another form, or one that is not understood to its end, is its own base.
#[must_use]
pub fn base(name: &[u8]) -> Cow<'_, [u8]> {
    let inner = without_static(name);
    if let Some(mangled) = inner.strip_prefix(b"_Z") {
        let mut reader = Reader { rest: mangled, depth: 0, out: Some(Vec::new()) };
        let read = reader.name();
        return match (read, reader.out) {
            (Some(()), Some(base)) if !base.is_empty() => Cow::Owned(base),
            _ => Cow::Borrowed(name),
        };
    }
    written_base(name).map_or(Cow::Borrowed(name), Cow::Owned)
}

/// The base of a demangled `void A<int>::f<4>(float*)`: without what stands in template arguments and from the
/// parameters on.
fn written_base(text: &[u8]) -> Option<Vec<u8>> {
    const ANONYMOUS: &[u8] = b"(anonymous namespace)";
    // The name of a C function, or of a runtime compiler.
    memchr::memchr2(b'<', b'(', text)?;
    if memchr::memmem::find(text, b"operator").is_some() {
        return None;
    }
    let mut base = Vec::new();
    let mut depth = 0_usize;
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if depth == 0 && rest.starts_with(ANONYMOUS) {
            base.extend_from_slice(ANONYMOUS);
            at += ANONYMOUS.len();
            continue;
        }
        match text[at] {
            b'(' if depth == 0 => break,
            b'<' if depth == 0 => {
                base.extend_from_slice("<…>".as_bytes());
                depth = 1;
            }
            b'<' | b'(' | b'[' | b'{' if depth > 0 => depth += 1,
            b'>' | b')' | b']' | b'}' if depth > 0 => depth -= 1,
            byte if depth == 0 => base.push(byte),
            _ => {}
        }
        at += 1;
    }
    (depth == 0 && !base.is_empty() && base.len() < text.len()).then_some(base)
}

/// Reads the grammar of mangled names as far as names of kernels use it. `None` means: not understood.
struct Reader<'a> {
    rest: &'a [u8],
    depth: u32,
    /// What was read of the name; `None` within template arguments and other parts that are left out.
    out: Option<Vec<u8>>,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    fn eat(&mut self, lead: &[u8]) -> bool {
        let eaten = self.rest.strip_prefix(lead);
        self.rest = eaten.unwrap_or(self.rest);
        eaten.is_some()
    }

    fn say(&mut self, part: &[u8]) {
        if let Some(out) = &mut self.out {
            if !out.is_empty() && part != "<…>".as_bytes() {
                out.extend_from_slice(b"::");
            }
            out.extend_from_slice(part);
        }
    }

    /// Runs `read` one level deeper, and without keeping what it reads.
    fn silently(&mut self, read: impl FnOnce(&mut Self) -> Option<()>) -> Option<()> {
        if self.depth == MAX_DEPTH {
            return None;
        }
        let out = self.out.take();
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        self.out = out;
        result
    }

    /// `N2ns1AIiE1fE`, `8pressureILi128EE`, `St4swap`.
    fn name(&mut self) -> Option<()> {
        if self.eat(b"N") {
            while self.eat(b"K") || self.eat(b"V") || self.eat(b"r") {}
            let _ = self.eat(b"R") || self.eat(b"O");
            let mut first = true;
            while !self.eat(b"E") {
                self.part(first)?;
                first = false;
            }
            return (!first).then_some(());
        }
        // `St4swap` is two parts.
        let of_std = self.rest.starts_with(b"St");
        self.part(true)?;
        if of_std {
            self.part(false)?;
        }
        if self.peek() == Some(b'I') {
            self.arguments()?;
        }
        Some(())
    }

    /// One part of a nested name.
    fn part(&mut self, first: bool) -> Option<()> {
        let _ = self.eat(b"L");
        match self.peek()? {
            b'0'..=b'9' => {
                let identifier = self.identifier()?;
                // The name of an anonymous namespace holds a hash that differs from build to build.
                let anonymous = identifier.starts_with(b"_GLOBAL__N_");
                self.say(if anonymous { b"(anonymous namespace)" } else { identifier });
                while self.eat(b"B") {
                    self.identifier()?;
                }
                Some(())
            }
            b'I' if !first => self.arguments(),
            b'S' => {
                let from = self.rest;
                self.substitution()?;
                self.say(&from[..from.len() - self.rest.len()]);
                Some(())
            }
            b'C' | b'D' if !first && matches!(self.rest.get(1), Some(b'0'..=b'5')) => {
                let part = &self.rest[..2];
                self.rest = &self.rest[2..];
                self.say(part);
                Some(())
            }
            // Names of operators, but none that hold a type.
            b'a'..=b'z' if self.rest.get(1).is_some_and(u8::is_ascii_alphabetic) => {
                let operator = &self.rest[..2];
                if matches!(operator, b"cv" | b"li") {
                    return None;
                }
                self.rest = &self.rest[2..];
                self.say(b"operator ");
                if let Some(out) = &mut self.out {
                    out.extend_from_slice(operator);
                }
                Some(())
            }
            b'T' if self.out.is_none() => self.parameter(),
            b'U' if self.out.is_none() => self.unnamed(),
            _ => None,
        }
    }

    fn identifier(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        let identifier = self.rest.get(..length)?;
        self.rest = &self.rest[length..];
        (length > 0).then_some(identifier)
    }

    fn number(&mut self) -> Option<usize> {
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = std::str::from_utf8(&self.rest[..digits]).ok()?.parse().ok();
        self.rest = &self.rest[digits..];
        number
    }

    fn arguments(&mut self) -> Option<()> {
        self.say("<…>".as_bytes());
        self.silently(Self::argument_list)
    }

    fn argument_list(&mut self) -> Option<()> {
        if !self.eat(b"I") {
            return None;
        }
        while !self.eat(b"E") {
            self.argument()?;
        }
        Some(())
    }

    fn argument(&mut self) -> Option<()> {
        match self.peek()? {
            b'L' => self.literal(),
            b'J' => self.silently(|reader| {
                reader.rest = &reader.rest[1..];
                while !reader.eat(b"E") {
                    reader.argument()?;
                }
                Some(())
            }),
            b'X' => {
                self.rest = &self.rest[1..];
                // Other expressions are seldom in the names of kernels, and hard.
                let _ = self.eat(b"ad");
                self.literal()?;
                self.eat(b"E").then_some(())
            }
            _ => self.a_type(),
        }
    }

    /// `Li128E`, `Lb1E`, `LN2ns4KindE2E`, `L_Z3fooiE`.
    fn literal(&mut self) -> Option<()> {
        if !self.eat(b"L") {
            return None;
        }
        if self.eat(b"_Z") {
            self.silently(Self::encoding)?;
            return self.eat(b"E").then_some(());
        }
        self.a_type()?;
        let value =
            self.rest.iter().take_while(|byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f' | b'n' | b'_'));
        let value = value.count();
        self.rest = &self.rest[value..];
        self.eat(b"E").then_some(())
    }

    fn a_type(&mut self) -> Option<()> {
        self.silently(Self::bare_type)
    }

    fn bare_type(&mut self) -> Option<()> {
        // Qualifiers, pointers and references.
        while let Some(b'P' | b'R' | b'O' | b'K' | b'V' | b'r' | b'C' | b'G') = self.peek() {
            self.rest = &self.rest[1..];
        }
        match self.peek()? {
            b'0'..=b'9' | b'N' => self.name(),
            b'Z' => self.local_name(),
            b'S' => {
                let of_std = self.rest.starts_with(b"St");
                self.substitution()?;
                if of_std {
                    self.identifier()?;
                }
                if self.peek() == Some(b'I') { self.silently(Self::argument_list) } else { Some(()) }
            }
            b'T' => {
                self.parameter()?;
                if self.peek() == Some(b'I') { self.silently(Self::argument_list) } else { Some(()) }
            }
            b'F' => {
                self.rest = &self.rest[1..];
                let _ = self.eat(b"Y");
                while !self.eat(b"E") {
                    self.a_type()?;
                }
                Some(())
            }
            b'A' => {
                self.rest = &self.rest[1..];
                self.number();
                if !self.eat(b"_") {
                    return None;
                }
                self.a_type()
            }
            b'M' => {
                self.rest = &self.rest[1..];
                self.a_type()?;
                self.a_type()
            }
            b'U' => self.unnamed(),
            b'D' => {
                let kind = *self.rest.get(1)?;
                self.rest = &self.rest[2..];
                match kind {
                    b'p' => self.a_type(),
                    b'o' => self.a_type(),
                    b'n' | b'h' | b'i' | b's' | b'u' | b'a' | b'c' | b'd' | b'e' | b'f' => Some(()),
                    b'v' => {
                        self.number()?;
                        if !self.eat(b"_") {
                            return None;
                        }
                        self.a_type()
                    }
                    _ => None,
                }
            }
            b'u' => {
                self.rest = &self.rest[1..];
                self.identifier().map(drop)
            }
            b'a'..=b'z' => {
                self.rest = &self.rest[1..];
                Some(())
            }
            _ => None,
        }
    }

    /// `S_`, `S1A_`, `St`, `Sa`.
    fn substitution(&mut self) -> Option<()> {
        self.rest = self.rest.strip_prefix(b"S")?;
        if matches!(self.peek()?, b't' | b'a' | b'b' | b's' | b'i' | b'o' | b'd') {
            self.rest = &self.rest[1..];
            return Some(());
        }
        self.sequence()
    }

    /// `T_`, `T12_`.
    fn parameter(&mut self) -> Option<()> {
        self.rest = self.rest.strip_prefix(b"T")?;
        self.sequence()
    }

    /// A number, which may be left out, and `_`.
    fn sequence(&mut self) -> Option<()> {
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase()).count();
        self.rest = &self.rest[digits..];
        self.eat(b"_").then_some(())
    }

    /// `Ut_`, `UlvE_`.
    fn unnamed(&mut self) -> Option<()> {
        if self.eat(b"Ul") {
            while !self.eat(b"E") {
                self.a_type()?;
            }
            return self.sequence();
        }
        if self.eat(b"Ut") { self.sequence() } else { None }
    }

    /// `Z4mainENKUlvE_E`: what stands in a function.
    fn local_name(&mut self) -> Option<()> {
        self.rest = self.rest.strip_prefix(b"Z")?;
        self.silently(Self::encoding)?;
        if !self.eat(b"E") {
            return None;
        }
        if !self.eat(b"s") {
            let whose_default = self.eat(b"d");
            if whose_default {
                self.sequence()?;
            }
            self.silently(Self::bare_type)?;
        }
        if self.eat(b"__") {
            self.number()?;
            self.eat(b"_").then_some(())
        } else if self.rest.first() == Some(&b'_') && self.rest.get(1).is_some_and(u8::is_ascii_digit) {
            self.rest = &self.rest[2..];
            Some(())
        } else {
            Some(())
        }
    }

    /// A function within a name: its name and the types of its parameters, up to the `E` that ends it.
    fn encoding(&mut self) -> Option<()> {
        if self.peek() == Some(b'Z') {
            self.local_name()?
        } else {
            self.name()?
        }
        while !matches!(self.peek()?, b'E') {
            self.a_type()?;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(name: &str) -> String {
        String::from_utf8_lossy(&base(name.as_bytes())).into_owned()
    }

    #[test]
    fn a_base_is_the_qualified_name_without_template_arguments() {
        for (name, expected) in [
            ("_Z8pressureILi128EEvPfPKf", "pressure<…>"),
            ("_ZN1AIiE1fEPf", "A<…>::f"),
            ("_ZN1AIiE1gEPf", "A<…>::g"),
            ("_ZN2wl8pack_sumIdLi8EEEvT_", "wl::pack_sum<…>"),
            ("_ZN9ContainerI13ComplexType_tED0Ev", "Container<…>::D0"),
            ("_ZN4dim3C1E5uint3", "dim3::C1"),
            ("_Zmi6float3S_", "operator mi"),
            ("_Z12soft_max_f32ILb1ELi32ELi32E6__halfEvPKfPKT2_S2_Pf15soft_max_params", "soft_max_f32<…>"),
            ("_Z9mul_mat_qIL9ggml_type2ELi8ELb0EEvPKcS2_Pfiiiii", "mul_mat_q<…>"),
            (
                "_ZN3cub17_V_300500_SM_800_6detail6reduceILi4EN4cuda3std3__44plusIvEEfEEvT0_",
                "cub::_V_300500_SM_800_::detail::reduce<…>",
            ),
            ("_ZSt4swapIiEvRT_S1_", "St::swap<…>"),
            ("_Z1kIXadL_Z1fiEEEvv", "k<…>"),
            ("_Z8k_lambdaIZ4hostPiEUliE_EvT_S0_", "k_lambda<…>"),
            ("_Z1kIZN1A4hostEvEUlvE0_JifEEvT_", "k<…>"),
            ("_ZN40_GLOBAL__N__0209cbc7_8_basic_cu_165af4d411anon_kernelEPi", "(anonymous namespace)::anon_kernel"),
            ("__nv_static_21__0209cbc7_5_st_cu_rec__Z4statILi1EEvPf", "stat<…>"),
            ("void A<int, (Kind)2>::f<4>(float*)", "void A<…>::f<…>"),
            ("(anonymous namespace)::anon_kernel(int*)", "(anonymous namespace)::anon_kernel"),
            ("scale_c", "scale_c"),
        ] {
            assert_eq!(said(name), expected, "{name}");
        }
    }

    #[test]
    fn what_is_not_understood_is_its_own_base() {
        let deep = format!("_Z1k{}", "I1kI".repeat(4000));
        for name in [
            "_Z99short",
            "_ZN1AIiE1f",
            "_Z",
            "_ZN",
            "_Z1kIXsr1AIiE1vEEvv",
            "_ZZ4mainENKUlvE_clEv",
            "bool operator<(A<int>, A<int>)",
            "void broken<int(",
            &deep,
        ] {
            assert_eq!(said(name), name);
        }
    }

    #[test]
    fn members_of_one_template_have_different_bases_and_instances_the_same() {
        let same = |a: &str, b: &str| base(a.as_bytes()) == base(b.as_bytes());
        assert!(!same("_ZN1AIiE1fEPf", "_ZN1AIiE1gEPf"));
        assert!(!same("void A<int>::f(float*)", "void A<int>::g(float*)"));
        assert!(!same("_ZN1AIiE1fEPf", "_ZN1A1fEPf"));
        assert!(same("_ZN1AIiE1fEPf", "_ZN1AI5PointIfEE1fEPf"));
    }
}
