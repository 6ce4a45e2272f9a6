-- The statements of a bulk job and their parameters, for those who examine it or start it: {"source", "effect", "parameters": {name: type or null}}.
alter table milepost.bulk_definition add column statements jsonb;
-- The limit of every column of JSON (0001/text_limits.sql).
alter table milepost.bulk_definition add constraint bulk_definition_statements_text
    check (pg_column_size(statements) < 8000 or octet_length(statements::text) <= 268435456);
