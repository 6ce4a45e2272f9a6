-- Limits a kind; only an operator can replace an operator's limit. A change adds no tokens: the bucket keeps those that it has, up to the new
-- burst; a debt is forgiven. ?1 kind, ?2 starts a second, ?3 burst, ?4 portion, ?5 now in microseconds, ?6 source
INSERT INTO milepost_kind_limit AS l (kind, per_second, burst, portion, full_at_us, source) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (kind) DO UPDATE SET
    per_second = excluded.per_second, burst = excluded.burst, portion = excluded.portion, source = excluded.source,
    full_at_us = excluded.full_at_us + 1 + CAST(1000000.0 / excluded.per_second * (excluded.burst - min(
        excluded.burst, max(0.0, l.burst - max(0, l.full_at_us - excluded.full_at_us) * l.per_second / 1000000.0)
    )) AS INTEGER)
WHERE l.source = excluded.source OR excluded.source = 'operator'
