//! The jobs of a small shop, and a worker that runs them.

mod confirmation;
mod newsletter;
mod shop;

use std::time::Duration;

use milepost::{Context, Worker, WorkerBuilder};

pub use confirmation::{ConfirmOrder, confirm_order};
pub use newsletter::{Newsletter, send_newsletter};
pub use shop::Shop;

/// Builds a worker for all the shop's jobs. Start it, or drain it in a test.
#[must_use]
pub fn worker(shop: &Shop) -> WorkerBuilder {
    let of_handler = shop.clone();
    Worker::builder(shop.store())
        .handle(send_newsletter)
        .handle(move |job: ConfirmOrder, context: Context| {
            let shop = of_handler.clone();
            async move { confirm_order(&shop, job, context).await }
        })
        .options(|options| options.drain = Duration::from_secs(2))
}
