-- What is behind all that has happened: the server, and the snapshot that sees it.
select to_hex(c.system_identifier & 4294967295) as server, pg_current_snapshot()::text as seen from pg_control_system() c
