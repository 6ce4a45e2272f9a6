-- Removes the limit of kind $1.
delete from milepost.kind_limit where kind = $1 returning (select milepost.wake())::text
