//! Jobs that run as HTTP calls: the payload is posted as JSON, the response determines the result.
//!
//! | response | result |
//! |---|---|
//! | 2xx | success; the body is the result: JSON unchanged, up to 1 MiB, other text as a JSON string, cut at 64 KiB |
//! | 408, 425, 429, 5xx | failed, another attempt: `http_N`; `Retry-After` is honoured, up to a day |
//! | 3xx | failed, no further attempt: redirects are not followed |
//! | any other | failed, no further attempt: `http_N` |
//! | no connection | failed, another attempt: `http_connect` |
//! | no call, because the address is not allowed | failed, another attempt, so that there is time to allow it: `http_forbidden` |
//! | the connection broke, or the response is not HTTP | failed, another attempt: `http_broken` |
//! | the response, including its body, is not complete in time | failed, another attempt: `http_timeout` |
//!
//! Calls can reach only the public internet and the networks that are allowed by name ([`HttpConfig::allow_networks`]). Every address of a
//! name is checked, and only checked addresses are connected to. Proxies from the environment are not used, because their targets could not
//! be checked.
//!
//! Every attempt of a job, or of a chunk of a bulk job, sends the same `Idempotency-Key`. Messages contain only the server of the URL,
//! because paths and parameters can contain secrets, like headers. Known secrets are removed from stored responses.

mod probe;
mod settings;

use std::time::Duration;

use milepost::trace::{TRACEPARENT, Traceparent};
use milepost::{Context, JobError, Outcome};
use milepost_core::secrets::Secrets;
use milepost_http::{Capped, Guard, forbidden, leads_to, origin, read};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode, Url};
use tokio::time::{Instant, timeout_at};

pub use self::probe::HttpProbe;
pub use self::settings::{HttpConfig, InvalidHttp, check_header, check_networks, check_url};
use crate::result::RESULT_BYTES_MAX;
use crate::{facts, result};

/// The default time limit of a call, from the connection to the end of the body.
pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);
/// The time limit for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How many bytes of a failure's body are included in its message.
const WORDS_BYTES_MAX: usize = 1024;
/// How long to wait for the body of a failure, whose status is already known.
const WORDS_TIMEOUT: Duration = Duration::from_secs(2);

/// Runs jobs as HTTP calls.
pub struct Http {
    client: Client,
    url: Url,
    timeout: Duration,
    secrets: Secrets,
    /// These, and the parts of the URL: a result may contain such a part, a message not.
    secrets_of_messages: Secrets,
}

impl Http {
    /// Creates an executor with these settings. It keeps its connections for further calls.
    ///
    /// # Errors
    /// [`InvalidHttp`] describes the invalid setting.
    pub fn new(config: &HttpConfig) -> Result<Self, InvalidHttp> {
        let url = check_url(&config.url)?;
        let headers: HeaderMap =
            config.headers.iter().map(|(name, value)| check_header(name, value)).collect::<Result<_, _>>()?;
        let networks = check_networks(&config.allow_networks, &url)?;
        let client = Client::builder()
            .default_headers(headers)
            .no_proxy()
            .dns_resolver(Guard::new(networks))
            .user_agent(concat!("milepost/", env!("CARGO_PKG_VERSION")))
            .redirect(Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .tls_backend_preconfigured(milepost_http::tls_config(&url).map_err(InvalidHttp::Tls)?)
            .build()
            .map_err(InvalidHttp::Client)?;
        // A server may repeat the values that it was sent.
        let told =
            config.headers.values().flat_map(|value| std::iter::once(value.as_str()).chain(value.split(' ')));
        let told = told.chain(url.password()).map(str::to_owned);
        let secrets = config.secrets.and(told.collect::<Vec<_>>());
        let secrets_of_messages = secrets.and(milepost_http::secret_parts(&url));
        Ok(Self { client, url, timeout: config.timeout, secrets, secrets_of_messages })
    }

    /// Runs one attempt. If the context is canceled, or this future is dropped, the call is canceled immediately.
    ///
    /// # Errors
    /// As in the table of the [module](self).
    pub async fn run(&self, context: &Context) -> Result<Outcome, JobError> {
        tokio::select! {
            biased;
            () = context.cancellation().cancelled() => Ok(Outcome::Stopped),
            answer = self.call(context) => answer,
        }
    }

    async fn call(&self, context: &Context) -> Result<Outcome, JobError> {
        let deadline = Instant::now() + self.timeout;
        let late = |_| self.late();
        let response = timeout_at(deadline, self.send(context)).await.map_err(late)??;
        if !response.status().is_success() {
            return Err(self.refused(response, deadline).await);
        }
        let mut body = Capped::default();
        timeout_at(deadline, read(response, &mut body, RESULT_BYTES_MAX))
            .await
            .map_err(late)?
            .map_err(|error| self.broken(error))?;
        result::outcome(&body, &self.secrets)
    }

    async fn send(&self, context: &Context) -> Result<Response, JobError> {
        let job = context.job();
        let mut request = self
            .client
            .post(self.url.clone())
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .header("idempotency-key", context.idempotency_key())
            .body(job.payload.clone());
        for (name, value) in facts::of(context) {
            request = request.header(format!("milepost-{name}"), value);
        }
        if let Some(trace) = Traceparent::current() {
            request = request.header(TRACEPARENT, trace.to_string());
        }
        request.send().await.map_err(|error| self.broken(error))
    }

    /// Returns the failure for a response other than 2xx.
    async fn refused(&self, response: Response, deadline: Instant) -> JobError {
        let status = response.status();
        let code = format!("http_{}", status.as_u16());
        if status.is_redirection() {
            let to = leads_to(&response, &self.url).map_or_else(String::new, |to| format!(" to {to}"));
            let message = format!(
                "{} answered {status}: a redirect{to}, which is not followed; configure the URL that it leads to",
                origin(&self.url)
            );
            return JobError::fatal(code, message);
        }
        let wait = milepost_http::retry_after(response.headers());
        let mut words = Capped::default();
        let deadline = deadline.min(Instant::now() + WORDS_TIMEOUT);
        // If the body does not arrive in time, the status is sufficient.
        let _ = timeout_at(deadline, read(response, &mut words, WORDS_BYTES_MAX)).await;
        let mut message = format!("{} answered {status}", origin(&self.url));
        if !words.bytes.is_empty() {
            message = format!("{message}: {}", self.secrets_of_messages.hide(words.text()));
        }
        if !is_retryable(status) {
            return JobError::fatal(code, message);
        }
        let error = JobError::retryable(code, message);
        match wait {
            Some(wait) => error.after(wait),
            None => error,
        }
    }

    fn late(&self) -> JobError {
        let message =
            format!("{} did not send a complete answer within {:?}", origin(&self.url), self.timeout);
        JobError::retryable("http_timeout", message)
    }

    fn broken(&self, error: reqwest::Error) -> JobError {
        if let Some(why) = forbidden(&error) {
            return JobError::retryable(
                "http_forbidden",
                format!("{} was not called: {why}", origin(&self.url)),
            );
        }
        let (code, what) = match &error {
            error if error.is_connect() => ("http_connect", "cannot be reached"),
            error if error.is_timeout() => ("http_timeout", "did not answer in time"),
            _ => ("http_broken", "did not send a complete answer"),
        };
        let message =
            format!("{} {what}: {}", origin(&self.url), JobError::from(error.without_url()).message);
        JobError::retryable(code, message)
    }
}

fn is_retryable(status: StatusCode) -> bool {
    status.is_server_error()
        || matches!(
            status,
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS
        )
}
