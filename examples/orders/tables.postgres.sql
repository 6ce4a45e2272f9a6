create table if not exists orders (id bigint generated always as identity primary key, cents bigint not null);
create table if not exists payments (order_id bigint primary key references orders, cents bigint not null);
-- The tables of the consumers. In a real system they would be in other databases.
create table if not exists shipments (order_id text primary key, packed boolean not null default false);
create table if not exists statistics (only_row int primary key check (only_row = 1), placed bigint not null, cents bigint not null);
insert into statistics values (1, 0, 0) on conflict do nothing;
