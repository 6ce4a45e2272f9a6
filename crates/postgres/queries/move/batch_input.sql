-- Imports inputs of batches. $2 JSON texts
insert into milepost.batch_input (batch_id, input)
select batch_id, input::jsonb
from unnest($1::uuid[], $2::text[])
    as r(batch_id, input)
