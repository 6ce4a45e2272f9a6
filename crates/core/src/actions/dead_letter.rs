//! Actions on dead letters of subscriptions and of inboxes.

use super::actions;
use crate::event::relay_listing::DeadVerb;
use crate::inbox::listing::LetterId;
use crate::port::{InboxStore, StoreResult};

actions! {
    /// The operations on a dead letter of a subscription.
    #[cfg_attr(feature = "openapi", schema(as = DeadOperation))]
    DeadEventAction {
        Retry = "retry" {
            title: "Retry",
            summary: "Publish a dead letter now",
            effect: "It is published now. Later events of its aggregate may have been published before it.",
        }
        Drop = "drop" {
            title: "Drop",
            summary: "Delete a dead letter",
            effect: "It is never published for the subscription; the log keeps it.",
            is_destructive: true,
        }
    }
}

actions! {
    /// The operations on a dead letter of an inbox.
    #[cfg_attr(feature = "openapi", schema(as = LetterOperation))]
    LetterAction {
        Retry = "retry" {
            title: "Retry",
            summary: "Let dead letters wait again for the missing event",
            effect: "It waits again for the missing earlier event. The position of its consumer must not be after it.",
        }
        Drop = "drop" {
            title: "Drop",
            summary: "Delete dead letters permanently",
            effect: "It is deleted permanently; its consumer never gets it.",
            is_destructive: true,
        }
    }
}

impl DeadEventAction {
    /// Returns the verb of the store.
    #[must_use]
    pub const fn verb(self) -> DeadVerb {
        match self {
            Self::Retry => DeadVerb::Retry,
            Self::Drop => DeadVerb::Drop,
        }
    }

    /// Describes the result.
    #[must_use]
    pub const fn result(self) -> &'static str {
        match self {
            Self::Retry => "is published now",
            Self::Drop => "is deleted",
        }
    }
}

impl LetterAction {
    /// Performs the action on these dead letters, on all or none. Returns their number.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn perform<S>(self, letters: &[LetterId], store: &S) -> StoreResult<u64>
    where
        S: InboxStore + ?Sized,
    {
        match self {
            Self::Retry => store.retry_dead(letters).await,
            Self::Drop => store.drop_dead(letters).await,
        }
    }

    /// Describes the result.
    #[must_use]
    pub const fn result(self) -> &'static str {
        match self {
            Self::Retry => "wait again",
            Self::Drop => "were deleted permanently",
        }
    }
}
