-- Returns the settings of consumer ?1.
SELECT json_object('gap_wait_ms', gap_wait_ms, 'parked_max', parked_max, 'gap_policy', gap_policy,
                   'begins_anywhere', json(iif(begins_anywhere, 'true', 'false')))
FROM milepost_inbox_consumer WHERE consumer = ?1
