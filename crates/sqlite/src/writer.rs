//! The writer thread of this process.
//!
//! It runs waiting commands in one transaction, each in a savepoint, commits once and then answers each command (group commit). Between
//! transactions it leaves gaps, so that other processes of the machine can write, and checkpoints the log. While anyone waits for
//! notifications, it checks the file for commits of other processes.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use milepost_core::error::{Cause, StoreError};
use milepost_core::port::StoreResult;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::oneshot;

use crate::command::{Call, Command, Hint, Message};
use crate::error::{Outage, defect, is_busy, may_be_full};
use crate::file::OpenedFile;
use crate::file_watch::{FileState, announce_batches};
use crate::lock_wait::Patience;
use crate::notifications::Notifier;
use crate::options::{SqliteOptions, Threads};
use crate::wal::Log;

/// A write transaction accepts no further commands after this time.
const TRANSACTION_OPEN: Duration = Duration::from_millis(25);
/// The gap after every transaction while other processes write.
const GAP_SHARED: Duration = Duration::from_millis(2);
/// The gap after [`WRITING_ALONE`] while no other process writes.
const GAP_ALONE: Duration = Duration::from_millis(1);
/// How long this process writes without a gap while no other process writes.
const WRITING_ALONE: Duration = Duration::from_millis(20);
/// How often the file is checked for commits of other processes, while anyone waits.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A handle to the writer thread. The thread ends when all handles are dropped.
#[derive(Clone)]
pub(crate) struct Writer {
    sender: Sender<Message>,
    place: Arc<str>,
    /// Without a thread: what callers use themselves, one at a time; none once it is closed.
    desk: Option<Arc<Mutex<Option<Desk>>>>,
}

impl Writer {
    /// Starts the thread, unless statements run on the threads of their callers.
    pub(crate) fn start(
        opened: (Connection, OpenedFile),
        patience: Patience,
        options: SqliteOptions,
        place: Arc<str>,
        notifier: Arc<Notifier>,
    ) -> StoreResult<Self> {
        let (sender, receiver) = channel();
        let cannot = |cause: Cause| StoreError::Database { verb: "open", cause };
        let desk = Desk::new(opened, patience, options.busy_timeout, Arc::clone(&place), notifier, receiver)
            .map_err(|e| cannot(e.into()))?;
        if options.threads == Threads::OfCallers {
            return Ok(Self { sender, place, desk: Some(Arc::new(Mutex::new(Some(desk)))) });
        }
        thread::Builder::new()
            .name("milepost-sqlite".to_owned())
            .spawn(move || desk.serve())
            .map_err(|e| cannot(e.into()))?;
        Ok(Self { sender, place, desk: None })
    }

