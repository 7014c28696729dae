//! The bits of a register, and the numbers that they stand for.

/// The low `bits` bits.
#[inline]
pub(super) fn mask(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// A number of so many bits with its sign.
#[inline]
pub(in crate::lanes) fn signed(value: u64, bits: u32) -> i64 {
    let shift = 64 - bits.clamp(1, 64);
    (value << shift).cast_signed() >> shift
}

#[inline]
pub(super) fn f32_of(bits: u64) -> f32 {
    #[allow(clippy::cast_possible_truncation, reason = "a register of 32 bits")]
    f32::from_bits(bits as u32)
}

#[inline]
pub(super) fn of_f32(value: f32) -> u64 {
    u64::from(value.to_bits())
}
