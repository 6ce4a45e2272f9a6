//! Secrets of access tokens and their hashes.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq;

/// The number of random bytes in a token: one for each character of the prefix, and the 256 bits of the secret.
pub const RANDOM_BYTES: usize = PREFIX_CHARS + KEY_BYTES;

const KEY_BYTES: usize = 32;
const KEY_CHARS: usize = 43;
const PREFIX_CHARS: usize = 8;
const MARK: &str = "mp_";
/// The alphabet of prefixes: 32 characters that are not mistaken for one another.
const PREFIX_ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// A token: `mp_`, the prefix, `_`, and 32 random bytes in base64url. Only [`reveal`](Self::reveal) returns its text.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Creates a token from random bytes.
    #[must_use]
    pub fn of_random(random: &[u8; RANDOM_BYTES]) -> Self {
        let (prefix, key) = random.split_at(PREFIX_CHARS);
        let prefix: String =
            prefix.iter().map(|byte| char::from(PREFIX_ALPHABET[usize::from(byte % 32)])).collect();
        Self(format!("{MARK}{prefix}_{}", URL_SAFE_NO_PAD.encode(key)))
    }

    /// Parses a token; `None` when the text is not one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(MARK)?.as_bytes();
        let (prefix, key) = (rest.get(..PREFIX_CHARS)?, rest.get(PREFIX_CHARS + 1..)?);
        let is_token = prefix.iter().all(|byte| PREFIX_ALPHABET.contains(byte))
            && rest[PREFIX_CHARS] == b'_'
            && key.len() == KEY_CHARS
            && URL_SAFE_NO_PAD.decode(key).is_ok_and(|key| key.len() == KEY_BYTES);
        is_token.then(|| Self(text.to_owned()))
    }

    /// Returns the public part.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.0[MARK.len()..MARK.len() + PREFIX_CHARS]
    }

    /// Returns the hash that a store keeps.
    #[must_use]
    pub fn hash(&self) -> Digest {
        Digest::of(&self.0)
    }

    /// Returns the complete text, for the user that the token is created for.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({MARK}{}_…)", self.prefix())
    }
}

/// The SHA-256 hash of a secret, compared in constant time.
#[derive(Clone, Copy)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Returns the hash of a text.
    #[must_use]
    pub fn of(secret: &str) -> Self {
        Self(Sha256::digest(secret).into())
    }

    /// Returns the hash of this hash.
    #[must_use]
    pub(super) fn again(&self) -> Self {
        Self(Sha256::digest(self.0).into())
    }

    /// Returns a stored hash; `None` when the number of bytes is wrong.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// Returns its bytes for storage.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl PartialEq for Digest {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for Digest {}

// A reader of a log must not be able to find out which secrets are equal.
impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digest(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret() -> Secret {
        Secret::of_random(&std::array::from_fn(|at| u8::try_from(at * 7).unwrap_or(255)))
    }

    #[test]
    fn a_token_has_256_random_bits_and_a_prefix_that_is_none_of_them() {
        let text = secret().reveal().to_owned();
        assert_eq!(text.len(), 3 + 8 + 1 + 43);
        assert_eq!(&text[3..11], secret().prefix());
        let mut other = [0; RANDOM_BYTES];
        other[RANDOM_BYTES - 1] = 1;
        let (zero, one) = (Secret::of_random(&[0; RANDOM_BYTES]), Secret::of_random(&other));
        assert_eq!(zero.prefix(), one.prefix());
        assert!(zero.hash() != one.hash());
    }

    #[test]
    fn only_what_has_the_form_of_a_token_is_one() {
        let text = secret().reveal().to_owned();
        assert_eq!(Secret::parse(&text), Some(secret()));
        let longer = format!("{text}A");
        for bad in
            ["", "mp_", "mp_ünïcödé_x", &text[1..], &text[..text.len() - 1], &longer, &text.replace('_', "-")]
        {
            assert_eq!(Secret::parse(bad), None, "{bad}");
        }
        assert_eq!(Secret::parse(&text.to_uppercase()), None);
    }

    #[test]
    fn a_secret_is_not_shown_by_accident() {
        let (shown, hash) = (format!("{:?}", secret()), format!("{:?}", secret().hash()));
        assert!(shown.contains(secret().prefix()) && !shown.contains(&secret().reveal()[12..20]), "{shown}");
        assert_eq!(hash, "Digest(…)");
    }
}
