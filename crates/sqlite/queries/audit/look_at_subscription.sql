-- Returns whether subscription ?1 is paused.
SELECT json_object('made_at', strftime('%Y-%m-%dT%H:%M:%fZ', made_at_ms / 1000.0, 'unixepoch'), 'paused_at', strftime('%Y-%m-%dT%H:%M:%fZ', paused_at_ms / 1000.0, 'unixepoch'), 'paused_why', paused_why)
FROM milepost_subscription WHERE name = ?1
