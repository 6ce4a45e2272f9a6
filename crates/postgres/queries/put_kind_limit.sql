-- Limits kind $1 to $2 starts a second with a burst of $3, given out in portions of $4; $5: who says so.
insert into milepost.kind_limit (kind, per_second, burst, portion, source)
values ($1, $2, $3, $4, $5)
on conflict (kind) do update
set per_second = excluded.per_second, burst = excluded.burst, portion = excluded.portion, source = excluded.source
returning (select milepost.wake())::text
