-- Looks around: renews, takes, gives up.
select h.*, milepost.current_epoch() as epoch from milepost.hold_slots($1, $2, $3, $4) h
