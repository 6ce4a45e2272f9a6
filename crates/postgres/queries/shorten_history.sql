-- Forgets the history of up to $3 jobs that ended as $1 more than $2 ms ago, but for its last entry, in the order
-- of their ends and from where the last call came to. At most $4 entries of a job; one that has more is gone on
-- with by the next calls. A job that is being changed is passed over: its history goes with it.
with mark as materialized (
    select state, ended_at, job_id from milepost.shortened
    where state = $1::text::milepost.job_state
    for update skip locked
),
due as materialized (
    select e.id, e.ended_at from mark
    cross join lateral (
        select id, ended_at from milepost.ended
        where state = mark.state
          and (ended_at, id) > (mark.ended_at, mark.job_id)
          and ended_at < now() - $2::bigint * interval '1 millisecond'
        order by ended_at, id
        limit $3
        for update skip locked
    ) e
),
long as materialized (
    select id, ended_at from due
    where exists (select from milepost.history h where h.job_id = due.id order by h.pos offset $4 + 1)
    order by ended_at, id
    limit 1
),
ready as materialized (
    select id, ended_at from due
    where not exists (select from long where (due.ended_at, due.id) >= (long.ended_at, long.id))
),
entries as materialized (
    select r.id, e.pos from (select id from ready union all select id from long) r
    cross join lateral (
        select pos, lead(pos) over (order by pos) as next
        from milepost.history where job_id = r.id order by pos limit $4 + 1
    ) e
    where e.next is not null
),
gone as (
    delete from milepost.history h using entries e where h.job_id = e.id and h.pos = e.pos returning h.job_id
),
moved as (
    update milepost.shortened s set ended_at = r.ended_at, job_id = r.id
    from (select ended_at, id from ready order by ended_at desc, id desc limit 1) r
    where s.state = $1::text::milepost.job_state
)
select (select count(distinct job_id) from gone) as jobs, (select count(*) from gone) as rows,
       null::timestamptz as reached,
       (select count(*) from due) >= $3 or exists (select from long) as more
