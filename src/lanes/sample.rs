//! Numbers for what a kernel does not know before it runs: parameters, data, positions in the grid. The same in every run.

/// Mixes two numbers into one that looks like chance (the finaliser of SplitMix64, Steele, Lea and Flood 2014).
#[must_use]
#[inline]
pub fn mix(a: u64, b: u64) -> u64 {
    let mut bits = a.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ b.wrapping_add(0x9E37_79B9_7F4A_7C15).rotate_left(23);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

/// What kind of number to draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flavour {
    /// Sizes, counts, indices, flags.
    Integer,
    /// What memory holds: the same, and now and then a number below zero.
    Datum,
    /// Addresses of allocations.
    Pointer,
    /// `float`
    F32,
    /// `double`
    F64,
    /// 32 bits that may be either.
    Bits32,
    /// 64 bits that may be either.
    Bits64,
}

/// One number of the flavour for each `seed`.
#[must_use]
pub fn draw(flavour: Flavour, seed: u64) -> u64 {
    match flavour {
        Flavour::Integer => integer(seed),
        Flavour::Datum => match mix(seed, 6) % 16 {
            0 => u64::MAX,
            1 => integer(seed).wrapping_neg(),
            _ => integer(seed),
        },
        // The runtime aligns allocations to 256 bytes (CUDA Programming Guide, "Device Memory Accesses").
        Flavour::Pointer => (0x7f00_0000_0000 + (mix(seed, 1) & 0xffff_ffff)) << 8 & 0xffff_ffff_ff00,
        Flavour::F32 => u64::from(float(seed).to_bits()),
        Flavour::F64 => f64::from(float(seed)).to_bits(),
        Flavour::Bits32 if seed & 1 == 0 => draw(Flavour::F32, seed >> 1),
        Flavour::Bits64 if seed & 1 == 0 => draw(Flavour::F64, seed >> 1),
        Flavour::Bits32 | Flavour::Bits64 => draw(Flavour::Datum, seed >> 1),
    }
}

/// Small numbers, multiples of 32, powers of two and odd ones, up to two millions: the sizes that programs are run with.
fn integer(seed: u64) -> u64 {
    let choice = mix(seed, 2) % 100;
    let bits = mix(seed, 3);
    match choice {
        0..25 => bits % 9,
        25..37 => 32 << (bits % 15),
        37..50 => 32 * (1 + bits % 4096),
        50..72 => any(bits) | 1,
        _ => any(bits),
    }
}

/// Sizes from 64 to 2^21, every order of magnitude as likely as any other.
fn any(bits: u64) -> u64 {
    let magnitude = 6 + (bits >> 40) % 15;
    (1 << magnitude) + (bits & 0xff_ffff_ffff) % (1 << magnitude)
}

/// Around zero, most within ±4: the sum of four even ones, near enough to a normal distribution.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "small numbers")]
fn float(seed: u64) -> f32 {
    let bits = mix(seed, 4);
    let parts = [bits & 0xffff, bits >> 16 & 0xffff, bits >> 32 & 0xffff, bits >> 48];
    let sum: f32 = parts.iter().map(|part| *part as f32 / 65535.0).sum();
    // A quarter are steps and tolerances, which are small.
    let scale = if mix(seed, 7).is_multiple_of(4) { 0.5_f32.powi((mix(seed, 8) % 13) as i32) } else { 1.0 };
    (sum - 2.0) * 3.5 * scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_of_every_kind_that_programs_are_run_with() {
        let drawn: Vec<u64> = (0..1000).map(|seed| draw(Flavour::Integer, mix(seed, 9))).collect();
        let count = |is_one: fn(&u64) -> bool| drawn.iter().filter(|number| is_one(number)).count();
        assert!(count(|number| *number < 9) > 200);
        assert!(count(|number| number.is_multiple_of(32) && *number > 0) > 200);
        assert!(count(|number| number.is_power_of_two() && *number > 16) > 60);
        assert!(count(|number| number % 2 == 1) > 200);
        assert!(drawn.iter().all(|number| *number < 1 << 22));
    }

    #[test]
    fn pointers_are_aligned_and_floats_have_both_signs() {
        assert!((0..100).all(|seed| draw(Flavour::Pointer, seed).is_multiple_of(256)));
        let negative = (0..1000).filter(|seed| float(mix(*seed, 5)) < 0.0).count();
        assert!((400..600).contains(&negative), "{negative}");
    }
}
