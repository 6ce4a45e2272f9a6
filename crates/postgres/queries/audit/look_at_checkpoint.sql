-- The last event of an aggregate that consumer $1 has received: $2 the aggregate's type, $3 its id.
select jsonb_build_object('last_seq', last_seq)::text from milepost.aggregate_checkpoint
where (consumer, aggregate_type, aggregate_id) = ($1, $2, $3)
