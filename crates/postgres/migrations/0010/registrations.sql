-- The OID of milepost.event when the worker was registered, which is another one in a restored dump; null: registered by an older release.
alter table milepost.worker add column event_table oid;
