-- Returns by how many milliseconds the latest noted time of $1 differs from now (null: none was noted), and whether the time $2 is still to come.
select (select (extract(epoch from max(t.until) - now()) * 1000)::bigint from milepost.turn t where t.name = any ($1)) as noted_ms,
       exists (select from milepost.turn t where t.name = $2 and t.until > now()) as waits
