-- Name and address, without secrets, of the database that contains the targets of a bulk job, if it is another one.
alter table milepost.bulk_definition add column place text;
