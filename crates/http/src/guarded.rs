//! Clients for URLs of a configuration, which connect only to allowed addresses.

use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, Url};

use crate::words::in_full;
use crate::{Guard, tls};

/// Parses a URL to which a client posts.
///
/// # Errors
/// The correct form.
pub fn url(text: &str) -> Result<Url, &'static str> {
    let url = Url::parse(text).map_err(|_| "it is not of the form https://HOST/PATH")?;
    match url.scheme() {
        "https" | "http" => Ok(url),
        _ => Err("it must begin with https://, or with http:// within `allow_networks`"),
    }
}

/// Creates a client for this URL that connects only to addresses that the guard allows, and follows no redirects.
///
/// # Errors
/// TLS cannot be set up.
pub fn client(url: &Url, guard: Guard, timeout: Duration) -> Result<Client, String> {
    let tls = tls::config(url).map_err(|error| error.to_string())?;
    Client::builder()
        .user_agent(concat!("milepost/", env!("CARGO_PKG_VERSION")))
        // The addresses that a proxy connects to cannot be checked here.
        .no_proxy()
        .redirect(Policy::none())
        .dns_resolver(guard)
        // Shorter than the total timeout, so that a failed connection is recognized, and it is certain that nothing was sent.
        .connect_timeout(timeout / 2)
        .tls_backend_preconfigured(tls)
        .build()
        .map_err(|error| in_full(&error.without_url()))
}
