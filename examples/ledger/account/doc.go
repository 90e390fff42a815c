// Package account holds the rules of the ledger: what an account is, what may happen to it, and the events that say so.
// It imports nothing but the standard library: a rule does not know how it is stored or carried.
package account
