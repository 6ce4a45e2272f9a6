//! Who may speak to a server that asks for no token: programs of this machine, and no web page that is open in its browser.
//!
//! A page of another origin can make a browser send requests to the loopback address, and by a name that it lets resolve to that
//! address it can even read the answers. So the request must name a loopback host, and must not come from a page of elsewhere.

use std::net::IpAddr;

use axum::extract::Request;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::Response;

use crate::problem::Problem;

/// Lets requests pass that come from this machine's own programs.
pub(crate) async fn only_from_here(request: Request, next: Next) -> Result<Response, Problem> {
    let host = host(request.headers(), request.uri())?;
    if !is_loopback(host.host()) {
        let words = format!("this server answers to localhost only, not to {:?}", host.host());
        return Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, "wrong_host", words).at("header Host"));
    }
    if let Some(origin) = request.headers().get(header::ORIGIN) {
        let own =
            origin.to_str().ok().and_then(|origin| origin.strip_prefix("http://")) == Some(host.as_str());
        if !own {
            let words = "web pages of other origins may not use this server";
            return Err(Problem::new(StatusCode::FORBIDDEN, "wrong_origin", words).at("header Origin"));
        }
    }
    Ok(next.run(request).await)
}

fn host(headers: &HeaderMap, uri: &Uri) -> Result<Authority, Problem> {
    let named = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok())
        .or_else(|| uri.authority().map(Authority::as_str));
    named.and_then(|host| host.parse().ok()).ok_or_else(|| {
        Problem::bad_request("no_host", "a request names the host that it is for").at("header Host")
    })
}

fn is_loopback(host: &str) -> bool {
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}
