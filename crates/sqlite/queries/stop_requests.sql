-- Returns the pending stop requests: their number, and a sum that changes with them.
SELECT count(*), CAST(total(stop_at_ms) AS INTEGER) FROM milepost_live INDEXED BY milepost_live_stop WHERE stop_at_ms IS NOT NULL
