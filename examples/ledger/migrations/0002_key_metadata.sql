-- +goose Up
alter table idempotency_key add column metadata jsonb;
comment on column idempotency_key.metadata is 'What the command put beside its answer, for those who look here and for its retries. Null: nothing. Never what people wrote.';

-- +goose Down
alter table idempotency_key drop column metadata;
