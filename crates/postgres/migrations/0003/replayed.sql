-- Tells parked events apart from those that an operator publishes again: only for the latter, the subscription's filter decides.
alter table milepost.parked_event add column replayed boolean not null default false;
