-- Forgets up to $2 entries of the audit that are older than $1 ms, oldest first.
with oldest as materialized (
    select pos, at from milepost.audit order by pos limit $2
), due as materialized (
    select a.pos from oldest o join milepost.audit a using (pos)
    where o.at < now() - $1::bigint * interval '1 millisecond'
    for update of a skip locked
)
delete from milepost.audit a using due where a.pos = due.pos
