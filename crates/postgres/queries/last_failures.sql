-- The last failure of each of the jobs $1 that has failed; $2 maximum number of characters of its message.
select asked.id, h.at, h.error_code, left(h.error_message, $2::int) as error_message
from unnest($1::uuid[]) as asked (id)
cross join lateral (
    select at, error_code, error_message
    from milepost.history
    where job_id = asked.id and (error_code is not null or error_message is not null)
    order by pos desc
    limit 1
) h
