//! Membership in a Kafka consumer group.
//!
//! A dedicated thread polls all the time; otherwise the group coordinator would consider this member dead. Messages for which there is no room in
//! memory stay at the brokers.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::message::Message;
use rdkafka::{ClientConfig, ClientContext, Offset, TopicPartitionList};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::Taken;
use super::offsets::{MessagePosition, Offsets, Partition};

/// How long a poll waits for a message.
const POLL: Duration = Duration::from_millis(100);
/// How long a poll waits while there is no room for the messages that were read.
const POLL_FULL: Duration = Duration::from_millis(10);
/// How many messages are read before they are requested.
const AHEAD: usize = 100;
/// How many messages of a partition are read past the oldest one that is not finished.
const BEHIND_MAX: i64 = 10_000;

/// The messages that were read, and the connection that confirms them.
pub(super) struct Reading {
    pub(super) line: Arc<Session>,
    read: mpsc::Receiver<Result<Taken, String>>,
}

impl Reading {
    /// The next message.
    pub(super) async fn next(&mut self) -> Result<Taken, String> {
        self.read.recv().await.unwrap_or_else(|| Err("the membership in the group ended".to_owned()))
    }
}

/// A member of a consumer group. It leaves when this value and all receipts of its messages are dropped.
pub(super) struct Session {
    member: Arc<BaseConsumer<Member>>,
    stop: Arc<AtomicBool>,
    /// Serializes commits: each commit includes all messages that finished while the previous one ran.
    committing: tokio::sync::Mutex<()>,
}

impl Session {
    /// Joins the group. Connection errors are reported through [`Reading::next`].
    pub(super) fn join(settings: &ClientConfig, topics: &[String]) -> Result<Reading, String> {
        let member = settings.create_with_context::<_, BaseConsumer<Member>>(Member::default());
        let member = Arc::new(member.map_err(|error| crate::sink::kafka::in_words(&error))?);
        let topics: Vec<&str> = topics.iter().map(String::as_str).collect();
        member.subscribe(&topics).map_err(|error| error.to_string())?;
        let (bring, read) = mpsc::channel(AHEAD);
        let stop = Arc::new(AtomicBool::new(false));
        let mut poller =
            Poller { member: Arc::clone(&member), bring, waiting: VecDeque::new(), paused: BTreeSet::new() };
        let stopped = Arc::clone(&stop);
        let polling = std::thread::Builder::new().name("milepost-kafka".to_owned());
        let spawned = polling.spawn(move || {
            while !stopped.load(Ordering::Acquire) {
                poller.poll();
            }
        });
        spawned.map_err(|error| error.to_string())?;
        Ok(Reading { line: Arc::new(Self { member, stop, committing: tokio::sync::Mutex::default() }), read })
    }

    /// Returns whether this member has owned the partition without interruption since the message at `place` was read.
    pub(super) fn is_ours(&self, place: &MessagePosition) -> bool {
        self.member.context().offsets().is_ours(place)
    }

    /// Returns whether the client had a fatal error and has to be created again.
    pub(super) fn is_lost(&self) -> bool {
        self.member.client().fatal_error().is_some()
    }

