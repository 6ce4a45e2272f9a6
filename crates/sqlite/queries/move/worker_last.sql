-- Returns the highest worker id ever assigned.
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'milepost_worker'), 0)
