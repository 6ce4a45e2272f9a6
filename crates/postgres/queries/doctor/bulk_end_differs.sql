-- Bulk jobs that have processed all targets but whose job did not succeed, unless it was rerun since; and bulk jobs whose
-- job succeeded before that, unless an operator marked it.
select count(*) over () as count, d.job_id::text as what,
       case when d.ended_at is null then 'succeeded, but has not processed all targets' else 'has processed all targets, but its state is ' || d.state::text end as detail
from (
    select b.job_id, b.ended_at, coalesce(l.state, e.state) as state
    from milepost.bulk b
    left join milepost.live l on l.id = b.job_id
    left join milepost.ended e on e.id = b.job_id
) d
where case when d.ended_at is null
    then d.state = 'succeeded'
        and (select h.verb from milepost.history h where h.job_id = d.job_id order by h.pos desc limit 1) = 'succeed'
    else d.state <> 'succeeded'
        and exists (select from milepost.history h where h.job_id = d.job_id and h.verb = 'create')
        and not exists (select from milepost.history h where h.job_id = d.job_id and h.verb = 'rerun')
    end
order by what
limit 10
