-- Removes the limit of kind $1; $2 source: a configuration does not remove an operator's limit.
delete from milepost.kind_limit where kind = $1 and (source = $2 or $2 = 'operator')
returning (select milepost.wake())::text
