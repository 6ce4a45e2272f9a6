//! Store ports for relays.

use async_trait::async_trait;

use super::{StoreResult, WakeStream};
use crate::event::{
    Aggregate, Begin, Changes, DueEvents, Holding, Outcome, Page, PageSize, Publisher, Retried,
};
use crate::event_work::EventWork;

/// Positions of subscriptions, their publishers, and parked events.
///
/// The log of a subscription is divided into slots that publishers share. The holder of a slot has a lease and a token.
/// Every write of a position or of a parked event in that slot carries the token, so that writes of a publisher that was
/// paused past its lease change nothing.
#[async_trait]
pub trait RelayStore: Send + Sync {
    /// Creates a subscription; an existing one keeps its position. Returns whether it is new.
    async fn subscribe(&self, subscription: &str, begin: Begin) -> StoreResult<bool>;

    /// Records exactly these state changes for the subscription: from now on each becomes an event in the transaction that makes it.
    /// Returns false when transactions that change jobs prevented the switch; call it again then.
    async fn record_changes(&self, subscription: &str, changes: &Changes) -> StoreResult<bool>;

    /// Returns this publisher's reader of the log, which holds no slots yet.
    fn reader(&self, publisher: Publisher) -> Box<dyn LogReader>;

    /// Renews the publisher's lease; call it while a page is being published, too. `false`: the lease had expired, and other
    /// publishers may hold its slots.
    async fn renew(&self, publisher: &Publisher) -> StoreResult<bool>;

    /// Releases all slots of the publisher. Results of committed pages are kept.
    async fn leave(&self, publisher: &Publisher) -> StoreResult<()>;

    /// Reports for operators that the sink is down, and why; `None`: that it is up.
    async fn report_sink(&self, publisher: &Publisher, down: Option<&str>) -> StoreResult<()>;

    /// Pauses the subscription until an operator resumes it: its publishers release their slots.
    /// [`Relay`](crate::error::StoreError::Relay) when it does not exist.
    async fn pause_subscription(&self, subscription: &str, why: &str) -> StoreResult<()>;

    /// Returns due parked events of held slots, of up to `aggregates_max` aggregates: one event of an aggregate with a failed
    /// event, several of one whose events only waited behind it. Together they are a page: when it is full, the later ones are left for the next
    /// call.
    async fn due(&self, publisher: &Publisher, aggregates_max: u32, size: PageSize)
    -> StoreResult<DueEvents>;

    /// Records the results of parked events. Returns the aggregates without further parked events, whose new events are
    /// published normally again. Nothing is written for slots that other publishers have taken over.
    async fn settle_parked(&self, publisher: &Publisher, retried: &[Retried]) -> StoreResult<Vec<Aggregate>>;

    /// Starts the work of events for the publisher's subscription, in one transaction: records each event, and creates its job or batch, or
    /// stores its signal. An event that has started its work before changes nothing. Returns the number of events that have started theirs
    /// in this call; `None`: the publisher's lease has expired. After `None` or an error nothing was changed, unless the answer was lost.
    async fn start_work(&self, publisher: &Publisher, works: &[EventWork]) -> StoreResult<Option<u64>>;

    /// Returns a stream of hints that the log has grown.
    fn log_wakes(&self) -> Box<dyn WakeStream>;
}

/// A publisher's part of the log, read page by page. One page is in progress at a time.
#[async_trait]
pub trait LogReader: Send {
    /// Sets whether the publisher leaves its slots to others while its sink is down, from the next [`balance`](Self::balance) on. It keeps
    /// them if all publishers of the subscription do so.
    fn stand_aside(&mut self, aside: bool);

    /// Renews the lease, acquires unowned slots, and releases slots above a fair share. Call it only between pages, and not
    /// while a passed position is uncommitted. [`Relay`](crate::error::StoreError::Relay) when the position is unusable.
    async fn balance(&mut self) -> StoreResult<Holding>;

    /// Returns the next events of the held slots. An event is returned again in a later page unless its page was committed or passed.
    async fn page(&mut self, size: PageSize) -> StoreResult<Page>;

    /// Marks the complete page as delivered. The position after it is kept in memory for the next commit. Returns whether there is
    /// anything to write. Positions are not written for every page because the row would change hundreds of times a second, and a
    /// long-running snapshot would keep all of its versions.
    fn pass(&mut self) -> bool;

    /// Writes the kept position, moved past the page, parks failed events and those behind them, and stores dead letters, in one
    /// transaction. Slots that other publishers have taken over are dropped silently. After an error no slots are held: call
    /// [`balance`](Self::balance) again.
    async fn commit(&mut self, outcome: &Outcome) -> StoreResult<()>;
}
