-- Detects another event with a sequence that was used before, as after the log of events was restored to an earlier time. Of an aggregate, applied_at_ms is when
-- the last event was processed, last_event_id its id; null if not known. Several dead letters can have the same sequence.
ALTER TABLE milepost_aggregate_checkpoint ADD COLUMN applied_at_ms INTEGER;
ALTER TABLE milepost_aggregate_checkpoint ADD COLUMN last_event_id BLOB;
DROP INDEX milepost_inbox_dead_event;
CREATE UNIQUE INDEX milepost_inbox_dead_event ON milepost_inbox_dead (consumer, aggregate_type, aggregate_id, aggregate_seq, event_id) WHERE event_id IS NOT NULL;
