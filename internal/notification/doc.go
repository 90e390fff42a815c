// Package notification is the service that writes to people.
//
// contacts.go keeps whom it may write to and, for a new user, puts a verification mail on the list, in the transaction
// that records the event. sender.go is the effect of a lease (see internal/lease) that takes mails off that list:
//
//	pending -> claimed -> submitting -> sent | failed | uncertain
//
// A mail is an effect outside SQL, so no transaction can make it happen exactly once. A sender that dies before the
// mail server may have the mail has its lease end, and another one starts over. One that dies later leaves the mail
// uncertain: under MAIL_ON_UNCERTAIN=park a person settles it, and no mail is sent twice; under resend it is sent again
// under the same Message-ID, and none is left out.
package notification
