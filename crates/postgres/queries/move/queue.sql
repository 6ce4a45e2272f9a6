-- Imports queues.
insert into milepost.queue (name, paused_at)
select * from unnest($1::text[], $2::timestamptz[])
