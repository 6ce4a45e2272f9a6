//! An order service and two consumers of its events, with deliberate failures.

mod broker;
mod clumsy;
mod lines;
mod run;
mod shipping;
mod shop;
mod statistics;

pub use broker::Broker;
pub use run::{Report, run};
pub use shipping::{SHIPPING, Shipping};
pub use shop::{Books, Shop};
pub use statistics::{STATISTICS, Statistics};

/// The reason why an event could not be processed.
type Cause = Box<dyn std::error::Error + Send + Sync>;
