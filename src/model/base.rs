//! What all instantiations of a template share, read off a mangled name without demangling it: one pass, no allocation
//! beyond the answer.

use std::borrow::Cow;

use super::mangled;
use super::symbol::without_static;

/// The qualified name, as `A<…>::f`, with the template arguments left out at every level and without parameters. A name
/// of another form, or one that is not understood to its end, is its own base.
#[must_use]
pub fn base(name: &[u8]) -> Cow<'_, [u8]> {
    let inner = without_static(name);
    if let Some(encoding) = inner.strip_prefix(b"_Z") {
        return mangled::base(encoding).map_or(Cow::Borrowed(name), Cow::Owned);
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
            ("_Z1kISt17integral_constantIbLb1EELSt4byte0EPFvDpT_DnEN1A1BIiEC2EA4_KcEvv", "k<…>"),
            ("_Z1kIL_ZN1AL1fEiEEEvv", "k<…>"),
            ("_Z1kIXsr2ns1AIiEE1vEEvv", "k<…>"),
            ("_Z1kIXoosr1AIiEE1vclL_Z1fiELi3EEEEvv", "k<…>"),
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
            "_Z1kI1ACfEvv",
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
