//! The CSRF token of a session.
//!
//! Each page contains the token masked with a new random pad. Otherwise the length of a compressed page that also contains text
//! chosen by an attacker would reveal the token character by character (BREACH).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use milepost_core::token::Digest;

/// Returns the masked token: a random pad, followed by the XOR of pad and token. Empty for sessions without a token, and if no
/// random numbers are available; a form with an empty token is refused.
pub(crate) fn mask(word: &str) -> String {
    let mut bytes = vec![0; word.len() * 2];
    let (pad, masked) = bytes.split_at_mut(word.len());
    if let Err(error) = getrandom::fill(pad) {
        tracing::error!(%error, "the operating system returned no random numbers");
        return String::new();
    }
    for ((masked, pad), byte) in masked.iter_mut().zip(pad.iter()).zip(word.bytes()) {
        *masked = byte ^ pad;
    }
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Returns whether `given` is the masked token of the session. Digests are compared in constant time.
pub(super) fn is_masked(given: &str, word: &str) -> bool {
    let Ok(bytes) = URL_SAFE_NO_PAD.decode(given) else { return false };
    let (pad, masked) = bytes.split_at(bytes.len() / 2);
    let shown: Vec<u8> = masked.iter().zip(pad).map(|(masked, pad)| masked ^ pad).collect();
    let Ok(shown) = String::from_utf8(shown) else { return false };
    !word.is_empty() && pad.len() == masked.len() && Digest::of(&shown) == Digest::of(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORD: &str = "a-word-of-its-pages";

    #[test]
    fn each_page_shows_the_word_in_another_way() {
        let shown: Vec<String> = (0..100).map(|_| mask(WORD)).collect();
        assert!(shown.iter().all(|shown| is_masked(shown, WORD) && !shown.contains(WORD)));
        for place in 0..shown[0].len() {
            let at = |shown: &String| shown.as_bytes()[place];
            assert!(
                shown.iter().any(|other| at(other) != at(&shown[0])),
                "place {place} is the same on all pages"
            );
        }
    }

    #[test]
    fn nothing_else_is_taken_for_the_word() {
        for other in ["", "guessed", WORD, &mask("another"), &mask(""), "%", &format!("{}AA", mask(WORD))] {
            assert!(!is_masked(other, WORD), "{other}");
        }
        assert!(
            !is_masked(&mask(""), "") && !is_masked("", ""),
            "a session without a token cannot send forms"
        );
    }
}
