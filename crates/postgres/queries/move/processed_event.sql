-- Imports ids of events that consumers have processed.
insert into milepost.processed_event (consumer, event_id, processed_at)
select * from unnest($1::text[], $2::uuid[], $3::timestamptz[])
