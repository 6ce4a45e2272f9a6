-- The settings of consumer $1.
select jsonb_build_object('gap_wait_ms', gap_wait_ms, 'parked_max', parked_max, 'gap_policy', gap_policy,
                          'begins_anywhere', begins_anywhere)::text
from milepost.inbox_consumer where consumer = $1
