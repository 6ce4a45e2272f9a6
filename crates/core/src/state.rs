//! Where a job stands.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

macro_rules! named_enum {
    ($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        #[serde(rename_all = "snake_case")]
        pub enum $name {
            $($(#[$variant_meta])* $variant,)+
        }

        impl $name {
            /// Every value, in the order of declaration.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The name used in SQL, JSON and on the command line.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = crate::error::UnknownName;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($text => Ok(Self::$variant),)+
                    _ => Err(crate::error::UnknownName {
                        given: text.to_owned(),
                        known: &[$($text),+],
                    }),
                }
            }
        }
    };
}
pub(crate) use named_enum;

named_enum! {
    /// The state of a job. What can follow what stands in [`crate::transition`].
    JobState {
        /// Waits for predecessors or for its group.
        Blocked = "blocked",
        /// May be claimed once its time has come.
        Pending = "pending",
        /// A worker holds it under a lease.
        Running = "running",
        /// Failed, and will be claimed again after its backoff.
        RetryWait = "retry_wait",
        /// The dead letter: given up on, kept for an operator.
        Failed = "failed",
        /// Stopped by an operator; can be resumed.
        Aborted = "aborted",
        /// Done.
        Succeeded = "succeeded",
        /// Given up by a caller or an operator.
        Canceled = "canceled",
        /// Decided not to run.
        Skipped = "skipped",
    }
}

impl JobState {
    /// Whether the job still needs attention, and so has a row in `live`.
    #[must_use]
    pub const fn is_live(self) -> bool {
        !self.is_ended()
    }

    /// Whether nothing more happens to the job but for an explicit, audited rerun.
    #[must_use]
    pub const fn is_ended(self) -> bool {
        matches!(self, Self::Succeeded | Self::Canceled | Self::Skipped)
    }

    /// Whether the job waits to be claimed.
    #[must_use]
    pub const fn is_waiting(self) -> bool {
        matches!(self, Self::Pending | Self::RetryWait)
    }

    /// Whether a job of a group keeps its slot in this state, given that it had taken one.
    #[must_use]
    pub const fn holds_group_slot(self) -> bool {
        matches!(self, Self::Pending | Self::Running | Self::RetryWait)
    }
}
