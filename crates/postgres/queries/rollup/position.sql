-- Where the last rollup ended and how long ago, and the number of changes in the history; null before the first rollup.
select p.position, p.pos, floor(extract(epoch from now() - p.at) * 1000)::bigint as age_ms, s.last_value as changes
from (select last_value from milepost.history_pos_seq) s
left join milepost.rollup_position p on true
