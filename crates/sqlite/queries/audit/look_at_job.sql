-- Returns the state of job ?1.
SELECT json_object('state', coalesce(l.state, e.state), 'ready_at', strftime('%Y-%m-%dT%H:%M:%fZ', coalesce(l.ready_at_ms, l.due_at_ms) / 1000.0, 'unixepoch'),
                   'stop', l.stop_verb, 'stop_at', strftime('%Y-%m-%dT%H:%M:%fZ', l.stop_at_ms / 1000.0, 'unixepoch'))
FROM milepost_job j LEFT JOIN milepost_live l ON l.id = j.id LEFT JOIN milepost_ended e ON e.id = j.id
WHERE j.id = ?1
