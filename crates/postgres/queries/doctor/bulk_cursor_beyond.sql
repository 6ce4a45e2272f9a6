-- Bulk jobs whose cursor is after their last target, or set although the last target is not known. Only positions of
-- failures can be compared: other keys have their own order.
select count(*) over () as count, b.job_id::text as what,
       'its cursor is at ' || b.cursor_key::text || ', its last target is ' || coalesce(b.upper_key::text, 'unknown') as detail
from milepost.bulk b
where b.cursor_key is not null and (
    b.surveyed_at is null or b.upper_key is null
    or case when b.retry_of is not null and b.cursor_key ->> 0 ~ '^[0-9]{1,18}$' and b.upper_key ->> 0 ~ '^[0-9]{1,18}$'
            then (b.cursor_key ->> 0)::bigint > (b.upper_key ->> 0)::bigint
            else false end
)
order by what
limit 10
