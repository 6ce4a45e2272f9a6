//! The credentials of a request.

use axum::http::{HeaderMap, header};
use milepost_core::token::Secret;

use crate::problem::{Code, Problem};

/// Returns the bearer token of a request; `None` if it has none.
pub(super) fn bearer(headers: &HeaderMap) -> Result<Option<Secret>, Problem> {
    let Some(given) = headers.get(header::AUTHORIZATION) else { return Ok(None) };
    let text = given.to_str().unwrap_or_default();
    let shown = text.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    match shown.and_then(|(_, token)| Secret::parse(token.trim())) {
        Some(secret) => Ok(Some(secret)),
        None => Err(Problem::new(
            Code::UnknownToken,
            "the header Authorization contains no valid token; the format is: Bearer mp_…",
        )),
    }
}

/// Returns the value of a cookie. A cookie that occurs twice is ignored: either of the two may have been planted by another site.
pub(crate) fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let cookies = headers.get_all(header::COOKIE).into_iter().filter_map(|cookies| cookies.to_str().ok());
    let mut values = cookies
        .flat_map(|cookies| cookies.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(|(its, _)| *its == name)
        .map(|(_, value)| value);
    values.next().filter(|_| values.next().is_none())
}

#[cfg(test)]
mod tests {
    use milepost_core::token::RANDOM_BYTES;

    use super::*;

    #[test]
    fn a_token_is_read_from_its_header() {
        let secret = Secret::of_random(&[1; RANDOM_BYTES]);
        let shown = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, text.parse().unwrap());
            bearer(&headers).map_err(|_| ())
        };
        assert_eq!(bearer(&HeaderMap::new()).ok(), Some(None));
        for scheme in ["Bearer", "bearer", "BEARER"] {
            assert_eq!(shown(&format!("{scheme} {}", secret.reveal())), Ok(Some(secret.clone())));
        }
        for bad in [secret.reveal(), "Bearer", "Bearer x", "Basic YTpi", ""] {
            assert_eq!(shown(bad), Err(()), "{bad}");
        }
    }

    #[test]
    fn a_cookie_that_is_there_twice_counts_for_nothing() {
        let read = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::COOKIE, text.parse().unwrap());
            cookie(&headers, "milepost").map(str::to_owned)
        };
        assert_eq!(read("a=b; milepost=x; c=d").as_deref(), Some("x"));
        assert_eq!(read("milepost=x; milepost=y"), None);
        assert_eq!(read("xmilepost=x"), None);
    }
}
