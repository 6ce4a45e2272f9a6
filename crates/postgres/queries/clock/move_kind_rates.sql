-- Moves back the times at which the buckets of kinds are full, after the clock was set back by $1 ms.
update milepost.kind_limit set full_at = greatest(now(), full_at - $1 * interval '1 millisecond') where full_at > now()
