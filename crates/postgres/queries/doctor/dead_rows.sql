-- Tables with more than 200,000 dead rows, and more dead than live rows.
select count(*) over () as count, relname::text as what, n_dead_tup || ' dead rows, ' || n_live_tup || ' live rows' as detail
from pg_catalog.pg_stat_user_tables
where schemaname = 'milepost' and n_dead_tup > 200000 and n_dead_tup > n_live_tup
order by what
limit 10
