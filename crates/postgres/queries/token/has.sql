-- Whether there is a token that is not revoked.
select exists (select from milepost.access_token where revoked_at is null)
