-- What is behind all that has happened: the server with its epoch, and the snapshot that sees it.
select lpad(to_hex(c.system_identifier & 4294967295), 8, '0') || left(milepost.current_epoch()::text, 8) as server,
       pg_current_snapshot()::text as seen
from pg_control_system() c
