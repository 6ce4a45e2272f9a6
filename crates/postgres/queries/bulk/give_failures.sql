-- Assigns the failures of bulk job $1 that no run retries to bulk job $2, and records their number. Includes failures
-- assigned to a run that was canceled or skipped before it reached them. No row: there are none.
with given as (
    update milepost.bulk_failure f set retried_by = $2
    where f.job_id = $1
      and (f.retried_by is null
           or exists (select 1
                      from milepost.ended e
                      join milepost.bulk b on b.job_id = e.id
                      where e.id = f.retried_by and e.state in ('canceled', 'skipped')
                        and (b.cursor_key is null or f.pos > (b.cursor_key ->> 0)::bigint)
                      -- OFFSET 0 prevents a plan that hashes all ended jobs.
                      offset 0))
    returning 1
)
insert into milepost.bulk_setting as s (job_id, given)
select $1, count(*) from given having count(*) > 0
on conflict (job_id) do update set given = s.given + excluded.given
