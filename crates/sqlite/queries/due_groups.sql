-- Returns groups that are due for a check because tokens are available again. ?1 now in microseconds
SELECT group_key FROM milepost_group_bucket INDEXED BY milepost_group_bucket_look WHERE look_at_us <= ?1 ORDER BY look_at_us LIMIT 500
