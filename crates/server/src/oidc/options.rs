//! The settings of sign-in with a provider.

use std::fmt;

use milepost_core::oidc::RoleRules;
use milepost_http::is_loopback;
use openidconnect::url::Url;
use thiserror::Error;

/// The path to which the provider sends the browser back.
pub(crate) const CALLBACK: &str = "/sign-in/oidc/callback";

/// The settings of sign-in with a provider.
#[derive(Clone)]
pub struct OidcOptions {
    /// The issuer of the provider, the id of this server there, and the rules that give people their roles.
    pub rules: RoleRules,
    /// The secret of this server at the provider.
    pub client_secret: String,
    /// The requested scopes. `openid` is always requested.
    pub scopes: Vec<String>,
    /// The text of the button on the sign-in page.
    pub button: String,
    /// The URL by which browsers reach the server.
    pub external_url: String,
}

// The secret must not be in a log.
impl fmt::Debug for OidcOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OidcOptions").field("rules", &self.rules).finish_non_exhaustive()
    }
}

/// A setting that cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidOidc {
    /// The issuer.
    #[error("the issuer of the provider cannot be used: {0}")]
    Issuer(&'static str),
    /// The URL of the server.
    #[error("the external URL of the server cannot be used: {0}")]
    ExternalUrl(&'static str),
}

/// Checks the issuer of a provider.
///
/// # Errors
/// [`InvalidOidc`] with the requirement.
pub fn check_issuer(text: &str) -> Result<(), InvalidOidc> {
    let url = safe_url(text).map_err(InvalidOidc::Issuer)?;
    if url.query().is_some() || url.fragment().is_some() {
        return Err(InvalidOidc::Issuer("it must have no query and no fragment"));
    }
    Ok(())
}

/// Checks the URL by which browsers reach the server, and returns its origin.
///
/// # Errors
/// [`InvalidOidc`] with the requirement.
pub fn check_external_url(text: &str) -> Result<String, InvalidOidc> {
    let url = safe_url(text).map_err(InvalidOidc::ExternalUrl)?;
    if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
        return Err(InvalidOidc::ExternalUrl("it must end after the host and the port"));
    }
    Ok(url.origin().ascii_serialization())
}

/// Parses a URL with TLS, or of this machine.
fn safe_url(text: &str) -> Result<Url, &'static str> {
    let url = Url::parse(text).map_err(|_| "it must be a URL such as https://login.example.org")?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it must contain no user and no password");
    }
    if is_safe(&url) {
        Ok(url)
    } else {
        Err("it must begin with https://; http:// is for addresses of this machine only")
    }
}

/// Returns whether a URL has TLS, or leads to this machine.
pub(super) fn is_safe(url: &Url) -> bool {
    match url.scheme() {
        "https" => true,
        "http" => url.host_str().is_some_and(is_loopback),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_issuer_has_tls_or_is_on_this_machine() {
        for good in [
            "https://accounts.google.com",
            "https://login.example.org/realms/acme",
            "https://login.microsoftonline.com/72f988bf/v2.0",
            "http://localhost:8080/realms/x",
            "http://127.0.0.1:1",
            "http://[::1]:1/",
        ] {
            assert_eq!(check_issuer(good), Ok(()), "{good}");
        }
        for bad in [
            "http://login.example.org",
            "http://localhost.evil.example",
            "http://127.0.0.1.evil.example",
            "ftp://localhost",
            "file:///etc/passwd",
            "https://user:word@login.example.org",
            "https://login.example.org?a=b",
            "https://login.example.org#a",
            "login.example.org",
            "",
        ] {
            assert!(matches!(check_issuer(bad), Err(InvalidOidc::Issuer(_))), "{bad}");
        }
    }

    #[test]
    fn an_external_url_ends_after_its_host() {
        assert_eq!(check_external_url("https://Jobs.example.org").as_deref(), Ok("https://jobs.example.org"));
        assert_eq!(
            check_external_url("https://jobs.example.org:8443/").as_deref(),
            Ok("https://jobs.example.org:8443")
        );
        assert_eq!(check_external_url("http://localhost:7070").as_deref(), Ok("http://localhost:7070"));
        for bad in [
            "https://jobs.example.org/milepost",
            "http://jobs.example.org",
            "https://jobs.example.org/?a",
            "jobs.example.org",
        ] {
            assert!(matches!(check_external_url(bad), Err(InvalidOidc::ExternalUrl(_))), "{bad}");
        }
    }
}
