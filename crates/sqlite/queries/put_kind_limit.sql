-- Limits a kind; only an operator can replace an operator's limit. The bucket of a slower limit becomes at most empty, so that no start
-- waits longer than the new rate requires. ?1 kind, ?2 starts a second, ?3 burst, ?4 portion, ?5 now in microseconds, ?6 source
INSERT INTO milepost_kind_limit (kind, per_second, burst, portion, full_at_us, source) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (kind) DO UPDATE SET
    per_second = excluded.per_second, burst = excluded.burst, portion = excluded.portion, source = excluded.source,
    full_at_us = min(milepost_kind_limit.full_at_us, excluded.full_at_us + CAST(excluded.burst * 1000000.0 / excluded.per_second AS INTEGER) + 1)
WHERE milepost_kind_limit.source = excluded.source OR excluded.source = 'operator'
