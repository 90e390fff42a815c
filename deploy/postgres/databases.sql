-- psql runs this as often as it likes: it creates what is missing, and sets rights and limits anew. DATABASES lists the
-- services and the connections that each may open, such as "customer:90 notification:90".
--
-- Each service has a database and two roles. NAME_owner owns the tables and migrates them. NAME serves, and gets its rights
-- from the migrate command. Neither can connect to another database, so no service can read another one's tables.
--
-- Everybody knows the passwords, which are the roles' names: "alter role ... password" before others reach the server. In
-- the whole cluster, only superusers and owners keep the right to connect to postgres and template1.
\getenv databases DATABASES

revoke connect on database postgres, template1 from public;

with service as (
  select split_part(entry, ':', 1) as name, 'twinbox_' || split_part(entry, ':', 1) as serving,
    'twinbox_' || split_part(entry, ':', 1) || '_owner' as owner, split_part(entry, ':', 2)::int as connections
  from regexp_split_to_table(trim(:'databases'), '\s+') as entry
)
select statement from service, lateral (values
  (1, not exists (select from pg_roles where rolname = owner),
    format('create role %I login password %L connection limit 5', owner, name || '_owner')),
  (2, not exists (select from pg_roles where rolname = serving),
    format('create role %I login password %L', serving, name)),
  (3, true, format('alter role %I connection limit %s', serving, connections)),
  (4, not exists (select from pg_database where datname = serving),
    format('create database %I owner %I', serving, owner)),
  (5, true, format('revoke connect, temporary on database %I from public', serving)),
  (6, true, format('grant connect on database %I to %I', serving, serving))
) as step (number, wanted, statement)
where wanted
order by name, number
\gexec
