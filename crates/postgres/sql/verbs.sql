-- Verbs and transitions of jobs. The migration of a program adds those that only it knows: see crates/postgres/src/verbs.rs. Not public.

-- Adds verbs. They can be used only after the transaction that adds them.
create or replace function milepost.add_verbs(names text[]) returns void language plpgsql
set search_path = pg_catalog, pg_temp as $$
declare
    name text;
begin
    foreach name in array names loop
        execute format('alter type milepost.verb add value if not exists %L', name);
    end loop;
end
$$;

revoke execute on function milepost.add_verbs from public;
