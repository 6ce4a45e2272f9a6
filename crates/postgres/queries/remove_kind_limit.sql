-- Removes the limit of kind $1; $2: who says so, and no configuration where an operator did.
delete from milepost.kind_limit where kind = $1 and (source = $2 or $2 = 'operator')
returning (select milepost.wake())::text
