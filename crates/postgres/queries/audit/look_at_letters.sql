-- Dead letters $1.
select coalesce(jsonb_agg(jsonb_build_object('letter', pos, 'consumer', consumer, 'aggregate_type', aggregate_type,
                                             'aggregate_id', aggregate_id, 'aggregate_seq', aggregate_seq,
                                             'reason', reason, 'event_id', event_id) order by pos), '[]')::text
from milepost.inbox_dead where pos = any ($1::bigint[])
