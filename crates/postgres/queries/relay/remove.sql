-- Deletes a subscription.
with positions as (delete from milepost.slot_position where subscription = $1)
delete from milepost.subscription where name = $1
