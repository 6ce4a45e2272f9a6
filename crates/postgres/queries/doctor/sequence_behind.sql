-- Sequences that give out numbers again that rows of their table have. `highest` is read first: a sequence is never behind a row that was read before.
-- Without audit, which the role of workers may not read.
with highest (name, number) as materialized (
    select 'milepost.history_pos_seq', max(pos)::bigint from milepost.history
    union all
    select 'milepost.worker_id_seq', max(id)::bigint from milepost.worker
    union all
    select 'milepost.bulk_failure_pos_seq', max(pos)::bigint from milepost.bulk_failure
    union all
    select 'milepost.dag_version_id_seq', max(id)::bigint from milepost.dag_version
    union all
    select 'milepost.batch_spread_pos_seq', max(pos)::bigint from milepost.batch_spread
    union all
    select 'milepost.batch_history_pos_seq', max(pos)::bigint from milepost.batch_history
    union all
    select 'milepost.batch_signal_pos_seq', max(pos)::bigint from milepost.batch_signal
    union all
    select 'milepost.event_pos_seq', max(pos)::bigint from milepost.event
    union all
    select 'milepost.slot_position_n_seq', max(n)::bigint from milepost.slot_position
    union all
    select 'milepost.inbox_dead_pos_seq', max(pos)::bigint from milepost.inbox_dead
    union all
    select 'milepost.inbox_tally_shard_seq', max(shard)::bigint from milepost.inbox_tally
)
select count(*) over () as count, h.name as what, 'last number ' || coalesce(s.last, 0) || ', highest row ' || h.number as detail
from highest h
cross join lateral (select pg_sequence_last_value(h.name::regclass)) s (last)
-- The last number of a sequence that this role may not read is null, too.
-- During a move nothing else can insert, and its end raises the sequences.
where not exists (select from milepost.arrival where completed_at is null) and has_sequence_privilege(h.name, 'select, usage') and h.number > coalesce(s.last, 0)
order by what
limit 10
