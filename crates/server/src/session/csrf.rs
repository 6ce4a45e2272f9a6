//! The word that forms of a session carry.
//!
//! Each page shows it masked with another random pad. A page that is compressed on its way, together with text that somebody else has chosen, would
//! otherwise reveal it by its length, one character after the other (BREACH).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use milepost_core::token::Digest;

/// The word as a page shows it: a random pad, and the word combined with it. Empty for sessions without one, and where this machine gives no
/// random numbers: such a form is refused.
pub(crate) fn mask(word: &str) -> String {
    let mut bytes = vec![0; word.len() * 2];
    let (pad, masked) = bytes.split_at_mut(word.len());
    if let Err(error) = getrandom::fill(pad) {
        tracing::error!(%error, "this machine gives no random numbers");
        return String::new();
    }
    for ((masked, pad), byte) in masked.iter_mut().zip(pad.iter()).zip(word.bytes()) {
        *masked = byte ^ pad;
    }
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Whether what a form carries is the word of its session. Digests are compared in constant time.
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
        assert!(!is_masked(&mask(""), "") && !is_masked("", ""), "a session without a word sends no form");
    }
}
