//! Common parts of HTTP clients: TLS, size limits for responses, `Retry-After`, and restrictions on the addresses that calls can reach.
//! Does not depend on jobs and events.

mod address;
mod answer;
mod capped;
mod guard;
mod networks;
mod retry_after;
mod secret_parts;
mod tls;

pub use answer::{leads_to, origin, read};
pub use capped::Capped;
pub use guard::{Guard, forbidden};
pub use networks::{Forbidden, InvalidNetwork, Networks};
pub use retry_after::wait as retry_after;
pub use secret_parts::secret_parts;
pub use tls::config as tls_config;
