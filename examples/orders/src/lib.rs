//! An order service and two consumers of its events, with everything going wrong that may.

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

/// Why an event could not be taken in.
type Cause = Box<dyn std::error::Error + Send + Sync>;
