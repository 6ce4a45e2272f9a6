-- Renews the lease, takes free slots and releases surplus ones. Each row has the current epoch.
with e as materialized (select milepost.current_epoch() as epoch)
select h.*, e.epoch from e cross join milepost.hold_slots($1, $2, $3, $4, $5) h
