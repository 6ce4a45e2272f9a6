//! TLS with the system's root certificates, so that a company's own certificates are accepted, and with the same crypto provider as the
//! connections of the stores.

use std::sync::Arc;

use reqwest::Url;
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;

/// Returns the TLS configuration for this URL. Without TLS, no certificates are loaded, because small images have none.
///
/// # Errors
/// TLS cannot be set up, for example because the system's root certificates are missing.
pub fn config(url: &Url) -> Result<ClientConfig, rustls::Error> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?;
    let builder = match url.scheme() {
        "https" => builder.with_platform_verifier()?,
        _ => builder.with_root_certificates(RootCertStore::empty()),
    };
    Ok(builder.with_no_client_auth())
}
