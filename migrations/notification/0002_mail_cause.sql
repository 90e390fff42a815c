-- +goose Up
alter table mail
    add column correlation_id text,
    add column traceparent    text,
    add column tracestate     text;
comment on column mail.correlation_id is 'Of the event that the mail is owed for. The sender works later and elsewhere: what it says about the mail still belongs to the same request. Null: of a mail from before the column.';
comment on column mail.traceparent is 'The trace of that event, with tracestate.';

-- +goose Down
alter table mail drop column correlation_id, drop column traceparent, drop column tracestate;
