//! Actions on the first event of a parked aggregate.

use thiserror::Error;

use super::actions;
use crate::event::RelayError;
use crate::event::relay_listing::ParkedVerb;

actions! {
    /// The operations on the first event of a parked aggregate.
    #[cfg_attr(feature = "openapi", schema(as = ParkedOperation))]
    ParkedAction {
        Retry = "retry" {
            title: "Retry",
            summary: "Retry the first event of a parked aggregate now",
            effect: "It is retried now, and gets all its attempts again.",
        }
        Edit = "edit" {
            title: "Edit",
            summary: "Publish the first event of a parked aggregate with a changed payload",
            effect: "It is published now with this payload. The log keeps the original payload.",
        }
        Skip = "skip" {
            title: "Skip",
            summary: "Skip the first event of a parked aggregate; it is kept as a skipped event",
            effect: "It is kept as skipped, and publishing continues with the next one.",
            is_destructive: true,
        }
    }
}

/// The error for a payload that does not fit the action.
#[derive(Debug, Error)]
pub enum InvalidEdit {
    /// The action needs a payload.
    #[error("an edit needs a payload")]
    NoPayload,
    /// The action has no payload.
    #[error("only an edit has a payload")]
    OnlyEdit,
    /// The payload cannot be published.
    #[error(transparent)]
    Payload(#[from] RelayError),
}

impl ParkedAction {
    /// Returns the verb of the store.
    ///
    /// # Errors
    /// [`InvalidEdit`] when an edit has no valid payload, or another action has one.
    pub fn verb(self, payload: Option<&str>) -> Result<ParkedVerb, InvalidEdit> {
        match (self, payload) {
            (Self::Retry, None) => Ok(ParkedVerb::Retry),
            (Self::Skip, None) => Ok(ParkedVerb::Skip),
            (Self::Edit, Some(payload)) => Ok(ParkedVerb::edit(payload)?),
            (Self::Edit, None) => Err(InvalidEdit::NoPayload),
            (Self::Retry | Self::Skip, Some(_)) => Err(InvalidEdit::OnlyEdit),
        }
    }

    /// Describes the result.
    #[must_use]
    pub const fn result(self) -> &'static str {
        match self {
            Self::Retry => "its first event is retried now",
            Self::Edit => "its first event is published with this payload now",
            Self::Skip => "its first event is skipped; publishing continues with the next one",
        }
    }
}
