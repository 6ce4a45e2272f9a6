-- The silence of the alert with rule $1 and subject $2.
select jsonb_build_object('until', until_at)::text from milepost.alert_silence where rule = $1::text and subject = $2::text
