//! Sign-in with an OpenID Connect provider: the authorization code flow with PKCE.
//!
//! The provider is found when it is first needed, so that the server starts without it. What ends in the store is a session with the name
//! and the role of a person; tokens of the provider are not kept.

mod calls;
mod discovery;
mod id_token;
mod options;
mod provider;
pub(crate) mod sign_in;

pub use self::options::{InvalidOidc, OidcOptions, check_external_url, check_issuer};
pub(crate) use self::provider::Provider;
