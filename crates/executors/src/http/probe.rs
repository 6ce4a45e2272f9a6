//! A probe over HTTP: whether bulk jobs may go on.

use std::time::Duration;

use async_trait::async_trait;
use milepost::bulk::Throttle;
use reqwest::redirect::Policy;
use reqwest::{Client, Url};

use super::check_url;
use super::settings::InvalidHttp;

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks a URL with GET: 2xx is to go on, anything else, no answer too, is to hold.
#[derive(Clone, Debug)]
pub struct HttpProbe {
    client: Client,
    url: Url,
}

impl HttpProbe {
    /// Asks this URL.
    ///
    /// # Errors
    /// [`InvalidHttp`] when it cannot be used.
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
            // The error repeats the URL, whose path may be secret.
            Err(error) => Some(format!("http probe: {server} does not answer: {}", error.without_url())),
        }
    }
}
