//! The inbox: acceptance of events by consumers, and operators' verbs on dead letters.

mod checkpoint;
mod dead_letters;
mod operate;
mod take;

pub(crate) use checkpoint::read_settings;
pub(crate) use dead_letters::forget_old;
pub(crate) use operate::dead_letter;
pub use take::{expect_from, next_parked, once, receive};
