-- Imports the positions of consumers in aggregates.
insert into milepost.aggregate_checkpoint (consumer, aggregate_type, aggregate_id, last_seq, parked, dead, ready, gives_up_at)
select * from unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::int[], $6::int[], $7::boolean[], $8::timestamptz[])
