-- Records that a server has the target $1, and locks its row. Returns whether a message may be claimed now, $2 ms after the
-- last one, and the time.
insert into milepost.alert_target as t (name, seen_at) values ($1::text, now())
on conflict (name) do update set seen_at = greatest(t.seen_at, clock_timestamp())
returning t.failures, clock_timestamp() as at,
    coalesce(t.claimed_until <= clock_timestamp(), true) and coalesce(t.next_at <= clock_timestamp(), true)
        and coalesce(t.sent_at <= clock_timestamp() - $2::bigint * interval '1 millisecond', true) as free
