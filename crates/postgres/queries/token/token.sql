-- A token. $1 its prefix
select *, now() as at from milepost.access_token where prefix = $1::text
