//! Responses of servers.

use reqwest::header::LOCATION;
use reqwest::{Response, StatusCode, Url};

use crate::Capped;

/// How many characters of a body are shown.
const WORDS_CHARS_MAX: usize = 300;

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

/// Returns the status and the beginning of the body, which must be printable and contain no secrets, on one line.
#[must_use]
pub fn in_words(status: StatusCode, redirect: Option<&str>, said: &str) -> String {
    if status.is_redirection() {
        let to = redirect.map_or_else(String::new, |to| format!(" to {to}"));
        return format!(
            "it answered {status}: a redirect{to}, which is not followed; configure the URL that it leads to"
        );
    }
    let mut words: String = said.chars().take(WORDS_CHARS_MAX).collect();
    if words.len() < said.len() && !words.ends_with('…') {
        words.push('…');
    }
    let colon = if words.is_empty() { "" } else { ": " };
    format!("it answered {status}{colon}{words}")
}
