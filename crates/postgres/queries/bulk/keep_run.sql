-- Locks the row of bulk job $1 against retention; no row: it was deleted.
with live as materialized (
    select 1 from milepost.live where id = $1 for key share
),
ended as materialized (
    select 1 from milepost.ended where id = $1 for key share
)
select 1 from live union all select 1 from ended
