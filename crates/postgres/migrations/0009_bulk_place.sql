-- Where the targets of a bulk job are, when that is another database: its name and address, without secrets.
alter table milepost.bulk_definition add column place text;
