-- Imports heads of aggregates. Their slots are computed here.
insert into milepost.aggregate (aggregate_type, aggregate_id, last_seq, slot)
select r.aggregate_type, r.aggregate_id, r.last_seq, milepost.slot_of(r.aggregate_type, r.aggregate_id)
from unnest($1::text[], $2::text[], $3::bigint[]) as r(aggregate_type, aggregate_id, last_seq)
