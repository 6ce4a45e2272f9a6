-- Bulk jobs: $1 only this one, $2 definition, $3 state, $4 group, $5 type, $6 category (null: any); $7 limit; $8 if not
-- null: only ended ones that are older. Running and waiting ones come first, in the order in which they will run; then the
-- others, newest first.
with groups as materialized (select distinct group_key from milepost.bulk_definition),
candidates as materialized (
    -- Jobs that were enqueued before their bulk job was defined have no row in bulk before their first chunk.
    select s.job_id as id from milepost.group_slot s where s.group_key in (select group_key from groups)
    union
    -- Read from the indexes live_waiting and live_timed, which contain only jobs that wait for a slot or for their start
    -- time.
    select l.id
    from groups g
    cross join lateral (
        select w.id from milepost.live w where w.group_key = g.group_key and w.due_at is not null and w.timed is null offset 0
    ) l
    union
    select t.id from milepost.live t where t.timed and t.group_key in (select group_key from groups)
    union
    select j.id from milepost.job j where j.id = $1
    union
    select b.job_id from milepost.bulk b
),
seen as materialized (
    select c.id, j.kind as name, j.group_key, j.created_at, coalesce(l.priority, j.priority) as priority,
           coalesce(l.state, e.state) as state, l.stop_verb, coalesce(l.due_at, l.ready_at) as due_at, l.id is not null as is_live
    from candidates c
    join milepost.job j on j.id = c.id
    left join milepost.live l on l.id = c.id
    left join milepost.ended e on e.id = c.id
),
placed as materialized (
    select s.*,
           case when state = 'blocked' and is_due then
               row_number() over (partition by group_key, state, is_due order by priority, due_at, id) end as next
    from (select *, due_at is null or due_at <= now() as is_due from seen) s
)
select p.id, p.name, d.type, d.category, p.group_key, p.state::text as state, p.stop_verb::text as stop_verb, p.priority, p.next,
       case when p.state in ('blocked', 'pending', 'retry_wait') then p.due_at end as due_at, p.created_at, b.started_at, b.updated_at, b.ended_at,
       b.cursor_key::text as cursor_key, b.upper_key::text as upper_key, b.total, b.total_exact,
       coalesce(b.done, 0) as done, coalesce(b.failed, 0) as failed, coalesce(b.chunks, 0) as chunks,
       b.chunk_rows, b.chunk_ms, coalesce(b.busy_ms, 0) as busy_ms, coalesce(b.held_ms, 0) as held_ms,
       b.throttle, b.throttle_since, b.retry_of, d.effects, d.place, f.name as file, f.rows as file_rows,
       s.rows_per_s as set_rows_per_s, s.duty as set_duty, s.chunk_ms as set_chunk_ms,
       s.chunk_rows_min as set_chunk_rows_min, s.chunk_rows_max as set_chunk_rows_max
from placed p
left join milepost.bulk b on b.job_id = p.id
left join milepost.bulk_setting s on s.job_id = p.id
left join milepost.bulk_file f on f.run = b.origin
left join milepost.bulk_definition d on d.name = p.name
where (b.job_id is not null or d.name is not null)
  and (p.id = $1 or $1 is null)
  and (p.name = $2 or $2 is null)
  and (p.state::text = $3 or $3 is null)
  and (p.group_key = $4 or $4 is null)
  and (d.type = $5 or $5 is null)
  and (d.category = $6 or $6 is null)
  and ($8::uuid is null or (p.id < $8 and p.state not in ('running', 'pending', 'retry_wait', 'blocked')))
order by case p.state when 'running' then 0 when 'pending' then 1 when 'retry_wait' then 1 when 'blocked' then 2 else 3 end,
         case when p.state in ('blocked', 'pending', 'retry_wait') then p.group_key end,
         p.next, case when p.state in ('running', 'blocked', 'pending', 'retry_wait') then p.due_at end,
         p.id desc
limit $7
