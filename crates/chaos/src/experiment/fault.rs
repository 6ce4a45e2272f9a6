//! The kinds of faults.

use clap::ValueEnum;

use super::StoreKind;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Fault {
    /// SIGKILL of a worker; another one starts.
    KillWorker,
    /// SIGSTOP of a worker for longer than its lease.
    StopWorker,
    /// SIGKILL of a client; another one starts.
    KillClient,
    /// SIGKILL of the reader; another one starts.
    KillReader,
    /// SIGKILL of a server of the HTTP API; another one starts.
    KillServer,
    /// SIGSTOP of a server of the HTTP API for longer than the lease of its workers.
    StopServer,
    /// An immediate shutdown of the database server, and a start.
    CrashServer,
    /// The loss of the database server; its synchronous standby is promoted.
    FailOver,
    /// The end of all connections by the server.
    KillBackends,
    /// All connections are cut, and new ones are refused for a while.
    CutNetwork,
    /// The existing connections stay open, but nothing passes any more.
    SilenceNetwork,
    /// Requests reach the server, answers are lost for a while.
    LoseAnswers,
    /// A disk without free space for a while.
    FillDisk,
    /// Columns are added to all tables, as the migration of a newer version does.
    AddColumns,
    /// A process is replaced by one of the other version, as a rolling upgrade does. The store is migrated before the first one.
    Roll,
    /// The loss of power: everything that was not synchronized is lost, and all processes end.
    LosePower,
    /// All places for connections are taken for a while.
    LimitConnections,
    /// Statements and transactions time out after a few milliseconds for a while.
    TimeOutSessions,
    /// The loss of the database server; a standby is promoted that lacks its last commits. Only if it is asked for.
    FailOverAsync,
    /// A restore of the database server to a moment in the past. Only if it is asked for.
    Restore,
    /// A dump of the database, restored on a new server. Only if it is asked for.
    DumpAndRestore,
    /// SIGKILL of the pooler between processes and server, and a start. Only if it is asked for.
    RestartPooler,
    /// The clock of all processes is set forwards or back for a while. Only if it is asked for.
    JumpClock,
    /// The clock of the database server is set forwards or back for a while. Only if it is asked for.
    JumpServerClock,
    /// An upgrade of the database server into a new cluster with `pg_upgrade`. Only if it is asked for.
    UpgradeServer,
    /// A disk that nothing can write to for a while, after an error of the file system.
    ReadOnlyDisk,
    /// A deletion of all jobs that have ended more than a moment ago. Only if it is asked for.
    Prune,
    /// SIGKILL of the Redis that workers and servers use, and a start. Only if it is asked for.
    KillRedis,
    /// SIGSTOP of that Redis for a while. Only if it is asked for.
    StopRedis,
    /// The loss of all that it knows. Only if it is asked for.
    FlushRedis,
    /// SIGKILL of the broker to which events are published, and a start. Only if it is asked for.
    KillBroker,
    /// Events reach the broker, but its acknowledgements are lost for a while. Only if it is asked for.
    LoseAcknowledgements,
    /// A move of the store from SQLite to a new PostgreSQL server, whose program is killed at times. Once, and only if it is asked for.
    Move,
}

impl Fault {
    /// Those of Redis.
    pub(super) const OF_REDIS: [Self; 3] = [Self::KillRedis, Self::StopRedis, Self::FlushRedis];
    /// Those of the broker.
    pub(super) const OF_BROKER: [Self; 2] = [Self::KillBroker, Self::LoseAcknowledgements];

