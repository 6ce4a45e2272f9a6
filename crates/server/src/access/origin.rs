//! Checks of the host name and the origin of a request.
//!
//! A page of another origin can make a browser send requests to the loopback address. With a name that resolves to that address
//! (DNS rebinding), it can even read the responses. Therefore a server without tokens accepts loopback names only, and every
//! server refuses requests that pages of other origins send.

use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use milepost_http::is_loopback;

use super::AccessOptions;
use crate::app::App;
use crate::problem::{Code, Problem};

/// The accepted host names of the server.
#[derive(Clone, Debug)]
pub(crate) struct Hosts {
    allowed: Vec<String>,
    open_to_all: bool,
}

impl Hosts {
    pub(crate) fn new(options: &AccessOptions) -> Self {
        let allowed = options.allowed_hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
        Self { allowed, open_to_all: options.open_to_all }
    }

    /// Returns whether requests with this host name are accepted.
    fn allow(&self, host: &str, asks_for_tokens: bool) -> bool {
        is_loopback(host)
            || self.allowed.iter().any(|allowed| allowed.eq_ignore_ascii_case(host))
            || (self.allowed.is_empty() && (asks_for_tokens || self.open_to_all))
    }
}

/// Passes a request on if it has an accepted host name and was not sent by a page of another origin.
pub(crate) async fn guard(State(app): State<App>, request: Request, next: Next) -> Response {
    match check(&app, request.headers(), request.uri()).await {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

/// Headers that a request may contain once: of two, this server and a proxy in front of it could use different ones.
const SINGLE_HEADERS: [&str; 6] =
    ["host", "origin", "authorization", "content-type", "idempotency-key", "last-event-id"];

/// Refuses a request that repeats a header of which only one value can be used.
fn check_single(headers: &HeaderMap) -> Result<(), Problem> {
    match SINGLE_HEADERS.into_iter().find(|name| headers.get_all(*name).iter().nth(1).is_some()) {
        Some(name) => {
            Err(Problem::new(Code::RepeatedHeader, "the request contains it more than once; send it once")
                .at(format!("header {name}")))
        }
        None => Ok(()),
    }
}

async fn check(app: &App, headers: &HeaderMap, uri: &Uri) -> Result<(), Problem> {
    check_single(headers)?;
    let host = host(headers, uri)?;
    // If the store does not respond, no further names are accepted.
    let asks_for_tokens = || async { app.tokens.are_asked_for().await.unwrap_or(false) };
    if !app.hosts.allow(host.host(), false) && !app.hosts.allow(host.host(), asks_for_tokens().await) {
        let words = format!(
            "this server does not accept the host name {:?}; add it to allowed_hosts in [serve]",
            host.host()
        );
        return Err(Problem::new(Code::WrongHost, words).at("header Host"));
    }
    if headers.contains_key(header::ORIGIN) && !comes_from_here(headers, uri) {
        return Err(foreign());
    }
    Ok(())
}

/// The response to requests from pages of other origins.
pub(crate) fn foreign() -> Problem {
    let words = "web pages of other origins may not use this server";
    Problem::new(Code::WrongOrigin, words).at("header Origin")
}

/// Returns whether the `Origin` header names this server.
pub(crate) fn comes_from_here(headers: &HeaderMap, uri: &Uri) -> bool {
    let origin = headers.get(header::ORIGIN).and_then(|origin| origin.to_str().ok());
    let (Some(origin), Ok(host)) = (origin, host(headers, uri)) else { return false };
    // A proxy may terminate TLS in front of this server, so both schemes are accepted.
    let origin = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
    origin.is_some_and(|origin| origin.eq_ignore_ascii_case(host.as_str()))
}

fn host(headers: &HeaderMap, uri: &Uri) -> Result<Authority, Problem> {
    let in_header = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let in_target = uri.authority().map(Authority::as_str);
    if let (Some(header), Some(target)) = (in_header, in_target)
        && !header.eq_ignore_ascii_case(target)
    {
        let words =
            format!("it is {header:?}, but the request's target is on {target:?}; use the same host in both");
        return Err(Problem::new(Code::TwoHosts, words).at("header Host"));
    }
    in_header.or(in_target).and_then(authority).ok_or_else(|| {
        let words =
            "the request has no valid Host header; it must be a name or an address, optionally with a port";
        Problem::new(Code::NoHost, words).at("header Host")
    })
}

/// A host with or without a port, and nothing else: an authority can also have a user, and what follows an address in brackets is not part of it.
fn authority(text: &str) -> Option<Authority> {
    let authority: Authority = text.parse().ok()?;
    let port = match text.strip_prefix(authority.host())?.strip_prefix(':') {
        Some(port) => port,
        None if text.len() == authority.host().len() => "",
        None => return None,
    };
    let is_port =
        port.bytes().all(|byte| byte.is_ascii_digit()) && (port.is_empty() || port.parse::<u16>().is_ok());
    is_port.then_some(authority)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(allowed: &[&str], open_to_all: bool) -> Hosts {
        let allowed_hosts = allowed.iter().map(|&host| host.to_owned()).collect();
        Hosts::new(&AccessOptions { allowed_hosts, open_to_all, ..AccessOptions::default() })
    }

    #[test]
    fn a_server_without_tokens_answers_to_loopback_names_only() {
        let any = hosts(&[], false);
        for own in ["localhost", "LOCALHOST", "127.0.0.1", "127.9.9.9", "[::1]"] {
            assert!(any.allow(own, false), "{own}");
        }
        for foreign in ["jobs.example.org", "10.0.0.1", "localhost.evil.example", "[::2]"] {
            assert!(!any.allow(foreign, false) && any.allow(foreign, true), "{foreign}");
        }
        assert!(hosts(&[], true).allow("jobs.example.org", false), "the name is in the list");
    }

    #[test]
    fn allowed_hosts_are_the_only_ones() {
        let named = hosts(&["Jobs.example.org"], true);
        assert!(named.allow("jobs.example.ORG", true) && named.allow("localhost", true));
        assert!(!named.allow("evil.example", true));
    }

    #[test]
    fn a_request_names_one_host() {
        let named = |header: &str, target: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, header.parse().unwrap());
            host(&headers, &target.parse().unwrap())
                .map(|host| host.to_string())
                .map_err(|problem| problem.code())
        };
        assert_eq!(named("localhost:8400", "/v1/jobs"), Ok("localhost:8400".to_owned()));
        assert_eq!(named("LOCALHOST:8400", "http://localhost:8400/v1/jobs"), Ok("LOCALHOST:8400".to_owned()));
        assert_eq!(named("localhost:8400", "http://evil.example/v1/jobs"), Err(Code::TwoHosts));
        for own in ["localhost", "127.0.0.1:7193", "[::1]", "[::1]:7193", "jobs.example.org:"] {
            assert_eq!(named(own, "/v1/jobs"), Ok(own.to_owned()));
        }
        for other in [
            "[::1].evil:7193",
            "[::1]evil",
            "evil@127.0.0.1:7193",
            "evil:x@127.0.0.1",
            "127.0.0.1@127.0.0.1",
            "127.0.0.1:80@127.0.0.1",
            "localhost:evil",
            "localhost:+80",
            "localhost:70000",
            "[::1",
            "",
        ] {
            assert_eq!(named(other, "/v1/jobs"), Err(Code::NoHost), "{other}");
        }
        let mut headers = HeaderMap::new();
        headers.append(header::HOST, "localhost".parse().unwrap());
        assert!(check_single(&headers).is_ok());
        headers.append(header::HOST, "evil.example".parse().unwrap());
        assert_eq!(check_single(&headers).unwrap_err().code(), Code::RepeatedHeader);
    }

    #[test]
    fn only_the_servers_own_pages_come_from_here() {
        let from = |origin: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, "jobs.example.org".parse().unwrap());
            headers.insert(header::ORIGIN, origin.parse().unwrap());
            comes_from_here(&headers, &Uri::from_static("/"))
        };
        assert!(from("https://jobs.example.org") && from("http://jobs.example.org"));
        for foreign in ["null", "https://evil.example", "https://jobs.example.org:8080", "jobs.example.org"] {
            assert!(!from(foreign), "{foreign}");
        }
    }
}
