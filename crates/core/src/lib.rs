//! Domain model of Milepost: pure functions and types without a runtime, a database or a clock, except the clock that orders new job ids.
//!
//! This crate defines [jobs](job::NewJob) and their [states](state::JobState), the total [transition
//! function](transition::transition), the [retry policy](retry::RetryPolicy), typed [errors](error::StoreError), and
//! the [ports](port) that the stores implement and that the runtime, the console and the CLI use. Time is always an
//! argument.

/// Returns the statement in a file of the calling crate's folder `queries`, named without its extension: `sql!("batch/due")`.
#[macro_export]
macro_rules! sql {
    ($file:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/queries/", $file, ".sql"))
    };
}

/// Declares `of_check`, which returns the statement of a doctor check from the folder `queries/doctor` of the calling crate, and `None` for a check that
/// is not listed.
#[macro_export]
macro_rules! check_statements {
    ($($check:literal,)+) => {
        pub(crate) fn of_check(check: $crate::doctor::Check) -> Option<&'static str> {
            match check.as_str() {
                $($check => Some(include_str!(concat!(
                    env!("CARGO_MANIFEST_DIR"),
                    "/queries/doctor/",
                    $check,
                    ".sql"
                ))),)+
                _ => None,
            }
        }
    };
}

pub mod actions;
pub mod alert;
pub mod audit;
pub mod batch;
pub mod bulk;
pub mod claim;
pub mod clock;
pub mod dag;
pub mod doctor;
pub mod duration;
pub mod error;
pub mod event;
pub mod event_work;
pub mod feed;
pub mod finish;
pub mod format;
pub mod hash;
pub mod hide;
pub mod history;
pub mod ident;
pub mod inbox;
pub mod job;
pub mod json;
pub mod limit;
pub mod listing;
pub mod named;
pub mod oidc;
pub mod pattern;
pub mod pool;
pub mod port;
pub mod precedence;
pub mod relocation;
pub mod rescue;
pub mod retention;
pub mod retry;
pub mod rollup;
pub mod schedule;
pub mod schema;
pub mod search;
pub mod secrets;
pub mod session;
pub mod state;
pub mod stats;
pub mod text;
pub mod token;
pub mod trace;
pub mod transition;
pub mod worker;
