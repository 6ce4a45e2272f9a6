//! Access control.
//!
//! [`gate()`] runs before every route: it identifies the caller by a token or a session, and checks the caller's role against the
//! one that the route [needs](roles). A route without a declared role is refused.

mod credentials;
mod gate;
mod identity;
mod origin;
mod roles;
mod stream_access;
mod token_cache;
mod tokens;

use std::time::Duration;

use milepost_core::session::SessionTimes;

use crate::oidc::OidcOptions;
use crate::proxies::TrustedProxies;

pub(crate) use self::credentials::cookie;
pub(crate) use self::gate::{gate, known};
pub(crate) use self::identity::{Allowed, Identity};
pub(crate) use self::origin::{Hosts, comes_from_here, foreign, guard};
pub(crate) use self::roles::{Limited, Needed, Roles};
pub(crate) use self::stream_access::{OpenCredentials, Over};
pub(crate) use self::token_cache::{Memory, Recalled};
pub(crate) use self::tokens::{Tokens, check};

/// How long results of the store for tokens and sessions are cached. A revoked token may be accepted for this long.
pub(crate) const FRESH: Duration = Duration::from_secs(1);

/// Options of access control.
#[derive(Clone, Debug, Default)]
pub struct AccessOptions {
    /// Whether requests need a token even if the store has none. Trusted proxies imply it, unless `open_to_all` is set.
    pub require_tokens: bool,
    /// Whether every client that can reach the address may do everything as long as the store has no token. A server that listens
    /// beyond this machine, or behind trusted proxies, does not start without tokens unless this is set. On a loopback address without
    /// trusted proxies it has no effect.
    pub open_to_all: bool,
    /// Accepted host names, in addition to those of this machine. If empty, any name is accepted once tokens are needed.
    pub allowed_hosts: Vec<String>,
    /// Lifetimes of console sessions.
    pub sessions: SessionTimes,
    /// Proxies whose headers with the client address are trusted.
    pub trusted_proxies: TrustedProxies,
    /// Sign-in with a provider. Implies `require_tokens`.
    pub oidc: Option<OidcOptions>,
    /// Whether browsers reach the server by HTTPS through a proxy, although it does not use TLS itself.
    pub behind_tls: bool,
}
