-- Schedule $1, without its ticks.
select jsonb_build_object('spec', spec, 'time_zone', time_zone, 'dag', dag, 'kind', kind, 'queue', queue,
                          'payload', payload::text, 'priority', priority, 'max_attempts', max_attempts, 'group', group_key,
                          'timeout_ms', timeout_ms, 'misfire', misfire, 'misfire_max', misfire_max,
                          'misfire_grace_ms', misfire_grace_ms, 'source', source, 'paused_at', paused_at)::text
from milepost.schedule where name = $1
