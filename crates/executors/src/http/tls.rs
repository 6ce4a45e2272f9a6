//! TLS with the system's root certificates, so that a company's own are honoured, and with the one cryptography that
//! the stores' connections use, too.

use std::sync::Arc;

use reqwest::Url;
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;

use super::InvalidHttp;

/// How TLS is spoken to this URL. Where it is not, no certificates are looked for: small images have none.
pub(super) fn config(url: &Url) -> Result<ClientConfig, InvalidHttp> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(InvalidHttp::Tls)?;
    let builder = match url.scheme() {
        "https" => builder.with_platform_verifier().map_err(InvalidHttp::Tls)?,
        _ => builder.with_root_certificates(RootCertStore::empty()),
    };
    Ok(builder.with_no_client_auth())
}
