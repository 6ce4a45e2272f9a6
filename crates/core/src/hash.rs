//! A hash that is the same in every build and process.

/// Returns the 64-bit FNV-1a hash of a text (Fowler, Noll and Vo). It detects accidental changes, not attacks.
#[must_use]
pub fn fnv1a(text: &str) -> u64 {
    const PRIME: u64 = 0x0100_0000_01b3;
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of the reference implementation.
    #[test]
    fn it_is_the_hash_of_the_reference() {
        assert_eq!(fnv1a(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a("foobar"), 0x8594_4171_f739_67e8);
    }
}
