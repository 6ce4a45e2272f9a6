//! Publishers and log readers that tests control.

use std::time::Duration;

use milepost_core::event::{Begin, Publisher, SubscriptionFilter};
use milepost_core::ident::PublisherId;
use milepost_core::port::{LogReader, Store};

/// Returns a publisher with the label `here:1` for all events of a subscription, which is created if it does not exist.
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

/// Returns the same with a reader of the log; it owns all slots that no other publisher owned.
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
