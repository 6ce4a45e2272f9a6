//! What calls over HTTP have in common, whoever makes them: TLS, answers of which only so much is kept, how long a server
//! asks to be left alone, and which addresses are connected to at all. Knows nothing of jobs and events.

mod address;
mod answer;
mod capped;
mod guard;
mod networks;
mod retry_after;
mod tls;

pub use answer::{leads_to, origin, read};
pub use capped::Capped;
pub use guard::{Guard, forbidden};
pub use networks::{Forbidden, InvalidNetwork, Networks};
pub use retry_after::wait as retry_after;
pub use tls::config as tls_config;
