-- No row holds JSON whose text has more than 256 MiB. PostgreSQL cannot give out a text of 1 GiB, so one such row would fail every
-- statement that reads it among others. What the API takes is far smaller; this holds for accounts that write tables themselves.
--
-- jsonb writes all digits of a number: 1e-16383 has some 10 bytes in the table and 16,385 in its text. JSON of less than 8,000 bytes in the
-- table is short enough without a look at its text. Rows that are stored already are not checked.
do $$
declare
    place record;
begin
    for place in
        select c.relname, a.attname
        from pg_catalog.pg_class c join pg_catalog.pg_attribute a on a.attrelid = c.oid
        where c.relnamespace = 'milepost'::regnamespace and c.relkind = 'r' and a.attnum > 0 and not a.attisdropped
          and a.atttypid in ('json'::regtype, 'jsonb'::regtype)
    loop
        execute format(
            'alter table milepost.%1$I add constraint %2$I
             check (pg_column_size(%3$I) < 8000 or octet_length(%3$I::text) <= 268435456) not valid',
            place.relname, place.relname || '_' || place.attname || '_text', place.attname);
    end loop;
end
$$;
