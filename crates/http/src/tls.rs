//! TLS with the system's root certificates, so that a company's own are honoured, and with the one cryptography that
//! the stores' connections use, too.

use std::sync::Arc;

use reqwest::Url;
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;

/// How TLS is spoken to this URL. Where it is not, no certificates are looked for: small images have none.
///
/// # Errors
/// TLS cannot be spoken, for want of the system's root certificates, say.
pub fn config(url: &Url) -> Result<ClientConfig, rustls::Error> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?;
    let builder = match url.scheme() {
        "https" => builder.with_platform_verifier()?,
        _ => builder.with_root_certificates(RootCertStore::empty()),
    };
    Ok(builder.with_no_client_auth())
}
