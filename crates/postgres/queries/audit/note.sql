-- Records an action: $1 who, $2 what, $3 subject, $4 reason, $5 states before and after (JSON text).
insert into milepost.audit (who, what, subject, why, detail) values ($1, $2, $3, $4, $5::text::jsonb)
