-- Returns the definition of schedule ?1, without the state of its ticks.
SELECT json_object('spec', spec, 'time_zone', time_zone, 'dag', dag, 'kind', kind, 'queue', queue, 'payload', payload,
                   'priority', priority, 'max_attempts', max_attempts, 'group', group_key, 'timeout_ms', timeout_ms,
                   'misfire', misfire, 'misfire_max', misfire_max, 'misfire_grace_ms', misfire_grace_ms,
                   'source', source, 'paused_at', strftime('%Y-%m-%dT%H:%M:%fZ', paused_at_ms / 1000.0, 'unixepoch'))
FROM milepost_schedule WHERE name = ?1
