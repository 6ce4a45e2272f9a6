-- Limits kind $1 to $2 starts per second with a burst of $3, given out in portions of $4; $5 source: a configuration does
-- not replace an operator's limit. No row: nothing was changed. A debt that accrued at a slower rate is reduced: the bucket
-- is at worst empty. clock_timestamp(): a claim that this statement waited for has begun later, and its tokens stay debited.
insert into milepost.kind_limit (kind, per_second, burst, portion, source)
values ($1, $2, $3, $4, $5)
on conflict (kind) do update
set per_second = excluded.per_second, burst = excluded.burst, portion = excluded.portion, source = excluded.source,
    full_at = least(kind_limit.full_at, clock_timestamp() + milepost.cost(excluded.burst, excluded.per_second))
where kind_limit.source = excluded.source or excluded.source = 'operator'
returning (select milepost.wake())::text
