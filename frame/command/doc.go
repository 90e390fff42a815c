// Package command is what the commands of an API stand on, whatever they do: a transaction of their own
// ([Transaction]), another attempt for one that lost its race ([Retry]), answers that are kept for retries under an
// idempotency key ([Claim]), and what their errors are to a client ([Problem]).
//
// The answers are in the table idempotency_key (migrations/customer has it), in the transaction of what they tell of.
package command
