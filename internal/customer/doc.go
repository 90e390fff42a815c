// Package customer is the service that people sign up with.
//
// Commands (signup.go, users.go) lock a user, apply a rule of package domain and store the user and the event in one
// transaction, through the outbox. The read side (profile.go) consumes those same events and Notification's. GET
// answers from it alone, so a customer is there once the event has come back. app.go joins it all.
package customer
