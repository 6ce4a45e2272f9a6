-- The maximum number of jobs that a worker runs at the same time; NULL: it did not say.
ALTER TABLE milepost_worker ADD COLUMN slots INTEGER CHECK (slots > 0);
