//! A publisher's part of the log, in the hands of a test.

use std::time::Duration;

use milepost_core::event::{Begin, Publisher, SubscriptionFilter};
use milepost_core::ident::PublisherId;
use milepost_core::port::{LogReader, Store};

/// A publisher, called `here:1`, of all events for a subscription, which is made if it is missing.
pub async fn publisher(store: &dyn Store, subscription: &str, lease: Duration) -> Publisher {
    store.subscribe(subscription, Begin::Beginning).await.expect("subscribed");
    Publisher {
        id: PublisherId::new(),
        label: "here:1".to_owned(),
        subscription: subscription.to_owned(),
        filter: SubscriptionFilter::default(),
        lease,
    }
}

/// The same with the log as it reads it; it holds what nobody else did.
pub async fn reader(
    store: &dyn Store,
    subscription: &str,
    lease: Duration,
) -> (Publisher, Box<dyn LogReader>) {
    let publisher = publisher(store, subscription, lease).await;
    let mut reader = store.reader(publisher.clone());
    reader.balance().await.expect("balanced");
    (publisher, reader)
}
