-- Detects another event with a sequence that was used before, as after the log of events was restored to an earlier time. Of an aggregate, applied_at is when
-- the last event was processed, last_event_id its id; null if not known. Several dead letters can have the same sequence.
alter table milepost.aggregate_checkpoint add column applied_at timestamptz, add column last_event_id uuid;
drop index milepost.inbox_dead_event;
create unique index inbox_dead_event on milepost.inbox_dead (consumer, aggregate_type, aggregate_id, aggregate_seq, event_id) where event_id is not null;
