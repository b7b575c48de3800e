//! A number for many bytes.

/// A number that differs for different inputs, and is the same on every rank and in every build (FNV-1a).
///
/// ```
/// assert_eq!(allhands_schedule::hash(*b"foobar"), 0x8594_4171_f739_67e8);
/// ```
pub fn hash(bytes: impl IntoIterator<Item = u8>) -> u64 {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, mix)
}
