-- Notes that the clock was set back, unless another process has noted it or does so now. Returns by how many milliseconds. $1 whose note
with noted as materialized (
    select until from milepost.turn where name = $1 and until > now() + interval '5 seconds' for update skip locked
)
update milepost.turn t set until = now() from noted n where t.name = $1
returning (extract(epoch from n.until - now()) * 1000)::bigint
