//! Messages about alerts: to webhooks, chats and mailboxes.
//!
//! [`Notifier`] records what a server sees as incidents of the store, and sends each target what the store says it must be told. Which incidents are
//! due, and who sends, is decided by `milepost_core::alert` and the store.

mod channel;
mod mail;
mod message;
mod notifier;
mod post;

pub use channel::{Channel, ChannelConfig, InvalidChannel, SendError};
pub use message::{Message, SHOWN_MAX};
pub use notifier::{Notifier, Observe, Target};
