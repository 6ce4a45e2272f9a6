-- Limits kind $1 to $2 starts a second with a burst of $3, given out in portions of $4; $5: who says so, and no configuration
-- where an operator did. No row: nothing was changed. A bucket that was slower is at most empty: what it would have waited for is not
-- waited for any more. clock_timestamp(): a claim that this waited for has begun later, and what it took stays taken.
insert into milepost.kind_limit (kind, per_second, burst, portion, source)
values ($1, $2, $3, $4, $5)
on conflict (kind) do update
set per_second = excluded.per_second, burst = excluded.burst, portion = excluded.portion, source = excluded.source,
    full_at = least(kind_limit.full_at, clock_timestamp() + milepost.cost(excluded.burst, excluded.per_second))
where kind_limit.source = excluded.source or excluded.source = 'operator'
returning (select milepost.wake())::text
