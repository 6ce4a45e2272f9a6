//! The configuration of the programs.

use std::net::SocketAddr;
use std::time::Duration;

/// The lease of workers and relays.
pub(crate) const LEASE: Duration = Duration::from_secs(5);
/// The kind of all jobs.
pub(crate) const KIND: &str = "soak.call";
/// The subscription of the relay.
pub(crate) const SUBSCRIPTION: &str = "soak";
/// How long jobs and events are kept after their end, in seconds: short, so that deletion keeps pace with the load for most of the time.
pub(crate) const KEEP_S: u64 = 60;
/// A secret for signatures that nobody checks.
const SECRET: &str = "whsec_c29ha3NvYWtzb2Frc29ha3NvYWtzb2Fr";

/// Returns the text of `milepost.toml` for a store, and a receiver of jobs and events.
pub(crate) fn text(store: &str, receiver: SocketAddr) -> String {
    let lease_s = LEASE.as_secs();
    format!(
        r#"store = "{store}"

[worker]
lease = "{lease_s}s"
concurrency = 64

[kinds."{KIND}".http]
url = "http://{receiver}/jobs"
allow_networks = ["127.0.0.0/8"]
timeout = "5s"

[kinds."{KIND}".backoff]
base = "200ms"
cap = "1s"

[retention]
succeeded = "{KEEP_S}s"
events = "{KEEP_S}s"

[subscription.{SUBSCRIPTION}]
lease = "{lease_s}s"
deliveries_max = 1000

[subscription.{SUBSCRIPTION}.backoff]
base = "200ms"
cap = "1s"

[subscription.{SUBSCRIPTION}.webhook]
url = "http://{receiver}/events"
allow_networks = ["127.0.0.0/8"]
secrets = ["{SECRET}"]
"#
    )
}
