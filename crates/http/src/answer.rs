//! Responses of servers.

use reqwest::header::LOCATION;
use reqwest::{Response, Url};

use crate::Capped;

/// Reads a body up to a limit. If the body is longer, the connection is dropped with the response.
///
/// # Errors
/// The connection broke, or the body is not valid HTTP. The bytes read before are kept.
pub async fn read(mut response: Response, body: &mut Capped, bytes_max: usize) -> reqwest::Result<()> {
    while !body.cut
        && let Some(chunk) = response.chunk().await?
    {
        body.push(&chunk, bytes_max);
    }
    Ok(())
}

/// Returns the server of a URL, without the parts that may be secret: login, path and parameters.
pub fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

/// Returns the server that a redirect points to, without the parts that may be secret.
pub fn leads_to(redirect: &Response, from: &Url) -> Option<String> {
    let to = redirect.headers().get(LOCATION)?.to_str().ok()?;
    from.join(to).ok().map(|to| origin(&to))
}
