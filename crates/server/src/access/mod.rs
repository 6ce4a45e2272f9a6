//! Who may ask for what.
//!
//! [`gate()`] stands before every route: it finds out who asks, by a token or by a session, and holds that against the role that the route
//! [needs](roles). A route of which nobody has said what it needs is refused.

mod credentials;
mod gate;
mod identity;
mod lasting;
mod memory;
mod origin;
mod roles;
mod tokens;

use std::time::Duration;

use milepost_core::session::SessionTimes;

use crate::proxies::TrustedProxies;

pub(crate) use self::credentials::cookie;
pub(crate) use self::gate::{gate, known};
pub(crate) use self::identity::{Allowed, Identity};
pub(crate) use self::lasting::{Lasting, Over};
pub(crate) use self::memory::{Memory, Recalled};
pub(crate) use self::origin::{Hosts, comes_from_here, foreign, guard};
pub(crate) use self::roles::{Needed, Roles};
pub(crate) use self::tokens::{Tokens, check};

/// For how long an answer of the store about tokens and sessions counts: so long after it was revoked a token may still be used.
pub(crate) const FRESH: Duration = Duration::from_secs(1);

/// Who may use a server.
#[derive(Clone, Debug, Default)]
pub struct AccessOptions {
    /// Whether a token is asked for though there is none in the store.
    pub require_tokens: bool,
    /// Whether everybody who reaches the address may do everything as long as there is no token in the store. A server that listens beyond
    /// this machine refuses to start without tokens unless this is said; for one that does not it changes nothing.
    pub open_to_all: bool,
    /// The names under which the server is reached, beside those of this machine. None: any name, once tokens are asked for.
    pub allowed_hosts: Vec<String>,
    /// How long people stay signed in.
    pub sessions: SessionTimes,
    /// Proxies that say from which address a request came.
    pub trusted_proxies: TrustedProxies,
    /// Whether people reach it by HTTPS, though it does not speak TLS itself: by a proxy.
    pub behind_tls: bool,
}
