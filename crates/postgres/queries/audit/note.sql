-- Notes what somebody did: $1 who, $2 what, $3 to what, $4 why, $5 how that stood before and after (JSON text).
insert into milepost.audit (who, what, subject, why, detail) values ($1, $2, $3, $4, $5::text::jsonb)
