//! Limits on the requests of a client: rate, concurrency and body sizes.

mod bodies;
pub(crate) mod bound;
pub(crate) mod in_flight;
mod rate;
pub(crate) mod turns;

use std::sync::Arc;
use std::time::Duration;

use milepost_core::limit::Rate;

use self::bodies::Bodies;
use self::in_flight::InFlight;
use self::rate::Rates;
use self::turns::Turns;
use crate::client::{Caller, Client};
use crate::problem::{Code, Problem};

/// Maximum number of reads of one caller that use the store at the same time. A store on SQLite reads with four connections, so that another
/// caller waits for two of these at most. It does not apply to programs on this machine that need no token: their probes would wait for other reads.
const READS_OF_CALLER_MAX: usize = 8;

/// The limits of a server.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Maximum size of a request body, in bytes.
    pub body_bytes: usize,
    /// Maximum body bytes that the concurrent requests of a client hold. A client is a token, or an address without a token.
    /// Programs on this machine that need no token may use the limit of the server.
    pub body_bytes_of_client: usize,
    /// Maximum body bytes that all concurrent requests hold.
    pub body_bytes_of_all: usize,
    /// Maximum total size of the headers of a request, in bytes.
    pub header_bytes: usize,
    /// Maximum request rate of a client: a token, or an address without a token. It does not apply to programs on this machine
    /// that need no token. `None`: no limit for any client.
    pub rate: Option<Rate>,
    /// Maximum rate of unknown tokens from an address: each of them costs a query of the store.
    pub unknown_tokens: Rate,
    /// Maximum rate of sign-ins with a provider that begin from an address: each of them is stored.
    pub sign_ins: Rate,
    /// Maximum number of concurrent requests of a client.
    pub in_flight: usize,
    /// Maximum number of connections. A connection beyond it can send one request, which waits until another connection ends;
    /// probes are answered immediately. One address, other than this machine's, may use half of the connections; further ones are
    /// closed.
    pub connections: usize,
    /// Time limit for the headers of a request, from the previous response or the start of the connection.
    pub header_time: Duration,
    /// Time limit until the response starts. Longer than the longest wait of a claim.
    pub request_time: Duration,
    /// How long a client may accept no data while the server is sending.
    pub write_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // Several thousand jobs with small payloads, or a few with the largest payload.
            body_bytes: 16 * 1024 * 1024,
            body_bytes_of_client: 64 * 1024 * 1024,
            body_bytes_of_all: 256 * 1024 * 1024,
            header_bytes: 32 * 1024,
            rate: Some(Rate::new(5_000.0, 10_000)),
            unknown_tokens: Rate::new(50.0, 200),
            // Many people of a company may have one address.
            sign_ins: Rate::new(1.0, 100),
            in_flight: 1_000,
            connections: 1_000,
            header_time: Duration::from_secs(60),
            request_time: Duration::from_secs(90),
            write_time: Duration::from_secs(60),
        }
    }
}

/// The counters of the limits.
pub(crate) struct Counted {
    rates: Option<Rates<Caller>>,
    strangers: Rates<Client>,
    sign_ins: Rates<Client>,
    in_flight: Arc<InFlight<Caller>>,
    reads: Turns,
    bodies: Arc<Bodies<Caller>>,
    request_time: Duration,
}

impl Counted {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            rates: limits.rate.map(Rates::new),
            strangers: Rates::new(limits.unknown_tokens),
            sign_ins: Rates::new(limits.sign_ins),
            in_flight: InFlight::new(limits.in_flight),
            reads: Turns::new(READS_OF_CALLER_MAX),
            bodies: Bodies::new(limits.body_bytes_of_client, limits.body_bytes_of_all),
            request_time: limits.request_time,
        }
    }

    /// Counts a request without valid credentials against its address, since it does not reach the middleware that counts the
    /// others.
    pub(crate) fn check_refused(&self, client: Client) -> Result<(), Problem> {
        match &self.rates {
            Some(rates) => rates.take(Caller::Address(client)).map_err(too_many),
            None => Ok(()),
        }
    }

    /// Refuses a client that sends too many unknown tokens.
    pub(crate) fn check_stranger(&self, client: Client) -> Result<(), Problem> {
        self.strangers.take(client).map_err(too_many)
    }

    /// Refuses a client that begins too many sign-ins with a provider.
    pub(crate) fn check_sign_in(&self, client: Client) -> Result<(), Problem> {
        self.sign_ins.take(client).map_err(too_many)
    }
}

fn too_many(wait: Duration) -> Problem {
    let words = "this client sends too many requests; retry after the time in Retry-After";
    Problem::new(Code::TooManyRequests, words).retry_after_s(wait.as_secs() + 1)
}
