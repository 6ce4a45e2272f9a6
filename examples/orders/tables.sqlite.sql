create table if not exists orders (id integer primary key, cents integer not null);
create table if not exists payments (order_id integer primary key references orders, cents integer not null);
-- The tables of the consumers. In a real system they would be in other databases.
create table if not exists shipments (order_id text primary key, packed boolean not null default false);
create table if not exists statistics (only_row integer primary key check (only_row = 1), placed integer not null, cents integer not null);
insert into statistics values (1, 0, 0) on conflict do nothing;
