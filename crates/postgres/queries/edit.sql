-- Edits job $1: $2 payload (JSON text), $3 priority, $4 start time, $5 delay in ms, $6 max attempts, $7 note; nulls: as before.
select milepost.edit_job($1, $2::text::jsonb, $3, $4, $5, $6, $7)::text
