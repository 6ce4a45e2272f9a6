-- Whether a watcher at snapshot $1 can continue: the current epoch, whether the server has reached $1, and the number of changes from there to $2,
-- at most $3.
with w as materialized (select $1::pg_snapshot as seen, $2::pg_snapshot as upto)
select milepost.current_epoch() as epoch,
       pg_snapshot_xmax(w.seen) <= pg_snapshot_xmax(pg_current_snapshot()) as been_there,
       (select count(*) from (
            select from milepost.history h where h.xid >= pg_snapshot_xmax(w.seen) and h.xid < pg_snapshot_xmax(w.upto) limit $3
        ) h) as changes
from w
