-- Imports audit entries. $7 details, as JSON text.
insert into milepost.audit (pos, at, who, what, subject, why, detail)
overriding system value
select pos, at, who, what, subject, why, detail::jsonb
from unnest($1::bigint[], $2::timestamptz[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[])
    as r(pos, at, who, what, subject, why, detail)
