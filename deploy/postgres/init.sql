-- Runs once, when the volume is empty (make reset empties it). One database and one role per service: that neither
-- reads the other's tables is then not a convention but a missing right.
create role customer login password 'customer';
create database customer owner customer;
revoke connect on database customer from public;

create role notification login password 'notification';
create database notification owner notification;
revoke connect on database notification from public;
