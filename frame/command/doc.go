// Package command is what the commands of an API stand on, whatever they do: a transaction of their own
// ([Transaction]), answers that are kept for retries under an idempotency key ([Transaction.Once]), another attempt for
// one that lost its race ([Retry]), and what their errors are to a client ([Problem]).
//
// The answers are in the table idempotency_key (migrations/customer has it), in the transaction of what they tell of.
package command
