-- Events that have started work, written in the transaction that created the work. See docs/adr/0042-events-start-work.md.

-- work: what the event started; work_id: the job or the batch; of a signal, its batch. Rows do not refer to the subscription: one that is
-- created again under the same name does not start the same work again. A row is deleted with its event.
CREATE TABLE milepost_event_work (
    event_id      BLOB    NOT NULL,
    subscription  TEXT    NOT NULL,
    work          TEXT    NOT NULL CHECK (work IN ('job', 'batch', 'signal')),
    work_id       BLOB    NOT NULL,
    started_at_ms INTEGER NOT NULL,
    PRIMARY KEY (event_id, subscription)
) STRICT, WITHOUT ROWID;

-- The event that started a job, for operators.
CREATE INDEX milepost_event_work_id ON milepost_event_work (work_id);
