// Package notification is the service that writes to people.
//
// What it knows, it knows from Customer's events: contacts.go keeps whom it may write to and, for a new user, puts a
// verification mail on the list, in the transaction that records the event. sender.go takes mails off that list:
//
//	pending -> claimed -> submitting -> sent | failed | uncertain
//
// A mail is an effect outside SQL, so no transaction can make it happen exactly once. The list makes it happen at most
// once: a sender that dies before it submits has its claim expire, and another one starts over; one that dies while it
// submits leaves the mail uncertain, for a person to settle, because the server may have taken it.
package notification
