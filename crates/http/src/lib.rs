//! What calls over HTTP have in common, whoever makes them: TLS, answers of which only so much is kept, and how long a server
//! asks to be left alone. Knows nothing of jobs and events.

mod answer;
mod capped;
mod retry_after;
mod tls;

pub use answer::{leads_to, origin, read};
pub use capped::Capped;
pub use retry_after::wait as retry_after;
pub use tls::config as tls_config;
