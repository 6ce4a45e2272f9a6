-- A dead letter: $1 subscription, $2 id of the event.
select jsonb_build_object('dead_at', dead_at, 'deliveries', deliveries, 'failed', why, 'skipped', skipped,
                          'edited', edited::text)::text
from milepost.dead_event where subscription = $1 and event_id = $2
