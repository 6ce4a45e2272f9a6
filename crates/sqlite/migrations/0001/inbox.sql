-- The inbox: the events that consumers have accepted. It is in the consumer's database, wherever the events come from.

-- Settings of consumers that differ from the defaults. gap_wait_ms: how long events wait for a missing earlier event; parked_max: the
-- maximum number of waiting events of an aggregate; gap_policy: what happens after either limit; begins_anywhere: the first event received
-- of an aggregate need not be its first one.
CREATE TABLE milepost_inbox_consumer (
    consumer        TEXT    PRIMARY KEY NOT NULL,
    gap_wait_ms     INTEGER NOT NULL,
    parked_max      INTEGER NOT NULL,
    gap_policy      TEXT    NOT NULL CHECK (gap_policy IN ('dead_letter', 'skip_gap')),
    begins_anywhere INTEGER NOT NULL CHECK (begins_anywhere IN (0, 1))
) STRICT, WITHOUT ROWID;

-- Ids of events that a consumer has accepted in any order.
CREATE TABLE milepost_processed_event (
    consumer        TEXT    NOT NULL,
    event_id        BLOB    NOT NULL,
    processed_at_ms INTEGER NOT NULL,
    PRIMARY KEY (consumer, event_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX milepost_processed_event_due ON milepost_processed_event (processed_at_ms);

-- The last event of an aggregate that a consumer has accepted. parked: the number of events in inbox_parked; dead: the number of dead
-- letters that could still follow; ready: the next event may be among them; gives_up_at_ms: when events that wait for a missing one become
-- dead letters.
CREATE TABLE milepost_aggregate_checkpoint (
    consumer       TEXT    NOT NULL,
    aggregate_type TEXT    NOT NULL,
    aggregate_id   TEXT    NOT NULL,
    last_seq       INTEGER NOT NULL CHECK (last_seq >= 0),
    parked         INTEGER NOT NULL DEFAULT 0 CHECK (parked >= 0),
    dead           INTEGER NOT NULL DEFAULT 0 CHECK (dead >= 0),
    ready          INTEGER NOT NULL DEFAULT 0 CHECK (ready IN (0, 1)),
    gives_up_at_ms INTEGER,
    PRIMARY KEY (consumer, aggregate_type, aggregate_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX milepost_aggregate_checkpoint_ready ON milepost_aggregate_checkpoint (consumer) WHERE ready = 1;
CREATE INDEX milepost_aggregate_checkpoint_gap ON milepost_aggregate_checkpoint (gives_up_at_ms) WHERE gives_up_at_ms IS NOT NULL;

-- Events that arrived before a missing earlier event, in full.
CREATE TABLE milepost_inbox_parked (
    pos            INTEGER PRIMARY KEY AUTOINCREMENT,
    consumer       TEXT    NOT NULL,
    aggregate_type TEXT    NOT NULL,
    aggregate_id   TEXT    NOT NULL,
    aggregate_seq  INTEGER NOT NULL,
    event_id       BLOB    NOT NULL,
    event_type     TEXT    NOT NULL,
    headers        TEXT,
    payload        TEXT    NOT NULL,
    emitted_at_ms  INTEGER NOT NULL,
    parked_at_ms   INTEGER NOT NULL,
    UNIQUE (consumer, aggregate_type, aggregate_id, aggregate_seq)
) STRICT;

-- Dead letters of inboxes, for operators. reason: 'gap', an event that a missing event precedes; 'never_came', the missing events
-- aggregate_seq to seq_to, which the consumer skipped; 'late', a skipped event that arrived after all. why: the reason as text.
CREATE TABLE milepost_inbox_dead (
    pos            INTEGER PRIMARY KEY AUTOINCREMENT,
    consumer       TEXT    NOT NULL,
    aggregate_type TEXT    NOT NULL,
    aggregate_id   TEXT    NOT NULL,
    aggregate_seq  INTEGER NOT NULL,
    seq_to         INTEGER NOT NULL CHECK (seq_to >= aggregate_seq),
    reason         TEXT    NOT NULL CHECK (reason IN ('gap', 'never_came', 'late')),
    why            TEXT    NOT NULL,
    event_id       BLOB,
    event_type     TEXT,
    headers        TEXT,
    payload        TEXT,
    emitted_at_ms  INTEGER,
    dead_at_ms     INTEGER NOT NULL,
    CHECK ((event_id IS NULL) = (reason = 'never_came'))
) STRICT;
CREATE UNIQUE INDEX milepost_inbox_dead_event
    ON milepost_inbox_dead (consumer, aggregate_type, aggregate_id, aggregate_seq) WHERE event_id IS NOT NULL;
CREATE INDEX milepost_inbox_dead_gap
    ON milepost_inbox_dead (consumer, aggregate_type, aggregate_id, aggregate_seq) WHERE event_id IS NULL;
CREATE INDEX milepost_inbox_dead_due ON milepost_inbox_dead (dead_at_ms);

-- The number of duplicates that were detected.
CREATE TABLE milepost_inbox_tally (
    consumer   TEXT    PRIMARY KEY NOT NULL,
    duplicates INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
