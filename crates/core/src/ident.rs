//! Identifiers: which job, which claim of it, which worker.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An id that whoever makes the thing gives it: a UUIDv7.
macro_rules! made_by_clients {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        #[serde(transparent)]
        pub struct $name(pub uuid::Uuid);

        impl $name {
            /// A new id. Within one process later ids sort after earlier ones.
            #[must_use]
            #[expect(clippy::new_without_default, reason = "a default id would suggest a constant")]
            pub fn new() -> Self {
                Self(uuid::Uuid::now_v7())
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }

        impl std::str::FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                uuid::Uuid::parse_str(text).map(Self)
            }
        }
    };
}

made_by_clients! {
    /// Names one job, everywhere and for ever: a UUIDv7, made by the client or by the SQL function.
    JobId
}

made_by_clients! {
    /// Names one batch, everywhere and for ever: a UUIDv7.
    BatchId
}

impl BatchId {
    /// A new id, of a batch that lies in this one. Its last byte, which is random otherwise, is the same: PostgreSQL tells by it which lock stands
    /// for a batch and all that lie in it or around it.
    #[must_use]
    pub fn inner(self) -> Self {
        let mut id = uuid::Uuid::now_v7().into_bytes();
        id[15] = self.0.as_bytes()[15];
        Self(uuid::Uuid::from_bytes(id))
    }
}

made_by_clients! {
    /// Names one event, everywhere and for ever: a UUIDv7, or what its emitter names it by.
    EventId
}

made_by_clients! {
    /// Names one publisher: what publishes for one subscription in one process incarnation. Never reused.
    PublisherId
}

made_by_clients! {
    /// Names one move of a store on both sides.
    MoveId
}

/// The fence of one claim: every claim raises it, by one unless a standby of PostgreSQL was promoted, and it is never lowered. A write of a
/// running job that carries an older token changes nothing and is told so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(transparent)]
pub struct RunToken(pub i32);

impl fmt::Display for RunToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One process incarnation that runs jobs; given by the store at registration, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(transparent)]
pub struct WorkerId(pub i32);

impl std::str::FromStr for WorkerId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One run of one job: what a write of a running job must carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Run {
    /// The job that runs.
    pub job: JobId,
    /// The token of the claim under which it runs.
    pub token: RunToken,
}
