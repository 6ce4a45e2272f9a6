-- Pauses queue $1 ($2 true) or resumes it, which deletes its row. Returns a row if that changed anything.
with paused as (
    insert into milepost.queue as q (name, paused_at)
    select $1::text, now() where $2::boolean
    on conflict (name) do update set paused_at = excluded.paused_at where q.paused_at is null
    returning q.name
), resumed as (
    delete from milepost.queue where name = $1::text and not $2::boolean returning name, paused_at
)
select name, (select milepost.wake())::text
from (select name from paused union all select name from resumed where paused_at is not null) as changed
