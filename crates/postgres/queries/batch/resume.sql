-- Resumes batch $1: $2 note, $3 generation.
select changed, 0::bigint as stopping from milepost.resume_batch($1, $2, $3)
