//! Access tokens.

use milepost_core::token::{RANDOM_BYTES, Secret};

/// Parses a token. It is printed as it was, its debug text does not contain the secret part, and every token that is created can be parsed.
///
/// # Panics
/// A property does not hold.
pub fn target(input: &[u8]) {
    if let Some(Ok(random)) = input.get(..RANDOM_BYTES).map(<&[u8; RANDOM_BYTES]>::try_from) {
        let created = Secret::of_random(random);
        assert_eq!(Secret::parse(created.reveal()).as_ref(), Some(&created));
    }
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Some(secret) = Secret::parse(text) else { return };
    assert_eq!(secret.reveal(), text);
    assert!(text.len() == 55 && text.bytes().all(|byte| byte.is_ascii_graphic()), "{text:?} is a token");
    assert_eq!(&text[3..11], secret.prefix());
    assert_eq!(format!("{secret:?}"), format!("Secret(mp_{}_…)", secret.prefix()));
    assert!(secret.hash() == Secret::parse(text).expect("it was parsed before").hash());
}
