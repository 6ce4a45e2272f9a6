-- Returns by how many milliseconds the latest noted time differs from now: more than 0 after the clock was set back. $1 whose note: of workers or of
-- publishers
select (extract(epoch from until - now()) * 1000)::bigint from milepost.turn where name = $1
