-- Returns whether queue ?1 is paused, and since when.
SELECT json_object('paused_at', (SELECT strftime('%Y-%m-%dT%H:%M:%fZ', paused_at_ms / 1000.0, 'unixepoch') FROM milepost_queue WHERE name = ?1))
