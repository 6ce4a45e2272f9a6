//! Checks of the code and the documentation as text. They need no server, so `scripts/test --fast` runs them, too.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed expectation panics")]

mod documentation;
mod import_cycles;
mod layout;
