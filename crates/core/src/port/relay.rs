//! What relays need of a store.

use async_trait::async_trait;

use super::{StoreResult, WakeStream};
use crate::event::{
    Aggregate, Begin, Changes, DueEvents, Holding, Outcome, Page, PageSize, Publisher, Retried,
};

/// Keeps where subscriptions are, who publishes for them, and what is parked.
///
/// A subscription's log has slots, which publishers share. A slot's holder has a lease and a token, and every write of a
/// position or of a parked event of that slot carries the token: the writes of a holder that was paused past its lease
/// change nothing.
#[async_trait]
pub trait RelayStore: Send + Sync {
    /// Makes a subscription known; one that is known keeps its position. Answers whether it is new.
    async fn subscribe(&self, subscription: &str, begin: Begin) -> StoreResult<bool>;

    /// Has these state changes, and no others, recorded for the subscription: from now on each becomes an event in the transaction that
    /// makes it. Answers false when transactions that change jobs keep it from that: then it is to be called again.
    async fn record_changes(&self, subscription: &str, changes: &Changes) -> StoreResult<bool>;

    /// The log as this publisher reads it. Holds nothing yet.
    fn reader(&self, publisher: Publisher) -> Box<dyn LogReader>;

    /// Keeps what the publisher holds for another lease. To be called while a page is being published, too. `false`: the lease had run
    /// out, and others may hold it.
    async fn renew(&self, publisher: &Publisher) -> StoreResult<bool>;

    /// Gives up all that the publisher holds. What it said of pages counts.
    async fn leave(&self, publisher: &Publisher) -> StoreResult<()>;

    /// Tells people that the sink takes nothing at present, and why; `None`: that it does.
    async fn report_sink(&self, publisher: &Publisher, down: Option<&str>) -> StoreResult<()>;

    /// Stops the subscription until somebody resumes it: all its publishers give up what they hold.
    /// [`Relay`](crate::error::StoreError::Relay) when there is none.
    async fn pause_subscription(&self, subscription: &str, why: &str) -> StoreResult<()>;

    /// Parked events of held slots whose time has come, of at most so many aggregates: the first one of those that failed, more
    /// of those that only wait behind.
    async fn due(&self, publisher: &Publisher, aggregates_max: u32) -> StoreResult<DueEvents>;

    /// Writes down what became of parked events. Answers which aggregates have none left: their events go out again as
    /// they are read. Nothing is written of slots that are held by others meanwhile.
    async fn settle_parked(&self, publisher: &Publisher, retried: &[Retried]) -> StoreResult<Vec<Aggregate>>;

    /// Hints that the log has grown.
    fn log_wakes(&self) -> Box<dyn WakeStream>;
}

/// A publisher's part of the log, read page by page. One page is under way at a time.
#[async_trait]
pub trait LogReader: Send {
    /// Sets whether the publisher leaves its slots to others while its sink takes nothing, from the next [`balance`](Self::balance) on. It
    /// keeps them if all publishers of the subscription stand aside.
    fn stand_aside(&mut self, aside: bool);

    /// Renews the lease, takes slots that nobody holds, and gives up what is more than a fair share. Between pages only, and not
    /// while a position is in hand.
    /// [`Relay`](crate::error::StoreError::Relay) when the position cannot be used.
    async fn balance(&mut self) -> StoreResult<Holding>;

    /// The next events of the held slots. An event comes again in a later page unless its page was committed or passed.
    async fn page(&mut self, size: PageSize) -> StoreResult<Page>;

    /// All of the page is delivered: keeps the position behind it in hand, for the next commit to write down. Answers whether there is
    /// anything to be written. A position that is written for
    /// every page is a row that changes hundreds of times a second, and under a snapshot that somebody holds each of its versions stays.
    fn pass(&mut self) -> bool;

    /// Writes down the position in hand, moved past the page, parks what failed and what is behind it, and keeps what is given up: one
    /// transaction. Slots that others hold meanwhile are dropped without a word. After an error nothing is held: look around
    /// again.
    async fn commit(&mut self, outcome: &Outcome) -> StoreResult<()>;
}
