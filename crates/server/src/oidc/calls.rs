//! HTTP calls to the provider, with limits of time and size.

use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use milepost_http::Capped;
use openidconnect::url::Url;
use openidconnect::{AsyncHttpClient, HttpRequest, HttpResponse, http};
use reqwest::redirect::Policy;
use thiserror::Error;

use super::options::is_safe;

/// Time limit of a connection.
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// Time limit of a call, from the connection to the end of the body.
const CALL_TIME: Duration = Duration::from_secs(10);
/// Maximum size of a response. The configuration and the keys of large providers have a few tens of kilobytes.
const BODY_BYTES_MAX: usize = 512 * 1024;

/// Makes calls to the provider.
#[derive(Clone)]
pub(super) struct Calls(reqwest::Client);

/// The reason why a call failed. Its messages contain no URL and nothing of a response.
#[derive(Debug, Error)]
pub(super) enum CallFailed {
    #[error("TLS cannot be set up")]
    Tls(#[source] rustls::Error),
    #[error("the client cannot be set up")]
    Client(#[source] reqwest::Error),
    #[error("a URL of the provider has no TLS, and does not lead to this machine")]
    Unsafe,
    #[error("the request is not valid")]
    Invalid,
    #[error("it did not respond within {} s", CALL_TIME.as_secs())]
    Timeout,
    #[error("it cannot be reached, or the connection broke")]
    Broken(#[source] reqwest::Error),
    #[error("its response has more than {BODY_BYTES_MAX} bytes")]
    TooLarge,
}

impl Calls {
    /// `issuer`: decides whether TLS is needed.
    pub(super) fn new(issuer: &Url) -> Result<Self, CallFailed> {
        let tls = milepost_http::tls_config(issuer).map_err(CallFailed::Tls)?;
        let client = reqwest::Client::builder()
            .user_agent(concat!("milepost/", env!("CARGO_PKG_VERSION")))
            // A redirect could lead the secret of this server elsewhere.
            .redirect(Policy::none())
            .connect_timeout(CONNECT_TIME)
            .timeout(CALL_TIME)
            .tls_backend_preconfigured(tls)
            .build()
            .map_err(CallFailed::Client)?;
        Ok(Self(client))
    }

    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, CallFailed> {
        let request = reqwest::Request::try_from(request).map_err(|_| CallFailed::Invalid)?;
        if !is_safe(request.url()) {
            return Err(CallFailed::Unsafe);
        }
        let answer = self.0.execute(request).await.map_err(failed)?;
        let (status, headers) = (answer.status(), answer.headers().clone());
        let mut body = Capped::default();
        milepost_http::read(answer, &mut body, BODY_BYTES_MAX).await.map_err(failed)?;
        if body.cut {
            return Err(CallFailed::TooLarge);
        }
        let mut response = http::Response::new(body.bytes);
        (*response.status_mut(), *response.headers_mut()) = (status, headers);
        Ok(response)
    }
}

impl<'c> AsyncHttpClient<'c> for Calls {
    type Error = CallFailed;
    type Future = BoxFuture<'c, Result<HttpResponse, CallFailed>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        self.send(request).boxed()
    }
}

fn failed(error: reqwest::Error) -> CallFailed {
    if error.is_timeout() { CallFailed::Timeout } else { CallFailed::Broken(error.without_url()) }
}
