//! Bulk jobs, on either store.

#![allow(clippy::unwrap_used, reason = "a failed expectation is meant to panic")]

mod chunks;
mod members;

milepost_testkit::on_each_home! { crate::members::Members::on =>
    chunks::every_target_is_applied_once,
}
