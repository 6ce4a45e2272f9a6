-- Gives the failures of bulk job $1 that nobody tries again to bulk job $2, and notes how many. No row: there are none.
with given as (
    update milepost.bulk_failure set retried_by = $2 where job_id = $1 and retried_by is null returning 1
)
insert into milepost.bulk_setting as s (job_id, given)
select $1, count(*) from given having count(*) > 0
on conflict (job_id) do update set given = s.given + excluded.given
