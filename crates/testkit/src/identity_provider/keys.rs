//! Keys and signatures of the provider.

use std::sync::OnceLock;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
};
use serde_json::{Value, json};

/// A key for tests only.
const RSA_KEY: &[u8] = include_bytes!("rsa_key.der");

/// How an ID token is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signature {
    /// RS256 with the key of the provider.
    Rs256,
    /// ES256 with another key of the provider.
    Es256,
    /// `alg` is `none`, and there is no signature.
    None,
    /// HS256 with the provider's public key as the secret.
    Hs256OfPublicKey,
    /// HS256 with the secret of the client.
    Hs256OfClientSecret,
    /// RS256 with the signature of another text.
    OfOtherText,
}

fn rsa() -> RsaKeyPair {
    RsaKeyPair::from_pkcs8(RSA_KEY).expect("a key")
}

fn ecdsa() -> EcdsaKeyPair {
    static KEY: OnceLock<Vec<u8>> = OnceLock::new();
    let (random, algorithm) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
    let key = KEY
        .get_or_init(|| EcdsaKeyPair::generate_pkcs8(algorithm, &random).expect("a key").as_ref().to_vec());
    EcdsaKeyPair::from_pkcs8(algorithm, key, &random).expect("a key")
}

/// Returns the name of the algorithm.
pub(super) fn name(signature: Signature) -> &'static str {
    match signature {
        Signature::Rs256 | Signature::OfOtherText => "RS256",
        Signature::Es256 => "ES256",
        Signature::None => "none",
        Signature::Hs256OfPublicKey | Signature::Hs256OfClientSecret => "HS256",
    }
}

/// Returns the id of the key.
pub(super) fn id(signature: Signature) -> &'static str {
    if signature == Signature::Es256 { "second" } else { "first" }
}

/// Returns the public key, as the provider publishes it.
pub(super) fn published(signature: Signature) -> Option<Value> {
    let encoded = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    match signature {
        Signature::Rs256 => {
            let key: PublicKeyComponents<Vec<u8>> = rsa().public().into();
            let (n, e) = (encoded(&key.n), encoded(&key.e));
            Some(json!({"kty": "RSA", "use": "sig", "alg": "RS256", "kid": id(signature), "n": n, "e": e}))
        }
        Signature::Es256 => {
            let key = ecdsa();
            let (x, y) = key.public_key().as_ref()[1..].split_at(32);
            let (x, y) = (encoded(x), encoded(y));
            Some(json!({"kty": "EC", "crv": "P-256", "use": "sig", "kid": id(signature), "x": x, "y": y}))
        }
        _ => None,
    }
}

/// Returns a signed token.
pub(super) fn signed(signature: Signature, header: &Value, claims: &Value) -> String {
    let encoded = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let text = format!("{}.{}", encoded(header), encoded(claims));
    let of_rsa = |text: &str| {
        let key = rsa();
        let mut bytes = vec![0; key.public().modulus_len()];
        key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text.as_bytes(), &mut bytes).expect("signed");
        bytes
    };
    let of_secret = |secret: &[u8]| {
        hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), text.as_bytes()).as_ref().to_vec()
    };
    let bytes = match signature {
        Signature::Rs256 => of_rsa(&text),
        Signature::OfOtherText => of_rsa("another text"),
        Signature::Es256 => {
            ecdsa().sign(&SystemRandom::new(), text.as_bytes()).expect("signed").as_ref().to_vec()
        }
        Signature::None => Vec::new(),
        Signature::Hs256OfPublicKey => of_secret(rsa().public().as_ref()),
        Signature::Hs256OfClientSecret => of_secret(super::CLIENT_SECRET.as_bytes()),
    };
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(bytes))
}
