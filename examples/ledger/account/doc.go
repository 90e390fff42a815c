// Package account holds the rules of the ledger: accounts, their changes and their events. It imports only the standard
// library: a rule does not know how it is stored or carried.
package account
