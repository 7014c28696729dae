//! What the functions of CUDA and its libraries cost that change no variable which they are given by its name.
//!
//! The figures are what the PTX of CUDA 13 for sm_80 weighs, without options that trade accuracy for speed. A name that the
//! compiler takes for more than one type has the figure of `float`, the least.

/// What a call costs; `None` of a function that is not known.
pub(super) fn cost(name: &[u8]) -> Option<u32> {
    if let Some(cost) = of_mathematics(name) {
        return Some(cost);
    }
    Some(match name {
        b"printf" => 24,
        b"memcpy" | b"memset" => 8,
        b"move" | b"forward" | b"infinity" | b"lowest" | b"epsilon" | b"quiet_NaN" => 0,
        b"clock64" | b"clock" => 1,
        _ if name.starts_with(b"make_") || is_vector(name) => 0,
        // A conversion, an instruction of its own name, or a fast form of a function.
        _ if name.starts_with(b"__") || name.starts_with(b"atomic") => 2,
        _ => return None,
    })
}

fn of_mathematics(name: &[u8]) -> Option<u32> {
    Some(match name {
        b"fabs" | b"fabsf" | b"abs" | b"fmax" | b"fmaxf" | b"fmin" | b"fminf" | b"fma" | b"fmaf" | b"floor"
        | b"floorf" | b"ceil" | b"ceilf" | b"rint" | b"rintf" | b"trunc" | b"truncf" | b"nearbyintf" | b"umax"
        | b"umin" | b"max" | b"min" | b"copysignf" | b"copysign" => 1,
        b"rsqrt" | b"rsqrtf" | b"exp2" | b"exp2f" | b"isnan" | b"isinf" | b"isfinite" | b"signbit" | b"llabs" => 2,
        b"round" | b"roundf" | b"lround" | b"lroundf" | b"fdim" | b"fdimf" => 4,
        b"__expf" | b"__logf" | b"__log2f" | b"__log10f" | b"__tanf" => 5,
        b"__powf" | b"__fdividef" => 6,
        b"exp" | b"expf" | b"exp10f" => 16,
        b"cbrt" | b"cbrtf" => 20,
        b"sqrt" | b"sqrtf" | b"__fsqrt_rn" | b"__frcp_rn" => 22,
        b"tanh" | b"tanhf" => 24,
        b"__fdiv_rn" => 26,
        b"cosh" | b"coshf" => 27,
        b"erf" | b"erff" => 28,
        b"atan" | b"atanf" => 29,
        b"asin" | b"asinf" | b"sinpif" | b"cospif" => 33,
        b"log" | b"logf" | b"log10" | b"log10f" | b"log2" | b"log2f" | b"log1p" | b"log1pf" | b"expm1" | b"expm1f"
        | b"acos" | b"acosf" => 35,
        b"sinh" | b"sinhf" | b"hypot" | b"hypotf" => 38,
        b"erfc" | b"erfcf" => 65,
        b"atan2" | b"atan2f" => 70,
        b"pow" | b"powf" => 110,
        b"sin" | b"sinf" | b"cos" | b"cosf" | b"tan" | b"tanf" => 113,
        b"sincos" | b"sincosf" => 122,
        b"fmod" | b"fmodf" => 174,
        b"tgamma" | b"tgammaf" | b"lgamma" | b"lgammaf" => 200,
        _ => return None,
    })
}

/// `float4`, `uint2` and the like, which are put together of what is in registers.
fn is_vector(name: &[u8]) -> bool {
    const OF: [&[u8]; 13] = [
        b"float",
        b"double",
        b"int",
        b"uint",
        b"char",
        b"uchar",
        b"short",
        b"ushort",
        b"long",
        b"ulong",
        b"longlong",
        b"ulonglong",
        b"dim",
    ];
    match name {
        [of @ .., b'1'..=b'4'] => OF.contains(&of),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::cost;

    #[test]
    fn what_is_one_instruction_is_far_from_what_has_a_slow_path() {
        for (name, expected) in [
            ("fmaxf", Some(1)),
            ("__sinf", Some(2)),
            ("sinf", Some(113)),
            ("make_float2", Some(0)),
            ("float4", Some(0)),
            ("atomicAdd", Some(2)),
            ("sort", None),
            ("float9", None),
            ("matrix4", None),
        ] {
            assert_eq!(cost(name.as_bytes()), expected, "{name}");
        }
    }
}
