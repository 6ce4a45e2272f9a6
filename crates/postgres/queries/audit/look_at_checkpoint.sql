-- Up to which event consumer $1 has taken in those of an aggregate: $2 its type, $3 its id.
select jsonb_build_object('last_seq', last_seq)::text from milepost.aggregate_checkpoint
where (consumer, aggregate_type, aggregate_id) = ($1, $2, $3)
