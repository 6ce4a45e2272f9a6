//! What chunks do.

use milepost::JobState;

use crate::members::Members;

pub(crate) async fn every_target_is_applied_once(members: Members) {
    members.add(0..1_000).await;
    let bulk = members.notify();
    bulk.check().await.unwrap();
    let job = members.start(&bulk).await;
    members.worker().bulk(bulk).drain().await.unwrap();
    let view = members.view(job).await;
    assert_eq!(view.state, JobState::Succeeded, "{view:#?}");
    assert_eq!((view.counts.done, view.counts.failed), (1_000, 0));
    assert!(view.counts.chunks >= 5, "{view:#?}");
    assert_eq!(view.total.unwrap().rows, 1_000);
    members.assert_once_each(job, 1_000).await;
}
