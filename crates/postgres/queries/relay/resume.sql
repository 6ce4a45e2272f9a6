-- Resumes a paused subscription. Returns whether it was paused; no row: it does not exist.
with found as (
    select name, paused_at is not null as was_paused from milepost.subscription where name = $1 for update
),
resumed as (
    update milepost.subscription s set paused_at = null, paused_why = null
    from found f where s.name = f.name and f.was_paused
)
select was_paused from found
