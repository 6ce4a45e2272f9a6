//! What the processes of an experiment do.

/// What a process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// `milepost serve`, for those that use the HTTP API.
    Server,
    /// Runs jobs and publishes events.
    Worker,
    /// Runs jobs over HTTP, in Python.
    HttpWorker,
    /// Enqueues, emits, starts and operates.
    Client,
    /// Enqueues, emits and operates over HTTP, in Python.
    HttpClient,
    /// Follows the stream and takes events in.
    Reader,
}

impl Role {
    /// The number of processes with each role, in the order in which they start.
    pub(super) const COUNTS: [(Self, usize); 6] = [
        (Self::Server, SERVERS),
        (Self::Worker, 3),
        (Self::HttpWorker, 2),
        (Self::Client, 2),
        (Self::HttpClient, 1),
        (Self::Reader, 1),
    ];
    /// Those that run jobs.
    pub(super) const WORKERS: [Self; 2] = [Self::Worker, Self::HttpWorker];
    /// Those that make calls.
    pub(super) const CLIENTS: [Self; 2] = [Self::Client, Self::HttpClient];

    /// Returns its name.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Worker => "worker",
            Self::HttpWorker => "worker over HTTP",
            Self::Client => "client",
            Self::HttpClient => "client over HTTP",
            Self::Reader => "reader",
        }
    }
}

/// The number of servers.
pub(super) const SERVERS: usize = 2;
