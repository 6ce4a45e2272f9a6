//! Notifiers with real stores, and receivers of HTTP and SMTP on this machine.
//!
//! One test binary for the whole crate: a file here is a module, listed below.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed expectation panics")]

mod channels;
mod notifiers;
mod receiver;
