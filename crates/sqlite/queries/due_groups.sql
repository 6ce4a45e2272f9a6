-- Groups that are to be looked at: their tokens have come back. ?1 now in microseconds
SELECT group_key FROM milepost_group_bucket INDEXED BY milepost_group_bucket_look WHERE look_at_us <= ?1 ORDER BY look_at_us LIMIT 500
