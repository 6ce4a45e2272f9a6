-- Limits kind $1 to $2 starts per second with a burst of $3, given out in portions of $4; $5 source: a configuration does
-- not replace an operator's limit. No row: nothing was changed. A change adds no tokens: the bucket keeps those that it has,
-- up to the new burst; a debt is forgiven. clock_timestamp(): a claim that this statement waited for has begun later, and its
-- tokens stay debited.
insert into milepost.kind_limit as l (kind, per_second, burst, portion, source)
values ($1, $2, $3, $4, $5)
on conflict (kind) do update
set per_second = excluded.per_second, burst = excluded.burst, portion = excluded.portion, source = excluded.source,
    full_at = clock_timestamp() + make_interval(secs => ceil(1e6::float8 / excluded.per_second * (excluded.burst - least(
        excluded.burst,
        greatest(0, l.burst - case when isfinite(l.full_at) then
            greatest(0, extract(epoch from l.full_at - clock_timestamp())::float8) * l.per_second else 0 end)
    ))) / 1e6::float8)
where l.source = excluded.source or excluded.source = 'operator'
returning (select milepost.wake())::text