    /// Marks a message as finished. Waits until the brokers have stored the new position, unless an earlier message of the partition is unfinished.
    pub(super) async fn pass(&self, place: &MessagePosition) -> Result<(), String> {
        self.member.context().offsets().end(place);
        let _turn = self.committing.lock().await;
        if self.member.context().offsets().moved().is_empty() {
            return Ok(());
        }
        let member = Arc::clone(&self.member);
        let committed = tokio::task::spawn_blocking(move || member.context().commit(&member));
        match committed.await {
            Ok(committed) => committed.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
    }
}

/// The state of a member: its partitions and their offsets.
#[derive(Default)]
struct Member {
    offsets: Mutex<Offsets>,
    /// Held during a commit, so that no offset is committed for a partition that was reassigned to another member.
    telling: Mutex<()>,
}

impl Member {
    fn offsets(&self) -> MutexGuard<'_, Offsets> {
        self.offsets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Commits the current offsets to the brokers.
    fn commit(&self, consumer: &BaseConsumer<Self>) -> KafkaResult<()> {
        let _telling = self.telling.lock().unwrap_or_else(PoisonError::into_inner);
        let moved = self.offsets().moved();
        if moved.is_empty() {
            return Ok(());
        }
        let mut positions = TopicPartitionList::with_capacity(moved.len());
        for ((topic, partition), position) in &moved {
            positions.add_partition_offset(topic, *partition, Offset::Offset(*position))?;
        }
        consumer.commit(&positions, CommitMode::Sync)?;
        self.offsets().keep(&moved);
        Ok(())
    }
}

impl ClientContext for Member {
    fn error(&self, error: KafkaError, reason: &str) {
        tracing::debug!(%error, reason, "Kafka");
    }
}

impl ConsumerContext for Member {
    /// Commits the offsets of finished messages before another member starts reading the revoked partitions.
    fn pre_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        match rebalance {
            Rebalance::Revoke(partitions) => {
                if !consumer.assignment_lost()
                    && let Err(error) = self.commit(consumer)
                {
                    tracing::warn!(%error,
                        "offsets could not be committed; some events will be delivered again");
                }
                self.offsets().revoke(names(partitions));
            }
            Rebalance::Assign(partitions) => self.offsets().assign(names(partitions)),
            Rebalance::Error(error) => tracing::warn!(%error, "the group could not assign its partitions"),
        }
    }
}

fn names(partitions: &TopicPartitionList) -> Vec<Partition> {
    partitions.elements().iter().map(|its| (its.topic().to_owned(), its.partition())).collect()
}

/// The state of the polling thread.
struct Poller {
    member: Arc<BaseConsumer<Member>>,
    bring: mpsc::Sender<Result<Taken, String>>,
    /// Messages that did not fit into the channel: those that a partition delivered before it was paused.
    waiting: VecDeque<Taken>,
    paused: BTreeSet<Partition>,
}

impl Poller {
    fn poll(&mut self) {
        self.hand_over();
        self.pause();
        let wait = if self.waiting.is_empty() { POLL } else { POLL_FULL };
        match self.member.poll(wait) {
            None => {}
            Some(Ok(message)) => {
                let partition = (message.topic().to_owned(), message.partition());
                let place = self.member.context().offsets().begin(partition, message.offset());
                // `None`: the partition was reassigned to another member, which reads the message itself.
                if let Some(place) = place {
                    self.waiting.push_back(Taken { message: message.detach(), place });
                }
            }
            // If the channel is full, the error is dropped: the reader still has messages to process.
            Some(Err(error)) => drop(self.bring.try_send(Err(error.to_string()))),
        }
    }

    /// Moves messages to the channel until it is full.
    fn hand_over(&mut self) {
        while let Some(taken) = self.waiting.pop_front() {
            match self.bring.try_send(Ok(taken)) {
                // If the reader was dropped, the thread only waits for outstanding receipts.
                Ok(()) | Err(TrySendError::Closed(_)) => {}
                Err(TrySendError::Full(Ok(taken))) => return self.waiting.push_front(taken),
                Err(TrySendError::Full(Err(_))) => return,
            }
        }
    }

    /// Pauses partitions for whose messages there is no room.
    fn pause(&mut self) {
        let offsets = self.member.context().offsets();
        let full = if self.waiting.is_empty() { offsets.full(BEHIND_MAX) } else { offsets.all() };
        let ours = offsets.all();
        drop(offsets);
        // A partition that was revoked and assigned again is no longer paused.
        self.paused.retain(|partition| ours.contains(partition));
        let list = |partitions: Vec<&Partition>| {
            let mut list = TopicPartitionList::with_capacity(partitions.len());
            for (topic, partition) in partitions {
                list.add_partition(topic, *partition);
            }
            list
        };
        let begin = list(full.difference(&self.paused).collect());
        let end = list(self.paused.difference(&full).collect());
        for (partitions, done) in [
            (&begin, if begin.count() > 0 { self.member.pause(&begin) } else { Ok(()) }),
            (&end, if end.count() > 0 { self.member.resume(&end) } else { Ok(()) }),
        ] {
            if let Err(error) = done {
                tracing::warn!(%error, ?partitions, "partitions could not be paused or resumed");
            }
        }
        self.paused = full;
    }
}
