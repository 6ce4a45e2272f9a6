//! Messages about alerts: to webhooks, chats and mailboxes.
//!
//! [`Notifier`] records the alerts of a store as incidents, and sends the messages that are due. `milepost_core::alert` and the store decide which incidents are
//! due, and which server sends.

mod channel;
mod fault;
mod mail;
mod message;
mod notifier;
mod post;

pub use channel::{Channel, ChannelConfig};
pub use fault::{InvalidChannel, SendError};
pub use message::{Message, SHOWN_MAX};
pub use notifier::{Notifier, Observe, Target};
