//! The parts of a URL that messages must not contain.

use reqwest::Url;

/// Returns the path, the query and the password of a URL, and each segment and each value in them: receivers often repeat them in their response.
#[must_use]
pub fn secret_parts(url: &Url) -> Vec<String> {
    let whole = [Some(url.path().trim_matches('/')), url.query(), url.password()];
    // Words such as "services" are no secrets, and errors would be hard to read without them.
    let is_word = |segment: &&str| segment.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    let segments = url.path_segments().into_iter().flatten().filter(|segment| !is_word(segment));
    let texts = whole.into_iter().flatten().chain(segments).map(str::to_owned);
    texts.chain(url.query_pairs().map(|(_, value)| value.into_owned())).collect()
}
