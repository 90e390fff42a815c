// Package customer is the service that people sign up with.
//
// It has a write side, a read side, and nothing in between but events. Commands (signup.go, users.go) lock
// a user, apply a rule of package domain and store the user and the event in one transaction, through the outbox. The
// read side (profile.go) is a consumer of those same events and of Notification's; GET answers from it alone, so a
// customer is there once the event has come back.
//
// app.go joins it all: what runs, and in which order it stops.
package customer
