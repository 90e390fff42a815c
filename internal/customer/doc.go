// Package customer is the service that people sign up with.
//
// Commands (signup.go, users.go) store a user and an event in one transaction. The read side (profile.go) consumes
// those events and Notification's. GET answers from it alone, so a customer is there once the event has come back.
package customer
