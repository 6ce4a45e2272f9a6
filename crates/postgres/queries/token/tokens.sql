-- All tokens.
select *, now() as at from milepost.access_token order by name, created_at, prefix
