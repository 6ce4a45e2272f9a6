//! Signatures of webhooks according to [Standard Webhooks](https://www.standardwebhooks.com).

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use schemars::JsonSchema;
use serde::Deserialize;
use thiserror::Error;

/// Optional prefix of a secret.
const PREFIX: &str = "whsec_";
/// Allowed number of bytes in a secret.
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 24..=64;
/// The maximum number of secrets: each adds 48 bytes to a header.
const SECRETS_MAX: usize = 10;

/// A secret shared with the receiver: `whsec_` and 24 to 64 bytes in base64. Never shown.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct WebhookSecret(String);

impl From<&str> for WebhookSecret {
    fn from(secret: &str) -> Self {
        Self(secret.to_owned())
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret(…)")
    }
}

/// The secrets of a webhook cannot be used. Contains no secrets.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct InvalidSecrets(String);

/// Signs with every configured secret, so that a receiver that has only the old or only the new one finds its signature.
#[derive(Debug)]
pub struct Signer(Vec<hmac::Key>);

impl Signer {
    /// Creates a signer.
    ///
    /// # Errors
    /// [`InvalidSecrets`] if there are none or too many, or one is no secret.
    pub fn new(secrets: &[WebhookSecret]) -> Result<Self, InvalidSecrets> {
        let refused = InvalidSecrets;
        if secrets.is_empty() || secrets.len() > SECRETS_MAX {
            return Err(refused(format!(
                "there must be 1 to {SECRETS_MAX}; `echo whsec_$(openssl rand -base64 32)` creates one"
            )));
        }
        let key = |(place, secret): (usize, &WebhookSecret)| {
            let text = secret.0.strip_prefix(PREFIX).unwrap_or(&secret.0);
            let bytes = STANDARD.decode(text).ok().filter(|bytes| SECRET_BYTES.contains(&bytes.len()));
            let why = || format!("number {} is not {PREFIX} followed by 24 to 64 bytes in base64", place + 1);
            bytes.map(|bytes| hmac::Key::new(hmac::HMAC_SHA256, &bytes)).ok_or_else(|| refused(why()))
        };
        secrets.iter().enumerate().map(key).collect::<Result<_, _>>().map(Self)
    }

    /// Returns the value of `webhook-signature` for a message that is sent at this time, in seconds since 1970.
    #[must_use]
    pub fn sign(&self, id: &str, timestamp: i64, body: &[u8]) -> String {
        let signature = |key: &hmac::Key| {
            let mut signing = hmac::Context::with_key(key);
            signing.update(format!("{id}.{timestamp}.").as_bytes());
            signing.update(body);
            format!("v1,{}", STANDARD.encode(signing.sign()))
        };
        self.0.iter().map(signature).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

    #[test]
    fn a_message_has_a_signature_of_every_secret() {
        let signed = |secrets: &[&str]| {
            let secrets: Vec<_> = secrets.iter().map(|&secret| secret.into()).collect();
            let body = br#"{"email":"test@example.com","username":"test_user"}"#;
            Signer::new(&secrets).unwrap().sign("msg_27UH4WbU6Z5A5EzD8u03UvzRbpk", 1_649_367_553, body)
        };
        // Signature of the reference implementation.
        let known = "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=";
        assert_eq!(signed(&[SECRET]), known);
        assert_eq!(signed(&[&SECRET["whsec_".len()..]]), known);
        let other = format!("whsec_{}", STANDARD.encode([7; 24]));
        assert_eq!(signed(&[&other, SECRET]), format!("{} {known}", signed(&[&other])));
    }

    #[test]
    fn a_secret_that_is_none_is_told_by_its_number() {
        let short = format!("whsec_{}", STANDARD.encode([7; 23]));
        for bad in ["whsec_s3cret!", "", &short] {
            let why = Signer::new(&[SECRET.into(), bad.into()]).unwrap_err().to_string();
            assert!(why.contains("number 2") && (bad.is_empty() || !why.contains(bad)), "{why}");
        }
        assert!(Signer::new(&[]).unwrap_err().to_string().contains("openssl rand"));
        assert!(!format!("{:?}", WebhookSecret::from(SECRET)).contains("C2FV"));
    }
}
