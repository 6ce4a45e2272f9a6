-- Revokes a token, ends its sessions and records it in the audit log. Returns whether that changed anything, and whether the
-- token exists.
-- $1 its prefix, $2 who, $3 the reason
with revoked as (
    update milepost.access_token set revoked_at = now() where prefix = $1::text and revoked_at is null returning prefix, name, role
),
ended as (
    delete from milepost.console_session s using revoked r where s.token = r.prefix
),
noted as (
    insert into milepost.audit (who, what, subject, why, detail)
    select $2::text, 'token.revoke', name, $3::text, jsonb_build_object('before', jsonb_build_object('prefix', prefix, 'role', role)) from revoked
)
select exists (select from revoked), exists (select from milepost.access_token where prefix = $1::text)
