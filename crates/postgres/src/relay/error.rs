//! Conversion of errors of `sql/relay.sql` into errors of the domain.

use milepost_core::error::StoreError;
use milepost_core::event::RelayError;
use sqlx::postgres::PgDatabaseError;

use crate::error::{database_error, store_error};

/// SQLSTATE of a subscription that does not exist.
const UNKNOWN: &str = "MP020";
/// SQLSTATE of a position that was stored in another database.
const RESTORED: &str = "MP021";

/// Converts an error of `verb` for a subscription.
pub(super) fn relay_error(
    place: &str,
    verb: &'static str,
    subscription: &str,
    error: sqlx::Error,
) -> StoreError {
    match database_error(&error).map(PgDatabaseError::code) {
        Some(UNKNOWN) => RelayError::NoSuchSubscription(subscription.to_owned()).into(),
        Some(RESTORED) => RelayError::Restored(subscription.to_owned()).into(),
        _ => store_error(place, verb, error),
    }
}
