-- Ends the silence of the alert with rule $1 and subject $2.
delete from milepost.alert_silence where rule = $1::text and subject = $2::text returning rule
