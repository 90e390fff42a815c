-- Runs once, when the volume is empty (make reset empties it). One database per service, and two roles on it: that neither
-- service reads the other's tables is then not a convention but a missing right, and so is that a service drops its own.
-- name_owner owns the tables and migrates; name serves, and gets its rights from the migrate command. Neither may connect
-- to anything else, and a service that opens connections without end leaves the other its share.
revoke connect on database postgres, template1 from public;

create role twinbox_customer_owner login password 'customer_owner' connection limit 5;
create role twinbox_customer login password 'customer' connection limit 90;
create database twinbox_customer owner twinbox_customer_owner;
revoke connect, temporary on database twinbox_customer from public;
grant connect on database twinbox_customer to twinbox_customer;

create role twinbox_notification_owner login password 'notification_owner' connection limit 5;
create role twinbox_notification login password 'notification' connection limit 90;
create database twinbox_notification owner twinbox_notification_owner;
revoke connect, temporary on database twinbox_notification from public;
grant connect on database twinbox_notification to twinbox_notification;

create role twinbox_order_owner login password 'order_owner' connection limit 5;
create role twinbox_order login password 'order' connection limit 20;
create database twinbox_order owner twinbox_order_owner;
revoke connect, temporary on database twinbox_order from public;
grant connect on database twinbox_order to twinbox_order;

create role twinbox_payments_owner login password 'payments_owner' connection limit 5;
create role twinbox_payments login password 'payments' connection limit 20;
create database twinbox_payments owner twinbox_payments_owner;
revoke connect, temporary on database twinbox_payments from public;
grant connect on database twinbox_payments to twinbox_payments;

create role twinbox_ledger_owner login password 'ledger_owner' connection limit 5;
create role twinbox_ledger login password 'ledger' connection limit 20;
create database twinbox_ledger owner twinbox_ledger_owner;
revoke connect, temporary on database twinbox_ledger from public;
grant connect on database twinbox_ledger to twinbox_ledger;
