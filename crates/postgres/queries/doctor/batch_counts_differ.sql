-- Batches whose counts, state or end are not what their tasks say.
select count(*) over () as count, o.batch_id::text as what,
       case when o.was <> o.counts
            then 'counts ' || array_to_string(o.was, ' ') || ' by state, its tasks are ' || array_to_string(o.counts, ' ')
            when o.state <> o.fact then 'stands as ' || o.state::text || ', its tasks say ' || o.fact::text
            when o.has_end then 'has a time of its end, but is ' || o.state::text
            else 'is ' || o.state::text || ', but has no time of its end' end as detail
from milepost.batch_counts_off() o
order by what
limit 10
