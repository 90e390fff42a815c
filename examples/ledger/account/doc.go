// Package account holds the rules of the ledger. It imports only the standard library: a rule does not know how it is
// stored.
package account
