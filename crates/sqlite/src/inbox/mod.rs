//! The inbox: acceptance of events by consumers, and operators' verbs on dead letters.

mod dead_letters;
mod operate;
mod seat;
mod take;

pub(crate) use dead_letters::forget_old;
pub(crate) use operate::dead_letter;
pub(crate) use seat::read_settings;
pub use take::{expect_from, next_parked, once, receive};
