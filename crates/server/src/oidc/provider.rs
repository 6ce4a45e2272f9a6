//! The provider: the URLs of its pages, and the exchange of codes for verified claims.

use std::collections::HashSet;
use std::time::Duration;

use milepost_core::oidc::{Person, RoleRules};
use milepost_core::secrets::Secrets;
use milepost_core::session::{ReturnedSignIn, SignInLimits};
use milepost_core::text::is_unprintable;
use openidconnect::core::{
    CoreAuthenticationFlow, CoreClient, CoreClientAuthMethod, CoreErrorResponseType, CoreIdToken,
};
use openidconnect::url::Url;
use openidconnect::{
    AuthType, AuthorizationCode, ClientId, ClientSecret, CsrfToken, EndpointMaybeSet, EndpointNotSet,
    EndpointSet, IssuerUrl, LogoutRequest, Nonce, PkceCodeChallenge, PkceCodeVerifier, PostLogoutRedirectUrl,
    ProviderMetadataWithLogout, RedirectUrl, RequestTokenError, Scope, StandardErrorResponse, TokenResponse,
};
use thiserror::Error;
use tokio::time::timeout;

use super::calls::CallFailed;
use super::discovery::{Discovery, Unavailable};
use super::id_token::{self, Unverified};
use super::options::{CALLBACK, InvalidOidc, OidcOptions, check_external_url, check_issuer};

/// How long a sign-out waits for the provider, if its configuration has to be read first.
const SIGN_OUT_TIME: Duration = Duration::from_secs(2);
/// Maximum length of the provider's description of an error in the log.
const DESCRIPTION_CHARS_MAX: usize = 300;

/// The provider, with its configuration and keys.
pub(crate) struct Provider {
    options: OidcOptions,
    redirect: RedirectUrl,
    origin: String,
    grants: HashSet<[u8; 32]>,
    pub(super) limits: SignInLimits,
    discovery: Discovery,
}

