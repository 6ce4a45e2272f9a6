-- Imports signals of batches. $7 JSON texts
insert into milepost.batch_signal (pos, batch_id, id, name, state, sent_at, payload)
overriding system value
select pos, batch_id, id, name, state, sent_at, payload::jsonb
from unnest($1::bigint[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::text[])
    as r(pos, batch_id, id, name, state, sent_at, payload)