    /// Runs the closure in a savepoint of a write transaction and returns when that is durable.
    pub(crate) async fn call<T, E, F>(&self, verb: &'static str, hint: Hint, work: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
        F: FnOnce(&Transaction<'_>) -> Result<T, E> + Send + 'static,
    {
        let (call, answer) = Call::new(verb, hint, work);
        let gone = || E::from(defect(verb, format!("the writer thread of {} has stopped", self.place)));
        self.sender.send(Message::Run(Box::new(call))).map_err(|_| gone())?;
        self.serve_here();
        answer.await.unwrap_or_else(|_| Err(gone()))
    }

    /// Without a thread: runs the commands that wait.
    fn serve_here(&self) {
        let desk = self.desk.as_ref().map(|desk| desk.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(mut desk) = desk
            && let Some(desk) = desk.as_mut()
        {
            desk.serve_waiting();
        }
    }

    pub(crate) fn sender(&self) -> Sender<Message> {
        self.sender.clone()
    }

    /// Ends the thread; returns when its connection is closed.
    pub(crate) async fn close(&self) {
        if let Some(desk) = &self.desk {
            let desk = desk.lock().unwrap_or_else(PoisonError::into_inner).take();
            return desk.map_or((), Desk::end);
        }
        let (answer, closed) = oneshot::channel();
        if self.sender.send(Message::Close(answer)).is_ok() {
            let _ = closed.await;
        }
    }
}

/// Commands in the order of their arrival.
struct Queue {
    receiver: Receiver<Message>,
    /// Commands that were received and not started.
    backlog: VecDeque<Box<dyn Command>>,
    /// The reply to send when the file is closed; nothing more is received.
    closing: Option<oneshot::Sender<()>>,
}

impl Queue {
    fn try_next(&mut self) -> Option<Box<dyn Command>> {
        if let Some(command) = self.backlog.pop_front() {
            return Some(command);
        }
        while self.closing.is_none() {
            match self.receiver.try_recv() {
                Ok(Message::Run(command)) => return Some(command),
                Ok(Message::Look) => {}
                Ok(Message::Close(answer)) => self.closing = Some(answer),
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => return None,
            }
        }
        None
    }

    fn is_empty(&mut self) -> bool {
        match self.try_next() {
            Some(command) => {
                self.backlog.push_front(command);
                false
            }
            None => true,
        }
    }
}

/// The state of the thread.
struct Desk {
    conn: Connection,
    patience: Patience,
    busy_timeout: Duration,
    place: Arc<str>,
    notifier: Arc<Notifier>,
    file: OpenedFile,
    queue: Queue,
    file_state: FileState,
    log: Log,
    /// Time spent in write transactions since the last gap.
    written: Duration,
}

impl Desk {
    fn new(
        (mut conn, file): (Connection, OpenedFile),
        patience: Patience,
        busy_timeout: Duration,
        place: Arc<str>,
        notifier: Arc<Notifier>,
        receiver: Receiver<Message>,
    ) -> rusqlite::Result<Self> {
        let log = Log::follow(&mut conn)?;
        Ok(Self {
            file,
            conn,
            patience,
            busy_timeout,
            place,
            notifier,
            queue: Queue { receiver, backlog: VecDeque::new(), closing: None },
            file_state: FileState::new(),
            log,
            written: Duration::ZERO,
        })
    }

    fn serve(mut self) {
        while let Some(first) = self.next() {
            self.serve_one(first);
            self.leave_gap();
        }
        self.end();
    }

    /// Runs the commands that wait, and returns.
    fn serve_waiting(&mut self) {
        while let Some(first) = self.queue.try_next() {
            self.serve_one(first);
        }
    }

    fn serve_one(&mut self, first: Box<dyn Command>) {
        self.transact(first);
        self.file_state.watch(&self.conn, &self.notifier);
        self.empty_log();
    }

    /// Closes the file.
    fn end(self) {
        let Self { conn, queue, .. } = self;
        drop(conn);
        if let Some(answer) = queue.closing {
            let _ = answer.send(());
        }
    }

    /// Returns the next command; `None` if no sender is left.
    fn next(&mut self) -> Option<Box<dyn Command>> {
        if let Some(command) = self.queue.try_next() {
            return Some(command);
        }
        self.written = Duration::ZERO;
        while self.queue.closing.is_none() {
            let message = if self.notifier.is_awaited() {
                self.queue.receiver.recv_timeout(LOOK_EVERY)
            } else {
                self.queue.receiver.recv().map_err(RecvTimeoutError::from)
            };
            match message {
                Ok(Message::Run(command)) => return Some(command),
                Ok(Message::Close(answer)) => self.queue.closing = Some(answer),
                Ok(Message::Look) | Err(RecvTimeoutError::Timeout) => {
                    self.file_state.watch(&self.conn, &self.notifier);
                }
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
        None
    }

    /// Runs one write transaction: this command and those that wait behind it.
    fn transact(&mut self, first: Box<dyn Command>) {
        if let Some(error) = self.file.replaced() {
            // The log has the same name as before: what is written to it would be read as a part of the new file.
            return self.turn_away(first, error);
        }
        self.patience.extend(first.queued_at() + self.busy_timeout);
        match run_together(&self.conn, &mut self.queue, first) {
            Ok(mut group) => {
                self.written += group.took;
                // Nothing is acknowledged that is in another file than the one that everyone opens now.
                let replaced = self.file.replaced().map(|error| Loss { error, by_last: false });
                group.lost = group.lost.or(replaced);
                self.answer(group);
            }
            Err((first, error)) => self.turn_away(first, error),
        }
    }

    fn answer(&mut self, group: Group) {
        let Group { ran, lost, took } = group;
        let Some(lost) = lost else { return self.answer_done(ran) };
        let is_full = may_be_full(&lost.error);
        let own = Outage::new(&self.place, lost.error, took);
        tracing::error!(place = %self.place, error = %own, "a write transaction was rolled back");
        let others = if lost.by_last { own.of_a_neighbour() } else { own.clone() };
        let last = ran.len() - 1;
        for (at, command) in ran.into_iter().enumerate() {
            command.answer(Some(if at == last { &own } else { &others }));
        }
        if is_full {
            self.give_log_back();
        }
    }

    fn answer_done(&mut self, ran: Vec<Box<dyn Command>>) {
        let mut hint = Hint::NONE;
        for command in ran {
            let its = command.hint();
            hint.ready |= its.ready;
            hint.stop |= its.stop;
            command.answer(None);
        }
        self.notifier.ring(hint);
        if hint.ready {
            announce_batches(&self.conn, &self.notifier);
        }
        self.file_state.announce_events(&self.conn, &self.notifier);
    }

    /// Handles a transaction that could not begin: refuses the commands whose timeout has passed, and keeps the others.
    fn turn_away(&mut self, first: Box<dyn Command>, error: rusqlite::Error) {
        let now = Instant::now();
        let busy = is_busy(&error);
        let outage = Outage::new(&self.place, error, now - first.queued_at());
        tracing::warn!(place = %self.place, ?outage, "a write transaction could not begin");
        first.answer(Some(&outage));
        while let Some(command) = self.queue.try_next() {
            if busy && command.queued_at() + self.busy_timeout > now {
                self.queue.backlog.push_front(command);
                break;
            }
            command.answer(Some(&outage));
        }
    }

    fn empty_log(&mut self) {
        // The log of a file that was replaced belongs to the new file.
        if !self.log.is_long(&self.conn) || self.file.replaced().is_some() {
            return;
        }
        match self.log.empty(&self.conn, &self.patience) {
            Ok(()) => self.written = Duration::ZERO,
            Err(error) if is_busy(&error) => {}
            Err(error) => tracing::error!(place = %self.place, %error, "the log cannot be truncated"),
        }
    }

    /// Frees disk space on a full disk by truncating the log.
    fn give_log_back(&self) {
        if let Err(error) = self.log.give_back(&self.conn, &self.patience) {
            tracing::warn!(place = %self.place, %error, "the log cannot be truncated: free disk space");
        }
    }

    /// Pauses so that other processes can write.
    fn leave_gap(&mut self) {
        if self.queue.is_empty() {
            return;
        }
        if self.file_state.has_neighbours() {
            thread::sleep(GAP_SHARED);
        } else if self.written >= WRITING_ALONE {
            thread::sleep(GAP_ALONE);
        } else {
            return;
        }
        self.written = Duration::ZERO;
    }
}

/// Commands that shared a transaction.
struct Group {
    ran: Vec<Box<dyn Command>>,
    /// Why none of it is durable.
    lost: Option<Loss>,
    took: Duration,
}

/// Why a transaction was lost.
struct Loss {
    error: rusqlite::Error,
    /// Whether the last command ended it; the other commands only shared the transaction.
    by_last: bool,
}

/// Begins a transaction, runs this command and those that wait behind it, and commits. If no transaction can begin, returns the command.
fn run_together(
    conn: &Connection,
    queue: &mut Queue,
    first: Box<dyn Command>,
) -> Result<Group, (Box<dyn Command>, rusqlite::Error)> {
    let tx = match Transaction::new_unchecked(conn, TransactionBehavior::Immediate) {
        Ok(tx) => tx,
        Err(error) => return Err((first, error)),
    };
    let begun = Instant::now();
    let mut ran = Vec::new();
    let mut next = Some(first);
    let mut stepped = Ok(());
    while let Some(mut command) = next {
        stepped = step(&tx, command.as_mut());
        ran.push(command);
        let goes_on = stepped.is_ok() && begun.elapsed() < TRANSACTION_OPEN;
        next = if goes_on { queue.try_next() } else { None };
    }
    let lost = match stepped {
        Err(error) => Some(Loss { error, by_last: true }),
        Ok(()) => tx.commit().err().map(|error| Loss { error, by_last: false }),
    };
    let took = begun.elapsed();
    Ok(Group { ran, lost, took })
}

/// Runs one command in a savepoint. An error means that the whole transaction is lost.
fn step(tx: &Transaction<'_>, command: &mut dyn Command) -> rusqlite::Result<()> {
    tx.prepare_cached("SAVEPOINT command")?.execute(())?;
    let stays = command.run(tx);
    if tx.is_autocommit() {
        // SQLite rolls back automatically if the disk is full or fails.
        let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_ABORT);
        let words = "the transaction was ended from within: the disk failed, or a closure ended it";
        return Err(rusqlite::Error::SqliteFailure(code, Some(words.to_owned())));
    }
    if !stays {
        tx.prepare_cached("ROLLBACK TO command")?.execute(())?;
    }
    tx.prepare_cached("RELEASE command")?.execute(())?;
    Ok(())
}
