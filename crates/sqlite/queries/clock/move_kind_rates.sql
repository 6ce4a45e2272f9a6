-- Moves back the times at which the buckets of kinds are full, after the clock was set back. ?1 now, ?2 by how many milliseconds
UPDATE milepost_kind_limit SET full_at_us = max(?1 * 1000, full_at_us - ?2 * 1000) WHERE full_at_us > ?1 * 1000
