-- Subscriptions: their position in the log, their publishers, and their parked events.

-- pos: every event up to this position has been handled. One process publishes at a time: owner, until its lease expires. token:
-- incremented whenever the owner changes.
CREATE TABLE milepost_subscription (
    name           TEXT    PRIMARY KEY,
    made_at_ms     INTEGER NOT NULL,
    paused_at_ms   INTEGER,
    paused_why     TEXT,
    pos            INTEGER NOT NULL,
    advanced_at_ms INTEGER,
    owner          BLOB,
    token          INTEGER NOT NULL DEFAULT 0,
    lease_until_ms INTEGER,
    held_since_ms  INTEGER,
    CHECK ((paused_at_ms IS NULL) = (paused_why IS NULL))
) STRICT;

-- Publishers, active or on standby; each is one process incarnation. down_since_ms, down_why: its sink does not accept events.
CREATE TABLE milepost_publisher (
    id             BLOB    PRIMARY KEY,
    subscription   TEXT    NOT NULL REFERENCES milepost_subscription ON DELETE CASCADE,
    label          TEXT    NOT NULL,
    started_at_ms  INTEGER NOT NULL,
    lease_until_ms INTEGER NOT NULL,
    down_since_ms  INTEGER,
    down_why       TEXT,
    -- Whether it leaves the subscription to other publishers because its sink does not accept events.
    stands_aside   INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- Aggregates with a failed event. deliveries: the number of delivery attempts of the first parked event.
-- next_delivery_at_ms NULL: it waits for an operator.
CREATE TABLE milepost_parked_aggregate (
    subscription        TEXT    NOT NULL REFERENCES milepost_subscription ON DELETE CASCADE,
    aggregate_type      TEXT    NOT NULL,
    aggregate_id        TEXT    NOT NULL,
    parked_at_ms        INTEGER NOT NULL,
    deliveries          INTEGER NOT NULL,
    next_delivery_at_ms INTEGER,
    why                 TEXT    NOT NULL,
    PRIMARY KEY (subscription, aggregate_type, aggregate_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX milepost_parked_due ON milepost_parked_aggregate (subscription, next_delivery_at_ms)
    WHERE next_delivery_at_ms IS NOT NULL;
CREATE INDEX milepost_parked_at ON milepost_parked_aggregate (parked_at_ms, subscription, aggregate_type, aggregate_id);

-- The parked events, in the order of pos: the failed event and those after it. edited: the payload that is published instead of the
-- original.
CREATE TABLE milepost_parked_event (
    subscription   TEXT    NOT NULL,
    aggregate_type TEXT    NOT NULL,
    aggregate_id   TEXT    NOT NULL,
    pos            INTEGER NOT NULL,
    event_id       BLOB    NOT NULL,
    edited         TEXT,
    PRIMARY KEY (subscription, aggregate_type, aggregate_id, pos),
    FOREIGN KEY (subscription, aggregate_type, aggregate_id) REFERENCES milepost_parked_aggregate ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX milepost_parked_event_id ON milepost_parked_event (event_id);

-- Dead-lettered events, kept until an operator decides. skipped: the subscription's policy or an operator skipped the event; it is not a
-- delivery that could not succeed.
CREATE TABLE milepost_dead_event (
    subscription TEXT    NOT NULL REFERENCES milepost_subscription ON DELETE CASCADE,
    event_id     BLOB    NOT NULL,
    pos          INTEGER NOT NULL,
    dead_at_ms   INTEGER NOT NULL,
    deliveries   INTEGER NOT NULL,
    why          TEXT    NOT NULL,
    skipped      INTEGER NOT NULL CHECK (skipped IN (0, 1)),
    edited       TEXT,
    PRIMARY KEY (subscription, event_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX milepost_dead_event_id ON milepost_dead_event (event_id);
CREATE INDEX milepost_dead_event_at ON milepost_dead_event (dead_at_ms, event_id, subscription);

-- The position at which the last search for deletable events ended; the next one starts there.
CREATE TABLE milepost_log_prune (
    pos INTEGER NOT NULL
) STRICT;
INSERT INTO milepost_log_prune (pos) VALUES (0);
