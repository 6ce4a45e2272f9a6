//! Milepost in transactions of tokio-postgres, diesel, diesel-async and sea-orm: one function for each, which a program copies.

pub mod diesel_async_library;
pub mod diesel_library;
pub mod sea_orm_library;
pub mod tokio_postgres_library;

use milepost::StoreError;
use milepost::sql::{Refusal, UnknownAnswer};

/// The reason why a call failed. The transaction can only be rolled back, except after [`Check`](Failed::Check).
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// The call was refused before it was sent.
    #[error(transparent)]
    Check(#[from] StoreError),
    /// Milepost refused the call in the database, with this message.
    #[error("{1}")]
    Refused(Refusal, String),
    /// The library or PostgreSQL failed.
    #[error("{0}")]
    Library(String),
    /// The result is not that of the call.
    #[error(transparent)]
    Answer(#[from] UnknownAnswer),
}
