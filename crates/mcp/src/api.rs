//! Requests to the HTTP API.

use std::time::Duration;

use anyhow::{Context, Error, Result, anyhow, bail};
use milepost_http::Capped;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, Url};
use serde::Serialize;
use serde_json::Value;

/// How long a request may take: longer than the requests of the server that take longest.
const TIME_MAX: Duration = Duration::from_secs(60);
/// The maximum size of an answer, which becomes part of a conversation. Payloads can have a megabyte.
const ANSWER_BYTES_MAX: usize = 256 * 1024;

/// A client of a server.
#[derive(Clone, Debug)]
pub(crate) struct Api {
    client: Client,
    url: Url,
}

/// The JSON of an answer, or a sentence with the reason why there is none.
pub(crate) type Answer = Result<String, String>;

impl Api {
    /// # Errors
    /// The URL is not one of a server, or the token contains characters that a header cannot have.
    pub(crate) fn new(url: &str, token: Option<&str>) -> Result<Self> {
        let url: Url = url.parse().with_context(|| format!("--url {url:?} is not a URL"))?;
        if !matches!(url.scheme(), "http" | "https") {
            bail!("--url must begin with http:// or https://");
        }
        let mut headers = HeaderMap::new();
        if let Some(token) = token {
            let mut bearer = HeaderValue::from_str(&format!("Bearer {token}"))
                .map_err(|_| anyhow!("MILEPOST_TOKEN contains characters that a token cannot have"))?;
            bearer.set_sensitive(true);
            headers.insert(AUTHORIZATION, bearer);
        }
        let client = Client::builder()
            .tls_backend_preconfigured(milepost_http::tls_config(&url)?)
            // A redirect could lead the token to another server.
            .redirect(Policy::none())
            .timeout(TIME_MAX)
            .default_headers(headers)
            .build()?;
        Ok(Self { client, url })
    }

    /// Reads a resource, such as `/v1/jobs`.
    pub(crate) async fn get(&self, path: &[&str], query: &impl Serialize) -> Answer {
        self.send(self.client.get(self.at(path)).query(query)).await
    }

    /// Changes a resource.
    pub(crate) async fn post(&self, path: &[&str], body: &Value) -> Answer {
        self.send(self.client.post(self.at(path)).json(body)).await
    }

    /// Returns the URL of a path whose parts can contain any characters.
    fn at(&self, path: &[&str]) -> Url {
        let mut url = self.url.clone();
        if let Ok(mut parts) = url.path_segments_mut() {
            parts.pop_if_empty().push("v1").extend(path);
        }
        url
    }

    async fn send(&self, request: RequestBuilder) -> Answer {
        let failed = |error: reqwest::Error| {
            let server = milepost_http::origin(&self.url);
            // `#` prints all causes.
            format!("The server at {server} does not answer: {:#}", Error::from(error.without_url()))
        };
        let response = request.send().await.map_err(failed)?;
        let status = response.status();
        let mut body = Capped::default();
        milepost_http::read(response, &mut body, ANSWER_BYTES_MAX).await.map_err(failed)?;
        if !status.is_success() {
            return Err(format!("The server answers {status}: {}", body.text()));
        }
        if body.cut {
            return Err(format!(
                "The answer has more than {ANSWER_BYTES_MAX} bytes: ask for fewer rows (limit), or filter them."
            ));
        }
        Ok(body.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_path_cannot_leave_it() {
        let api = Api::new("http://127.0.0.1:7070", None).unwrap();
        let url = api.at(&["jobs", "../../console?x=1#y"]);
        assert_eq!(url.as_str(), "http://127.0.0.1:7070/v1/jobs/..%2F..%2Fconsole%3Fx=1%23y");
        let behind = Api::new("https://a.example/milepost/", None).unwrap();
        assert_eq!(behind.at(&["queues"]).as_str(), "https://a.example/milepost/v1/queues");
    }

    #[test]
    fn what_cannot_be_used_is_refused_without_the_token() {
        for url in ["ftp://a.example", "a.example:7070", ""] {
            assert!(Api::new(url, None).is_err(), "{url}");
        }
        let refused = Api::new("http://127.0.0.1:7070", Some("s3cret\n")).unwrap_err().to_string();
        assert!(refused.contains("MILEPOST_TOKEN") && !refused.contains("s3cret"), "{refused}");
    }
}
