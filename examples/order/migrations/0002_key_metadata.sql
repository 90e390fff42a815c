-- +goose Up
alter table public.idempotency_key add column metadata jsonb;
comment on column public.idempotency_key.metadata is 'What the command put beside its answer, for those who look here and for its retries. Null: nothing. Never what people wrote.';

-- +goose Down
alter table public.idempotency_key drop column metadata;
