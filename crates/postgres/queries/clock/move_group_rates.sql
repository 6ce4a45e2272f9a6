-- Moves back the times at which the buckets of groups are full, and are looked at, after the clock was set back by $1 ms.
update milepost.group_bucket
set full_at = greatest(now(), full_at - $1 * interval '1 millisecond'),
    look_at = case when look_at > now() then greatest(now(), look_at - $1 * interval '1 millisecond') else look_at end
where full_at > now() or look_at > now()
