// Package notification is the service that writes to people.
//
// contacts.go stores a contact and, for a new user, a verification mail, in the event's transaction. sender.go sends
// stored mails, as the effect of a lease (see internal/lease). A mail is uncertain if its sender died when the mail
// server may have had it. Under MAIL_ON_UNCERTAIN=park a person decides, and no mail is sent twice. Under resend it is
// sent again under the same Message-ID, and no mail is lost.
package notification
