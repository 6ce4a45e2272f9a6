-- Settings with which a crash of the machine can lose or damage committed data.
select count(*) over () as count, name as what, 'is off' as detail
from pg_catalog.pg_settings
where name in ('fsync', 'full_page_writes') and setting = 'off'
order by what
limit 10
