//! The configuration and the keys of the provider, which are read when they are first needed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use openidconnect::{DiscoveryError, IssuerUrl, ProviderMetadataWithLogout};
use thiserror::Error;
use tokio::sync::Mutex;

use super::calls::{CallFailed, Calls};
use super::options::is_safe;

/// How long configuration and keys are used before they are read again.
const FRESH: Duration = Duration::from_secs(60 * 60);
/// The shortest time between two reads because of an unknown key.
const KEYS_EVERY: Duration = Duration::from_secs(10);
/// How long a failure is returned before the provider is asked again, so that requests do not queue behind failing ones.
const FAILURE_LASTS: Duration = Duration::from_secs(2);

/// The configuration and the keys of a provider.
pub(super) struct Discovery {
    issuer: IssuerUrl,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    calls: Option<Calls>,
    metadata: Option<(Instant, Arc<ProviderMetadataWithLogout>)>,
    failed: Option<(Instant, Unavailable)>,
}

/// The reason why the provider cannot be used. The messages are shown to unidentified clients: they contain no URL and nothing of a
/// response.
#[derive(Clone, Debug, Error)]
pub(super) enum Unavailable {
    #[error("{0}")]
    Call(Arc<CallFailed>),
    #[error("its response has the status {0}")]
    Status(u16),
    #[error("its response is not valid")]
    Invalid,
    #[error("its configuration names another issuer")]
    OtherIssuer,
    #[error("its configuration has a URL without TLS")]
    Unsafe,
    #[error("its configuration has no URL for the exchange of codes")]
    NoTokenUrl,
}

impl From<CallFailed> for Unavailable {
    fn from(failed: CallFailed) -> Self {
        Self::Call(Arc::new(failed))
    }
}

impl Discovery {
    pub(super) fn new(issuer: IssuerUrl) -> Self {
        Self { issuer, known: Mutex::default() }
    }

    /// Returns the client for calls to the provider.
    pub(super) async fn calls(&self) -> Result<Calls, Unavailable> {
        Ok(self.known.lock().await.calls(&self.issuer)?)
    }

    /// Returns the provider's configuration and keys. If it cannot be read again, the previous configuration is used.
    pub(super) async fn metadata(&self) -> Result<Arc<ProviderMetadataWithLogout>, Unavailable> {
        let mut known = self.known.lock().await;
        let last = known.metadata.clone();
        match last {
            Some((at, metadata)) if at.elapsed() < FRESH => Ok(metadata),
            Some((_, metadata)) => Ok(known.read(&self.issuer).await.unwrap_or(metadata)),
            None => known.read(&self.issuer).await,
        }
    }

    /// Returns newer keys than these, which do not have the key of a token. `None` if they were read only just now.
    pub(super) async fn newer(
        &self,
        than: &Arc<ProviderMetadataWithLogout>,
    ) -> Result<Option<Arc<ProviderMetadataWithLogout>>, Unavailable> {
        let mut known = self.known.lock().await;
        match &known.metadata {
            Some((_, metadata)) if !Arc::ptr_eq(metadata, than) => Ok(Some(Arc::clone(metadata))),
            Some((at, _)) if at.elapsed() < KEYS_EVERY => Ok(None),
            _ => known.read(&self.issuer).await.map(Some),
        }
    }
}

impl Known {
    fn calls(&mut self, issuer: &IssuerUrl) -> Result<Calls, CallFailed> {
        let calls = match self.calls.take() {
            Some(calls) => calls,
            None => Calls::new(issuer.url())?,
        };
        Ok(self.calls.insert(calls).clone())
    }

    /// Reads configuration and keys, unless that failed only just now.
    async fn read(&mut self, issuer: &IssuerUrl) -> Result<Arc<ProviderMetadataWithLogout>, Unavailable> {
        if let Some((at, failed)) = &self.failed
            && at.elapsed() < FAILURE_LASTS
        {
            return Err(failed.clone());
        }
        let read = async {
            let calls = self.calls(issuer)?;
            let metadata = ProviderMetadataWithLogout::discover_async(issuer.clone(), &calls).await;
            checked(metadata.map_err(unavailable)?)
        };
        match read.await {
            Ok(metadata) => {
                let metadata = Arc::new(metadata);
                self.metadata = Some((Instant::now(), Arc::clone(&metadata)));
                Ok(metadata)
            }
            Err(failed) => {
                tracing::warn!(
                    issuer = issuer.as_str(),
                    error = causes(&failed),
                    "the configuration of the provider for sign-in cannot be read"
                );
                self.failed = Some((Instant::now(), failed.clone()));
                Err(failed)
            }
        }
    }
}

/// Refuses a configuration by which secrets would cross the network unencrypted.
fn checked(metadata: ProviderMetadataWithLogout) -> Result<ProviderMetadataWithLogout, Unavailable> {
    let Some(token) = metadata.token_endpoint() else { return Err(Unavailable::NoTokenUrl) };
    let end =
        metadata.additional_metadata().end_session_endpoint.as_ref().map(openidconnect::EndSessionUrl::url);
    let urls = [metadata.authorization_endpoint().url(), token.url(), metadata.jwks_uri().url()];
    if urls.into_iter().chain(end).all(is_safe) { Ok(metadata) } else { Err(Unavailable::Unsafe) }
}

fn unavailable(error: DiscoveryError<CallFailed>) -> Unavailable {
    match error {
        DiscoveryError::Request(failed) => failed.into(),
        DiscoveryError::Response(status, ..) if !status.is_success() => Unavailable::Status(status.as_u16()),
        DiscoveryError::Validation(_) => Unavailable::OtherIssuer,
        _ => Unavailable::Invalid,
    }
}

/// Returns the error with its causes, for the log.
pub(super) fn causes(failed: &Unavailable) -> String {
    let mut text = failed.to_string();
    let Unavailable::Call(call) = failed else { return text };
    let mut source = std::error::Error::source(call.as_ref());
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}
