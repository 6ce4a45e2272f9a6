-- The statements of a bulk job and their parameters (JSON), for those who examine it or start it:
-- {"source", "effect", "parameters": {name: type or null}}.
ALTER TABLE milepost_bulk_definition ADD COLUMN statements TEXT;
