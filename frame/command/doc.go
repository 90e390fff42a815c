// Package command runs the commands of an API: in a transaction of their own ([Transaction]), with answers kept for
// retries under an idempotency key ([Transaction.Once]), with another attempt after a lost race ([Retry]), and with
// errors as problems for the client ([Problem]).
//
// The answers are in the table idempotency_key (migrations/customer has it), in the transaction of what they tell of.
package command
