//! `http` of a kind: jobs run as HTTP calls.

use std::collections::BTreeMap;
use std::net::IpAddr;

use milepost_core::secrets::Secrets;
use milepost_executors::http::{
    HttpConfig, InvalidHttp, TIMEOUT_DEFAULT, check_header, check_networks, check_url,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::document::Node;
use super::fault::Faults;
use super::humane::Humane;

/// The payload is posted as JSON; 2xx is success, 408, 425, 429 and 5xx are retried.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Http {
    /// The URL to which jobs are posted; `http` or `https`.
    #[schemars(extend("format" = "milepost-url"))]
    url: String,
    /// Further headers, such as `Authorization = "Bearer ${TOKEN}"`. Their values are never logged.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// Networks that are allowed in addition to the public internet, such as `10.0.0.0/8`, or `10.1.2.3/32` for one
    /// address. The default is none.
    #[serde(default)]
    allow_networks: Vec<String>,
    /// The time limit of one call, from the connection to the end of the body. The default is `30s`.
    #[serde(default)]
    #[schemars(extend("format" = "milepost-duration-positive"))]
    timeout: Option<Humane>,
}

impl Http {
    /// Returns the URL to which jobs are posted.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Returns the name of the server.
    pub(super) fn server(&self) -> String {
        let host = check_url(&self.url).ok().and_then(|url| url.host_str().map(str::to_owned));
        host.unwrap_or_else(|| "a server".to_owned())
    }

    /// Returns the executor's settings; `secrets` are all secrets of the file.
    pub(crate) fn config(self, secrets: &Secrets) -> HttpConfig {
        let (timeout, secrets) = (self.timeout.map_or(TIMEOUT_DEFAULT, |time| time.0), secrets.clone());
        HttpConfig {
            url: self.url,
            headers: self.headers,
            allow_networks: self.allow_networks,
            timeout,
            secrets,
        }
    }
}

// URLs and headers contain secrets.
impl std::fmt::Debug for Http {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http").finish_non_exhaustive()
    }
}

pub(super) fn check(http: Option<&Node>, faults: &mut Faults) {
    let headers = http.and_then(|http| http.get("headers"));
    for header in headers.map(Node::entries).unwrap_or_default() {
        let Some(value) = header.node.text() else { continue };
        if let Err(error) = check_header(&header.key, value) {
            faults.add(
                header.at,
                error.to_string(),
                "use headers such as Authorization or X-Team, with values of one line; Idempotency-Key, Content-Type \
                 and milepost-… are set by milepost",
            );
        }
    }
    if let Some(http) = http {
        check_allowed(http, faults);
    }
}

/// Rejects invalid networks, and a URL with an IP address that is in none of the networks.
fn check_allowed(http: &Node, faults: &mut Faults) {
    let Some((at, url)) =
        http.get("url").and_then(|node| Some((node.span.start, check_url(node.text()?).ok()?)))
    else {
        return;
    };
    let listed = http.get("allow_networks");
    let allowed: Vec<String> = listed
        .map(Node::nodes)
        .unwrap_or_default()
        .iter()
        .filter_map(Node::text)
        .map(str::to_owned)
        .collect();
    match (check_networks(&allowed, &url), listed) {
        (Ok(_), _) => {}
        (Err(error @ InvalidHttp::Network(_)), Some(listed)) => {
            faults.add(listed.span.start, error.to_string(), allowing("10.0.0.0/8"));
        }
        (Err(error), _) => faults.add(at, error.to_string(), allowing(&network_of(url.host_str()))),
    }
}

fn allowing(network: &str) -> String {
    format!("add allow_networks = [\"{network}\"] next to url, with the networks of your servers")
}

/// Returns the network of the single address in a URL; an example network if the URL has a host name.
fn network_of(host: Option<&str>) -> String {
    let address = host.and_then(|host| host.trim_matches(['[', ']']).parse().ok());
    match address {
        Some(IpAddr::V4(address)) => format!("{address}/32"),
        Some(IpAddr::V6(address)) => format!("{address}/128"),
        None => "10.0.0.0/8".to_owned(),
    }
}