/// The reason why the provider's answer identifies no person.
#[derive(Debug, Error)]
pub(super) enum NotIdentified {
    #[error("the provider cannot be used: {0}")]
    Unavailable(#[from] Unavailable),
    #[error("the provider refused the code: {0}")]
    CodeRefused(String),
    #[error("the ID token is not valid: {0}")]
    Unverified(#[from] Unverified),
}

type Ready = CoreClient<
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;

type ExchangeFailed = RequestTokenError<CallFailed, StandardErrorResponse<CoreErrorResponseType>>;

impl Provider {
    pub(crate) fn new(options: OidcOptions) -> Result<Self, InvalidOidc> {
        check_issuer(&options.rules.issuer)?;
        let origin = check_external_url(&options.external_url)?;
        let issuer = IssuerUrl::new(options.rules.issuer.clone());
        let issuer = issuer.map_err(|_| InvalidOidc::Issuer("it is not a URL"))?;
        let redirect = RedirectUrl::new(format!("{origin}{CALLBACK}"));
        let redirect = redirect.map_err(|_| InvalidOidc::ExternalUrl("it is not a URL"))?;
        let (grants, limits) = (options.rules.grants(), SignInLimits::default());
        let discovery = Discovery::new(issuer);
        Ok(Self { options, redirect, origin, grants, limits, discovery })
    }

    pub(crate) fn button(&self) -> &str {
        &self.options.button
    }

    /// Returns the URL by which browsers reach the server, without a path.
    pub(crate) fn origin(&self) -> &str {
        &self.origin
    }

    /// Returns whether browsers reach the server by HTTPS.
    pub(crate) fn is_reached_by_tls(&self) -> bool {
        self.origin.starts_with("https://")
    }

    pub(super) fn rules(&self) -> &RoleRules {
        &self.options.rules
    }

    /// Returns whether the configuration still grants the role of a person.
    pub(crate) fn grants(&self, person: &Person) -> bool {
        self.grants.contains(person.grant.as_bytes())
    }

    /// Returns whether a parameter `iss` of the provider's answer names it (RFC 9207).
    pub(super) fn is_issuer(&self, text: &str) -> bool {
        text == self.options.rules.issuer
    }

    /// Returns the URL of the provider's page to sign in.
    pub(super) async fn sign_in_url(
        &self,
        state: String,
        nonce: String,
        verifier: String,
    ) -> Result<Url, Unavailable> {
        let metadata = self.discovery.metadata().await?;
        let challenge = PkceCodeChallenge::from_code_verifier_sha256(&PkceCodeVerifier::new(verifier));
        let client = self.client(&metadata);
        let flow = CoreAuthenticationFlow::AuthorizationCode;
        let request = client.authorize_url(flow, || CsrfToken::new(state), || Nonce::new(nonce));
        let scopes = self.options.scopes.iter().filter(|scope| *scope != "openid");
        let request = request.add_scopes(scopes.map(|scope| Scope::new(scope.clone())));
        let (url, _, _) = request.set_pkce_challenge(challenge).url();
        Ok(url)
    }

    /// Returns the URL of the provider's page to sign out, if it has one.
    pub(crate) async fn sign_out_url(&self) -> Option<Url> {
        let metadata = timeout(SIGN_OUT_TIME, self.discovery.metadata()).await.ok()?.ok()?;
        let end = metadata.additional_metadata().end_session_endpoint.clone()?;
        let back = PostLogoutRedirectUrl::new(format!("{}/sign-in", self.origin)).ok()?;
        let request =
            LogoutRequest::from(end).set_client_id(self.client_id()).set_post_logout_redirect_uri(back);
        Some(request.http_get_url())
    }

    /// Exchanges the code for the claims of a verified ID token.
    pub(super) async fn claims(
        &self,
        code: String,
        sign_in: &ReturnedSignIn,
    ) -> Result<serde_json::Value, NotIdentified> {
        let metadata = self.discovery.metadata().await?;
        let token = self.exchange(&metadata, code, sign_in).await?;
        match id_token::verify(&token, &metadata, self.client_id(), sign_in, &self.limits) {
            Err(unverified) if unverified.is_unknown_key() => {
                let metadata = self.discovery.newer(&metadata).await?.ok_or(unverified)?;
                Ok(id_token::verify(&token, &metadata, self.client_id(), sign_in, &self.limits)?)
            }
            verified => Ok(verified?),
        }
    }

    async fn exchange(
        &self,
        metadata: &ProviderMetadataWithLogout,
        code: String,
        sign_in: &ReturnedSignIn,
    ) -> Result<CoreIdToken, NotIdentified> {
        let calls = self.discovery.calls().await?;
        let verifier = PkceCodeVerifier::new(sign_in.verifier.clone());
        let client = self.client(metadata);
        let request =
            client.exchange_code(AuthorizationCode::new(code.clone())).map_err(|_| Unavailable::Invalid)?;
        let answer = request.set_pkce_verifier(verifier).request_async(&calls).await;
        let answer = answer.map_err(|error| self.not_identified(error, &code, sign_in))?;
        answer.id_token().cloned().ok_or(NotIdentified::Unverified(Unverified::Missing))
    }

    /// Returns why the exchange failed, without the secrets that the provider may repeat.
    fn not_identified(&self, error: ExchangeFailed, code: &str, sign_in: &ReturnedSignIn) -> NotIdentified {
        let refused = match error {
            RequestTokenError::Request(failed) => return Unavailable::from(failed).into(),
            RequestTokenError::Parse(..) | RequestTokenError::Other(_) => return Unavailable::Invalid.into(),
            RequestTokenError::ServerResponse(refused) => refused,
        };
        let description = refused.error_description().map_or("", String::as_str);
        let secrets = [self.options.client_secret.as_str(), code, &sign_in.verifier, &sign_in.nonce];
        let secrets = Secrets::new(secrets.map(str::to_owned));
        let described = secrets.hide(format!("{}: {description}", refused.error().as_ref()));
        let described =
            described.chars().filter(|c| !is_unprintable(*c)).take(DESCRIPTION_CHARS_MAX).collect();
        NotIdentified::CodeRefused(described)
    }

    fn client(&self, metadata: &ProviderMetadataWithLogout) -> Ready {
        let secret = ClientSecret::new(self.options.client_secret.clone());
        let client = CoreClient::from_provider_metadata(metadata.clone(), self.client_id(), Some(secret));
        // The default of the standard is the header.
        let methods = metadata.token_endpoint_auth_methods_supported();
        let is_in_body = methods.is_some_and(|methods| {
            !methods.contains(&CoreClientAuthMethod::ClientSecretBasic)
                && methods.contains(&CoreClientAuthMethod::ClientSecretPost)
        });
        let auth = if is_in_body { AuthType::RequestBody } else { AuthType::BasicAuth };
        client.set_redirect_uri(self.redirect.clone()).set_auth_type(auth)
    }

    fn client_id(&self) -> ClientId {
        ClientId::new(self.options.rules.client_id.clone())
    }
}
