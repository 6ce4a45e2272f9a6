//! The check of ID tokens.

use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use milepost_core::oidc::CLOCK_SKEW;
use milepost_core::session::{ReturnedSignIn, SignInLimits};
use openidconnect::core::{CoreIdToken, CoreIdTokenVerifier, CoreJwsSigningAlgorithm as Algorithm};
use openidconnect::{
    ClaimsVerificationError, ClientId, Nonce, ProviderMetadataWithLogout, SignatureVerificationError,
};
use serde_json::Value;
use thiserror::Error;

/// Accepted algorithms, whatever the provider names: those of public keys only. With HS256, the secret of this server would be a key.
const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RsaSsaPkcs1V15Sha256,
    Algorithm::RsaSsaPkcs1V15Sha384,
    Algorithm::RsaSsaPkcs1V15Sha512,
    Algorithm::RsaSsaPssSha256,
    Algorithm::RsaSsaPssSha384,
    Algorithm::RsaSsaPssSha512,
    Algorithm::EcdsaP256Sha256,
    Algorithm::EcdsaP384Sha384,
    Algorithm::EdDsa,
];

/// The reason why an ID token is not accepted.
#[derive(Debug, Error)]
pub(super) enum Unverified {
    #[error("the response contains none")]
    Missing,
    #[error("{0}")]
    Claims(ClaimsVerificationError),
    #[error("{reason}")]
    Signature { reason: SignatureVerificationError },
    #[error("azp names another client")]
    OtherParty,
    #[error("its claims are not an object")]
    NoObject,
    #[error("it is not valid yet: nbf is after the time of the store's clock")]
    NotYet,
}

impl Unverified {
    /// Returns whether newer keys of the provider may contain the key of the token.
    pub(super) const fn is_unknown_key(&self) -> bool {
        matches!(self, Self::Signature { reason: SignatureVerificationError::NoMatchingKey })
    }
}

/// Returns the claims of an ID token that the provider issued for this sign-in. Times are compared with the store's clock.
pub(super) fn verify(
    token: &CoreIdToken,
    metadata: &ProviderMetadataWithLogout,
    client_id: ClientId,
    sign_in: &ReturnedSignIn,
    limits: &SignInLimits,
) -> Result<Value, Unverified> {
    let now = sign_in.at;
    let skew = SignedDuration::try_from(CLOCK_SKEW).unwrap_or_default();
    let lasts = SignedDuration::try_from(limits.lasts).unwrap_or_default();
    let (earliest, latest) = (SystemTime::from(now - skew - lasts), SystemTime::from(now + skew));
    let expires_after = SystemTime::from(now - skew);
    let keys = metadata.jwks().clone();
    // As for a client without a secret: no secret is a key.
    let verifier = CoreIdTokenVerifier::new_public_client(client_id.clone(), metadata.issuer().clone(), keys)
        .set_allowed_algs(ALGORITHMS)
        .set_time_fn(move || expires_after.into())
        .set_issue_time_verifier_fn(move |issued| {
            let issued = SystemTime::from(issued);
            if issued > latest {
                Err("iat is after the time of the store's clock".to_owned())
            } else if issued < earliest {
                Err("iat is before this sign-in began".to_owned())
            } else {
                Ok(())
            }
        });
    token.claims(&verifier, &Nonce::new(sign_in.nonce.clone())).map_err(|error| match error {
        ClaimsVerificationError::SignatureVerification(reason) => Unverified::Signature { reason },
        other => Unverified::Claims(other),
    })?;
    let claims = all_claims(token)?;
    // The library leaves this claim to its callers.
    if claims.get("azp").is_some_and(|azp| azp.as_str() != Some(client_id.as_str())) {
        return Err(Unverified::OtherParty);
    }
    let starts = claims.get("nbf").and_then(Value::as_i64).and_then(|nbf| Timestamp::from_second(nbf).ok());
    if starts.is_some_and(|starts| starts > now + skew) {
        return Err(Unverified::NotYet);
    }
    Ok(claims)
}

/// Returns the claims of a verified token, including those that the standard does not define.
fn all_claims(token: &CoreIdToken) -> Result<Value, Unverified> {
    let text = token.to_string();
    let payload = text.split('.').nth(1).and_then(|part| URL_SAFE_NO_PAD.decode(part).ok());
    let claims = payload.and_then(|payload| serde_json::from_slice::<Value>(&payload).ok());
    claims.filter(Value::is_object).ok_or(Unverified::NoObject)
}
