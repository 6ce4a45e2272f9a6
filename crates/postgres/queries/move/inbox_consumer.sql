-- Imports settings of consumers.
insert into milepost.inbox_consumer (consumer, gap_wait_ms, parked_max, gap_policy, begins_anywhere)
select * from unnest($1::text[], $2::bigint[], $3::int[], $4::text[], $5::boolean[])
