-- Whether a bulk job of a demo has an open transaction that has written.
select exists (
    select from pg_stat_activity
    where datname = current_database() and application_name like 'milepost bulk demo.%' and backend_xid is not null
)
