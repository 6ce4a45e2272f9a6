//! Jobs as HTTP calls: the payload is posted as JSON, the answer says how the job ended.
//!
//! | answer | means |
//! |---|---|
//! | 2xx | success; the body is the result: JSON as it is, other text as a JSON string, cut at 64 KiB |
//! | 408, 425, 429, 5xx | failed, to be tried again: `http_N`; a `Retry-After` is honoured, up to a day |
//! | 3xx | failed for good: redirects are not followed |
//! | any other | failed for good: `http_N` |
//! | no connection | to be tried again: `http_connect` |
//! | no call: an address that may not be connected to | to be tried again, so that there is time to allow it: `http_forbidden` |
//! | the connection broke, or the answer is no HTTP | to be tried again: `http_broken` |
//! | too late, the body included | to be tried again: `http_timeout` |
//!
//! Only the public internet is connected to, and the networks that are allowed by name ([`HttpConfig::allow_networks`]): every address of a
//! name is looked at, and none but these is connected to. Proxies of the environment are not used: nobody here could check where they lead.
//!
//! Every attempt of a job, or of a chunk of a bulk job, carries the same `Idempotency-Key`. Messages name the server and no more of the URL, since
//! paths and parameters hold secrets as often as headers do. What the server says is kept without what is known to be secret.

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

/// How long one call may take unless configured otherwise, from the connection to the end of the body.
pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);
/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How much of the body of a failure becomes part of its message.
const WORDS_BYTES_MAX: usize = 1024;
/// How long the words of a failure are waited for, whose status is known by then.
const WORDS_TIMEOUT: Duration = Duration::from_secs(2);

/// Runs jobs as HTTP calls.
pub struct Http {
    client: Client,
    url: Url,
    timeout: Duration,
    secrets: Secrets,
}

impl Http {
    /// An executor with these settings and connections of its own, which it keeps for further calls.
    ///
    /// # Errors
    /// [`InvalidHttp`] says what cannot be used.
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
        // A server may answer with what it was told.
        let told =
            config.headers.values().flat_map(|value| std::iter::once(value.as_str()).chain(value.split(' ')));
        let told = told.chain(url.password()).map(str::to_owned);
        let secrets = config.secrets.and(told.collect::<Vec<_>>());
        Ok(Self { client, url, timeout: config.timeout, secrets })
    }

    /// Runs one attempt. When the context is canceled, or this future is dropped, so is the call, at once.
    ///
    /// # Errors
    /// As the answer says, see the [module](self).
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
        Ok(result::outcome(&body, &self.secrets))
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

    /// The failure that an answer other than 2xx stands for.
    async fn refused(&self, response: Response, deadline: Instant) -> JobError {
        let status = response.status();
        let code = format!("http_{}", status.as_u16());
        if status.is_redirection() {
            let to = leads_to(&response, &self.url).map_or_else(String::new, |to| format!(" to {to}"));
            let message = format!(
                "{} answered {status}: a redirect{to}, which is not followed; configure the URL that answers itself",
                origin(&self.url)
            );
            return JobError::fatal(code, message);
        }
        let wait = milepost_http::retry_after(response.headers());
        let mut words = Capped::default();
        let deadline = deadline.min(Instant::now() + WORDS_TIMEOUT);
        // The status says enough when the words do not arrive.
        let _ = timeout_at(deadline, read(response, &mut words, WORDS_BYTES_MAX)).await;
        let mut message = format!("{} answered {status}", origin(&self.url));
        if !words.bytes.is_empty() {
            message = format!("{message}: {}", self.secrets.hide(words.text()));
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
        let message = format!("{} did not answer in full within {:?}", origin(&self.url), self.timeout);
        JobError::retryable("http_timeout", message)
    }

    fn broken(&self, error: reqwest::Error) -> JobError {
        if let Some(why) = forbidden(&error) {
            return JobError::retryable(
                "http_forbidden",
                format!("{} is not called: {why}", origin(&self.url)),
            );
        }
        let (code, what) = match &error {
            error if error.is_connect() => ("http_connect", "cannot be reached"),
            error if error.is_timeout() => ("http_timeout", "did not answer in time"),
            _ => ("http_broken", "did not answer in full"),
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
