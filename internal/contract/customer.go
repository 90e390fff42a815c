package contract

import "example.com/twinbox/internal/domain"

// The producing service owns its topic; every service may read it.
const (
	TopicUsers = TopicPrefix + "customer.users.v1"
	TopicMails = TopicPrefix + "notification.mails.v1"
)

// Sources, the ce_source of each producer. An event id is unique among all of them.
const (
	SourceCustomer     = "/twinbox/customer"
	SourceNotification = "/twinbox/notification"
)

// The events, in the order in which a user meets them.
var (
	UserRegistered        = define[domain.UserRegistered](TopicUsers, SourceCustomer, "customer", "user-registered.v1")
	VerificationEmailSent = define[domain.VerificationEmailSent](
		TopicMails, SourceNotification, "notification", "verification-email-sent.v1")
	EmailVerified = define[domain.EmailVerified](TopicUsers, SourceCustomer, "customer", "email-verified.v1")
	UserRenamed   = define[domain.UserRenamed](TopicUsers, SourceCustomer, "customer", "user-renamed.v1")
)
