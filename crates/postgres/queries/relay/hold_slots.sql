-- Looks around: renews, takes, gives up.
select * from milepost.hold_slots($1, $2, $3, $4)
