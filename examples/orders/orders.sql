-- The statements of src/shop.rs for any program that can send SQL to PostgreSQL: psql "$MILEPOST_STORE" -f orders.sql

-- Places an order. The row and the event are committed together.
begin;
insert into orders (cents) values (4200);
select emitted.*
from orders, milepost.emit('order', id::text, 'order.placed', json_build_object('cents', cents)) as emitted
where id = currval(pg_get_serial_sequence('orders', 'id'));
commit;

-- Pays the order. The event's id is derived from the payment's, so that this transaction may be sent twice.
begin;
insert into payments (order_id, cents) values (currval(pg_get_serial_sequence('orders', 'id')), 4200) on conflict do nothing;
select emitted.*
from payments, milepost.emit('order', order_id::text, 'order.paid', json_build_object('cents', cents),
    event_id => md5('payment of order ' || order_id)::uuid) as emitted
where order_id = currval(pg_get_serial_sequence('orders', 'id'));
commit;
