-- The difference between this machine's clock and the database's, if it is more than five seconds. $1 the check's parameters
select count(*) over () as count, 'this machine' as what,
       case when d.ahead_ms > 0 then 'ahead of the database by ' else 'behind the database by ' end || abs(d.ahead_ms) || ' ms' as detail
from (
    select ($1::jsonb ->> 'now_ms')::bigint - (extract(epoch from clock_timestamp()) * 1000)::bigint as ahead_ms
) d
where abs(d.ahead_ms) > 5000
limit 10
