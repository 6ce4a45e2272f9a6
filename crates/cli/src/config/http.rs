//! `http` of a kind: jobs as HTTP calls.

use std::collections::BTreeMap;

use milepost_executors::http::{HttpConfig, TIMEOUT_DEFAULT, check_header};
use schemars::JsonSchema;
use serde::Deserialize;

use super::document::Node;
use super::fault::Faults;
use super::humane::Humane;

/// The payload is posted as JSON; 2xx is success, 408, 425, 429 and 5xx are tried again.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Http {
    /// Where jobs are posted to; `http` or `https`.
    #[schemars(extend("format" = "milepost-url"))]
    url: String,
    /// Further headers, such as `Authorization = "Bearer ${TOKEN}"`. Their values are never logged.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// How long one call may take, from the connection to the end of the body. The default is `30s`.
    #[serde(default)]
    #[schemars(extend("format" = "milepost-duration-positive"))]
    timeout: Option<Humane>,
}

impl Http {
    /// Where jobs are posted to.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn config(self) -> HttpConfig {
        let timeout = self.timeout.map_or(TIMEOUT_DEFAULT, |time| time.0);
        HttpConfig { url: self.url, headers: self.headers, timeout }
    }
}

// URLs and headers hold secrets.
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
                "name headers like Authorization or X-Team, with values of one line; Idempotency-Key, Content-Type \
                 and milepost-… are set by milepost",
            );
        }
    }
}
