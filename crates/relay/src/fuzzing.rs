//! Parsers of this crate for the fuzz targets of the workspace. Not part of the public API.

use milepost_http::{InvalidSecrets, Signer, WebhookSecret};

use crate::template::Template;

/// Returns the signatures of a webhook message, one for each secret.
///
/// # Errors
/// A secret is invalid.
pub fn sign(secrets: &[&str], id: &str, timestamp: i64, body: &[u8]) -> Result<String, InvalidSecrets> {
    let secrets: Vec<WebhookSecret> = secrets.iter().map(|&secret| secret.into()).collect();
    Ok(Signer::new(&secrets)?.sign(id, timestamp, body))
}

/// Returns the text of a subject or routing key with this value in all its placeholders.
///
/// # Errors
/// The reason why the text is not a template.
pub fn filled(template: &str, value: &str) -> Result<String, String> {
    Template::parse(template).map(|template| template.filled(value))
}
