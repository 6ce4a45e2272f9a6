-- Those of the jobs $1 whose rows other transactions hold.
with unheld as materialized (
    select id from milepost.live where id = any($1::uuid[]) for update skip locked
)
select l.id from milepost.live l where l.id = any($1::uuid[]) and not exists (select from unheld u where u.id = l.id)