    /// Returns its name.
    #[must_use]
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::KillWorker => "workers killed",
            Self::StopWorker => "workers stopped beyond their lease",
            Self::KillClient => "clients killed",
            Self::KillReader => "readers killed",
            Self::KillServer => "servers killed",
            Self::StopServer => "servers stopped beyond the lease of their workers",
            Self::CrashServer => "database servers crashed",
            Self::FailOver => "failovers",
            Self::KillBackends => "times all connections ended by the server",
            Self::CutNetwork => "times all connections cut",
            Self::SilenceNetwork => "times all connections silenced",
            Self::LoseAnswers => "times answers lost",
            Self::FillDisk => "times the disk was full",
            Self::AddColumns => "times columns added to all tables",
            Self::Roll => "processes replaced by one of the other version",
            Self::LosePower => "power losses",
            Self::LimitConnections => "times all places for connections taken",
            Self::TimeOutSessions => "times statements and transactions timed out",
            Self::FailOverAsync => "failovers to an asynchronous standby",
            Self::Restore => "restores to a moment in the past",
            Self::DumpAndRestore => "dumps restored on a new server",
            Self::RestartPooler => "poolers killed",
            Self::JumpClock => "times the clock was set",
            Self::JumpServerClock => "times the clock of the database server was set",
            Self::UpgradeServer => "upgrades of the database server",
            Self::ReadOnlyDisk => "times the disk became read-only",
            Self::Prune => "times ended jobs were deleted",
            Self::KillRedis => "times Redis was killed",
            Self::StopRedis => "times Redis was stopped",
            Self::FlushRedis => "times Redis was flushed",
            Self::KillBroker => "brokers killed",
            Self::LoseAcknowledgements => "times acknowledgements of the broker were lost",
            Self::Move => "moves to another store",
        }
    }

    /// Returns whether it needs a disk of its own.
    pub(super) const fn needs_disk(self) -> bool {
        matches!(self, Self::FillDisk | Self::LosePower | Self::ReadOnlyDisk)
    }

    /// Returns whether a process can lose runs by it.
    pub(super) const fn is_gentle(self) -> bool {
        matches!(self, Self::AddColumns | Self::Prune | Self::Roll | Self::KillClient | Self::KillReader)
    }

    /// Returns whether it waits for locks of the store, which a stopped process can hold until it continues.
    pub(super) const fn waits_for_locks(self) -> bool {
        matches!(self, Self::AddColumns | Self::Prune | Self::Roll)
    }

    /// Returns whether it hits a server beside the store.
    pub(super) fn needs_service(self) -> bool {
        Self::OF_REDIS.contains(&self) || Self::OF_BROKER.contains(&self)
    }

    /// Returns whether only a store with a server can have it.
    pub(super) const fn needs_server(self) -> bool {
        matches!(
            self,
            Self::CrashServer
                | Self::FailOver
                | Self::KillBackends
                | Self::CutNetwork
                | Self::SilenceNetwork
                | Self::LoseAnswers
                | Self::LimitConnections
                | Self::TimeOutSessions
                | Self::FailOverAsync
                | Self::Restore
                | Self::DumpAndRestore
                | Self::RestartPooler
                | Self::JumpServerClock
                | Self::UpgradeServer
        )
    }

    /// Returns whether it happens only if it is asked for: it removes facts that others need (commits, the times of the store), needs other
    /// connections, or takes long.
    pub(super) fn is_on_request(self) -> bool {
        self.loses_commits()
            || matches!(
                self,
                Self::DumpAndRestore
                    | Self::RestartPooler
                    | Self::JumpClock
                    | Self::JumpServerClock
                    | Self::UpgradeServer
                    | Self::Prune
                    | Self::Move
            )
            || self.needs_service()
    }

    /// Returns whether the times of a store of this kind are wrong by it.
    pub(super) const fn sets_clock_of(self, store: StoreKind) -> bool {
        match store {
            StoreKind::Sqlite => matches!(self, Self::JumpClock),
            StoreKind::Postgres => matches!(self, Self::JumpServerClock),
        }
    }

    /// Returns whether acknowledged calls can be lost by it.
    pub(super) const fn loses_commits(self) -> bool {
        matches!(self, Self::FailOverAsync | Self::Restore)
    }
}
