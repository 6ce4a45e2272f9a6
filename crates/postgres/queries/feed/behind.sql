-- Whether a watcher who has seen $1 can go on: the server with its epoch, whether it has been there, and how many changes have happened up
-- to $2, counted up to $3.
with w as materialized (select $1::pg_snapshot as seen, $2::pg_snapshot as upto)
select lpad(to_hex(c.system_identifier & 4294967295), 8, '0') || left(milepost.current_epoch()::text, 8) as server,
       pg_snapshot_xmax(w.seen) <= pg_snapshot_xmax(pg_current_snapshot()) as been_there,
       (select count(*) from (
            select from milepost.history h where h.xid >= pg_snapshot_xmax(w.seen) and h.xid < pg_snapshot_xmax(w.upto) limit $3
        ) h) as changes
from w, pg_control_system() c
