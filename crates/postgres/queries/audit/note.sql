-- Notes what somebody did: $1 who, $2 what, $3 detail (JSON text).
insert into milepost.audit (who, what, detail) values ($1, $2, $3::text::jsonb)
