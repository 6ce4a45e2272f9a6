-- Claims up to $3 ready jobs for worker $1 under claim $2. $4..$7 are the lanes in the order of the search, each a (queue,
-- kind, priority) and a time before which the lane is empty (null: unknown); a lane is one probe of the index live_ready.
-- Stops at the lane that fills the limit, so that no row is locked unnecessarily.
-- Numbers that another program has set to the highest one stay there.
-- A kind with a rate is claimed from one lane, the first with a ready job, and only if this claim can lock its bucket.
-- Returns a row for each job, and at the end one without a job that contains the time, whether the worker has its lease, the
-- paused queues, the kinds with a rate, and the duration in us.
with floor as materialized (
    select milepost.run_token_floor() as least_token
),
worker as materialized (
    -- Excludes a concurrent rescue, which locks this row before it searches for jobs. In a store that was restored, a worker must register again.
    select id from milepost.worker
    where id = $1 and ended_at is null and lease_expires_at > now() and (select least_token from floor) is not null
    for key share
),
paused as materialized (
    select name from milepost.queue where paused_at is not null
),
limited as materialized (
    select kind from milepost.kind_limit where kind = any ($5::text[])
),
gates as materialized (
    -- A function, so that claims of other kinds do not have to plan its query.
    select g.kind, g.lane, g.starts
    from worker cross join milepost.open_gates($4::text[], $5::text[], $6::smallint[], $7::timestamptz[]) g
    where exists (select from limited)
),
ready as materialized (
    select l.place, l.state, l.ready_at, l.start_reserved
    from worker
    cross join unnest($4::text[], $5::text[], $6::smallint[], $7::timestamptz[]) with ordinality
        as lane(queue, kind, priority, floor, ord)
    cross join lateral (
        select ctid as place, state, ready_at, start_reserved from milepost.live
        where queue = lane.queue and kind = lane.kind and priority = lane.priority
          and ready_at is not null and ready_at >= coalesce(lane.floor, '-infinity') and ready_at <= now()
        order by ready_at, id
        limit case when lane.kind <> all (array(select kind from limited)) then $3
              else coalesce((select g.starts from gates g where g.lane = lane.ord), 0) end
        for update skip locked
    ) l
    where lane.queue <> all (array(select name from paused))
    limit $3
),
taken as (
    update milepost.live l
    set state = 'running', ready_at = null, token = least(greatest(l.token, (select least_token from floor)), 2147483646) + 1,
        attempt = least(l.attempt, 2147483646) + 1,
        worker_id = $1, claim_id = $2, started_at = now(), start_reserved = null
    from ready
    -- The row version that was locked, found by ctid without a second index lookup.
    where l.ctid = ready.place
    returning l.id, l.token, l.attempt, l.max_attempts, l.kind, l.group_key, ready.state, ready.ready_at, ready.start_reserved
),
logged as (
    insert into milepost.history (job_id, token, attempt, worker_id, verb, from_state, to_state)
    select id, token, attempt, $1, 'claim', state, 'running' from taken
),
noted as (
    -- The rates of these groups count the starts.
    insert into milepost.group_note (group_key, starts, started_at)
    select group_key, 0, now() from taken where start_reserved
    returning group_key
),
woken as (
    select milepost.wake() from noted limit 1
)
select t.id, t.token, $2::int as claim_id, t.attempt, t.max_attempts, j.kind, j.queue, j.priority, j.group_key,
       j.timeout_ms, j.created_at, j.payload::text as payload, j.nominal_at, j.batch_id, j.traceparent, t.ready_at,
       null::timestamptz as at, null::boolean as alive, null::text[] as paused, null::text[] as limited,
       null::bigint as took_us
from taken t join milepost.job j on j.id = t.id
union all
select null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null,
       now(), exists (select from worker), array(select name from paused), array(select kind from limited),
       (extract(epoch from clock_timestamp() - statement_timestamp()) * 1000000)::bigint
from (select count(milepost.debit(g.kind, (select count(*) from taken t where t.kind = g.kind))) from gates g) debited,
     (select count(*) from woken) woken
