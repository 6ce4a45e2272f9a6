-- Batches whose counts, state or end differ from those of their tasks.
select count(*) over () as count, o.batch_id::text as what,
       case when o.was <> o.counts
            then 'its counts by state are ' || array_to_string(o.was, ' ') || ', those of its tasks are ' || array_to_string(o.counts, ' ')
            when o.state <> o.fact then 'its state is ' || o.state::text || ', by its tasks it is ' || o.fact::text
            when o.has_end then 'has an end time, but is ' || o.state::text
            else 'is ' || o.state::text || ', but has no end time' end as detail
from milepost.batch_counts_off() o
order by what
limit 10
