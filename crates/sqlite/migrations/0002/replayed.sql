-- Tells parked events apart from those that an operator publishes again: only for the latter, the subscription's filter decides.
ALTER TABLE milepost_parked_event ADD COLUMN replayed INTEGER NOT NULL DEFAULT 0 CHECK (replayed IN (0, 1));
