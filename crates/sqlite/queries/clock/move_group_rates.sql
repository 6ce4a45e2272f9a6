-- Moves back the times at which the buckets of groups are full, and are looked at, after the clock was set back. ?1 now, ?2 by how many milliseconds
UPDATE milepost_group_bucket
SET full_at_us = max(?1 * 1000, full_at_us - ?2 * 1000),
    look_at_us = CASE WHEN look_at_us > ?1 * 1000 THEN max(?1 * 1000, look_at_us - ?2 * 1000) ELSE look_at_us END
WHERE full_at_us > ?1 * 1000 OR look_at_us > ?1 * 1000
