// Package contract ties the business events to what is promised about them on the wire: the type, the topic, the
// source and the JSON Schema in api/events.
//
// Both sides check against the same schema: the outbox before it commits an event, the inbox before it applies one. A
// payload that has passed can be decoded into its Go struct and stored by PostgreSQL.
package contract

// Topics. The producing service owns its topic; everybody may read it.
const (
	TopicUsers = "customer.users.v1"
	TopicMails = "notification.mails.v1"
)

// Sources, the ce_source of each producer. An event id is unique within its source.
const (
	SourceCustomer     = "/twinbox/customer"
	SourceNotification = "/twinbox/notification"
)

// Definition is what is promised about one version of one event.
type Definition struct {
	Type      string // ce_type
	Topic     string
	Source    string // ce_source
	SchemaURI string // ce_dataschema, the $id of the schema
	File      string // the schema's path in package api
}

// The events of the house.
var (
	UserRegistered        = define("customer.user-registered.v1", TopicUsers, SourceCustomer, "user-registered.v1")
	UserRenamed           = define("customer.user-renamed.v1", TopicUsers, SourceCustomer, "user-renamed.v1")
	EmailVerified         = define("customer.email-verified.v1", TopicUsers, SourceCustomer, "email-verified.v1")
	VerificationEmailSent = define("notification.verification-email-sent.v1", TopicMails, SourceNotification,
		"verification-email-sent.v1")
)

// All returns every definition, in the order in which a user meets the events.
func All() []Definition {
	return []Definition{UserRegistered, VerificationEmailSent, EmailVerified, UserRenamed}
}

func define(name, topic, source, file string) Definition {
	return Definition{
		Type:      "com.example." + name,
		Topic:     topic,
		Source:    source,
		SchemaURI: "https://example.com/twinbox/events/" + file + ".json",
		File:      "events/" + file + ".json",
	}
}
