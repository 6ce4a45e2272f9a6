-- Deletes the history of jobs that ended more than $1 ms ago, except the last entry: up to $2 jobs in the blocks of ended
-- from $4 up to $5. At most $3 entries of a job; the next calls continue with a job that has more. A job that is being
-- changed is skipped: its history is deleted with the job.
with due as materialized (
    select id, (ctid::text::point)[0]::bigint as block from milepost.ended
    where ctid >= $4::text::tid and ctid < $5::text::tid and not shortened
      and ended_at < now() - $1::bigint * interval '1 millisecond'
    limit $2
    for update skip locked
),
long as materialized (
    select id, block from due
    where exists (select from milepost.history h where h.job_id = due.id order by h.pos offset $3 + 1)
    order by block
    limit 1
),
ready as materialized (
    select id from due
    where not exists (select from milepost.history h where h.job_id = due.id order by h.pos offset $3 + 1)
),
entries as materialized (
    select r.id, e.pos from (select id from ready union all select id from long) r
    cross join lateral (
        select pos, lead(pos) over (order by pos) as next
        from milepost.history where job_id = r.id order by pos limit $3 + 1
    ) e
    where e.next is not null
),
gone as (
    delete from milepost.history h using entries e where h.job_id = e.id and h.pos = e.pos returning h.job_id
),
done as (
    update milepost.ended e set shortened = true from ready r where e.id = r.id
)
select (select count(distinct job_id) from gone) as jobs, (select count(*) from gone) as rows,
       coalesce((select block from long), (select max(block) from due having count(*) >= $2)) as block_left
