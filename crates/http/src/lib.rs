//! Common parts of HTTP clients: TLS, size limits for responses, `Retry-After`, and restrictions on the addresses that calls can reach.
//! Does not depend on jobs and events.

mod address;
mod answer;
mod capped;
mod guard;
mod guarded;
mod networks;
mod retry_after;
mod secret_parts;
mod secret_url;
mod signature;
mod tls;
mod words;

pub use address::is_loopback;
pub use answer::{in_words, leads_to, origin, read};
pub use capped::Capped;
pub use guard::{Guard, forbidden};
pub use guarded::{client as guarded_client, url as guarded_url};
pub use networks::{Forbidden, InvalidNetwork, Networks};
pub use retry_after::wait as retry_after;
pub use secret_parts::secret_parts;
pub use secret_url::SecretUrl;
pub use signature::{InvalidSecrets, Signer, WebhookSecret};
pub use tls::config as tls_config;
pub use words::in_full;
