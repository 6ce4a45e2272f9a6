-- The highest id that a worker ever had.
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'milepost_worker'), 0)
