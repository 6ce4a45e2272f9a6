//! What a server answered.

use reqwest::header::LOCATION;
use reqwest::{Response, Url};

use crate::Capped;

/// Reads a body up to a limit, and no further: its connection is then dropped with the response.
///
/// # Errors
/// The connection broke, or the body is no HTTP. What was read before is kept.
pub async fn read(mut response: Response, body: &mut Capped, bytes_max: usize) -> reqwest::Result<()> {
    while !body.cut
        && let Some(chunk) = response.chunk().await?
    {
        body.push(&chunk, bytes_max);
    }
    Ok(())
}

/// The server that a URL names, without what may be secret: login, path and parameters.
pub fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

/// The server that a redirect leads to, without what may be secret.
pub fn leads_to(redirect: &Response, from: &Url) -> Option<String> {
    let to = redirect.headers().get(LOCATION)?.to_str().ok()?;
    from.join(to).ok().map(|to| origin(&to))
}
