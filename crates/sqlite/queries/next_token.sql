-- Returns when the next token that jobs may wait for becomes available, after a time, in microseconds. ?1 after
SELECT min(at_us) FROM (
    SELECT CAST(full_at_us - (burst - portion) * 1000000.0 / per_second AS INTEGER) AS at_us FROM milepost_kind_limit
    UNION ALL
    SELECT min(look_at_us) FROM milepost_group_bucket INDEXED BY milepost_group_bucket_look WHERE look_at_us > ?1
) WHERE at_us > ?1
