//! An HTTP throttle probe, which decides whether bulk jobs may continue.

use std::time::Duration;

use async_trait::async_trait;
use milepost::bulk::Throttle;
use reqwest::redirect::Policy;
use reqwest::{Client, Url};

use super::check_url;
use super::settings::InvalidHttp;

/// How long to wait for the response.
const PATIENCE: Duration = Duration::from_secs(5);

/// Sends GET to a URL: 2xx means continue; any other response, or none, means pause.
#[derive(Clone, Debug)]
pub struct HttpProbe {
    client: Client,
    url: Url,
}

impl HttpProbe {
    /// Creates a probe for this URL.
    ///
    /// # Errors
    /// [`InvalidHttp`] if the URL cannot be used.
    pub fn new(url: &str) -> Result<Self, InvalidHttp> {
        let url = check_url(url)?;
        let client = Client::builder()
            .user_agent(concat!("milepost/", env!("CARGO_PKG_VERSION")))
            .redirect(Policy::none())
            .timeout(PATIENCE)
            .tls_backend_preconfigured(milepost_http::tls_config(&url).map_err(InvalidHttp::Tls)?)
            .build()
            .map_err(InvalidHttp::Client)?;
        Ok(Self { client, url })
    }
}

#[async_trait]
impl Throttle for HttpProbe {
    async fn holds(&self) -> Option<String> {
        let server = milepost_http::origin(&self.url);
        match self.client.get(self.url.clone()).send().await {
            Ok(answer) if answer.status().is_success() => None,
            Ok(answer) => Some(format!("http probe: {server} answered {}", answer.status())),
            // The error contains the URL, whose path may be secret.
            Err(error) => Some(format!("http probe: {server} does not answer: {}", error.without_url())),
        }
    }
}
