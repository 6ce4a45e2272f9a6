-- Imports workers. $3 queues and $4 kinds (JSON arrays), $11 whether they hold jobs.
insert into milepost.worker (id, name, queues, kinds, lease_ms, started_at, heartbeat_at, lease_expires_at, ended_at,
                             died, cleared_at)
overriding system value
select id, name, array(select jsonb_array_elements_text(queues::jsonb)), array(select jsonb_array_elements_text(kinds::jsonb)),
       lease_ms, started_at, heartbeat_at, lease_expires_at, ended_at, died, case when not holds then ended_at end
from unnest($1::int[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::timestamptz[], $7::timestamptz[],
            $8::timestamptz[], $9::timestamptz[], $10::boolean[], $11::boolean[])
    as r(id, name, queues, kinds, lease_ms, started_at, heartbeat_at, lease_expires_at, ended_at, died, holds)
