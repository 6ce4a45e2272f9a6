-- Imports schedules. $6 payloads, as JSON text.
insert into milepost.schedule (name, spec, time_zone, kind, queue, payload, priority, max_attempts, group_key, timeout_ms,
                               misfire, misfire_max, misfire_grace_ms, source, version, paused_at, next_at, last_at,
                               fired, dropped, dag, refused_at, refusal)
select name, spec, time_zone, kind, queue, payload::jsonb, priority, max_attempts, group_key, timeout_ms, misfire,
       misfire_max, misfire_grace_ms, source::milepost.schedule_source, version, paused_at, next_at, last_at, fired, dropped,
       dag, refused_at, refusal
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::smallint[], $8::int[], $9::text[],
            $10::bigint[], $11::text[], $12::int[], $13::bigint[], $14::text[], $15::bigint[], $16::timestamptz[],
            $17::timestamptz[], $18::timestamptz[], $19::bigint[], $20::bigint[],
            $21::text[], $22::timestamptz[], $23::text[])
    as r(name, spec, time_zone, kind, queue, payload, priority, max_attempts, group_key, timeout_ms, misfire, misfire_max,
         misfire_grace_ms, source, version, paused_at, next_at, last_at, fired, dropped, dag, refused_at, refusal)
