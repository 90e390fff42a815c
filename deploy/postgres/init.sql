-- Runs once, when the volume is empty (make reset empties it). One database and one role per service: that neither
-- reads the other's tables is then not a convention but a missing right.
create role twinbox_customer login password 'customer';
create database twinbox_customer owner twinbox_customer;
revoke connect on database twinbox_customer from public;

create role twinbox_notification login password 'notification';
create database twinbox_notification owner twinbox_notification;
revoke connect on database twinbox_notification from public;
