package notification

import (
	netmail "net/mail"
	"strings"
	"time"

	"example.com/twinbox/internal/config"
	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/domain"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/lease"
	"example.com/twinbox/internal/mail"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/eventing"
)

// Config is Notification's configuration.
type Config struct {
	AdminAddr string `env:"ADMIN_ADDR" envDefault:"127.0.0.1:8082" format:"listen" doc:"listener for /livez, /readyz and /metrics"`

	VerificationSecret config.Secret `env:"VERIFICATION_SECRET,required" min:"32" max:"4096" doc:"signs verification links; the same as Customer's"`
	PublicURL          string        `env:"PUBLIC_URL" envDefault:"http://127.0.0.1:8080" format:"url" doc:"where people reach the Customer API: the beginning of links in mails"`
	LinksFor           time.Duration `env:"VERIFICATION_LINK_TTL" envDefault:"48h" min:"1m" max:"8760h" doc:"how long a link works from when it is sent"`

	SMTP     mail.Config    `envPrefix:"SMTP_"`
	MailFrom string         `env:"MAIL_FROM" envDefault:"Twinbox <no-reply@example.com>" format:"mail" doc:"sender of every mail"`
	Mail     lease.Settings `envPrefix:"MAIL_"`

	eventing.Config
}

// Listeners returns the service's listener.
func (c Config) Listeners() service.Listeners { return service.Listeners{Admin: c.AdminAddr} }

// Topics returns the topics this service writes to.
func (c Config) Topics() []kafka.Topic {
	return c.Config.Topics(contract.TopicMails)
}

// Rules returns all cross checks.
func (c Config) Rules() []config.Rule {
	return append(append(c.Config.Rules(), c.SMTP.Rules(c.Mail, c.DrainFor)...), config.Rule{
		Variable: "MAIL_RETENTION", Holds: c.Mail.Retention == 0 || c.Mail.Retention >= c.Inbox.Retention,
		Text: "must not be shorter than INBOX_RETENTION: a sign-up that is remembered has its mail",
	})
}

// A name or comment in MAIL_FROM may hold another "@".
func (c Config) writer() Writer {
	w := Writer{
		Links:     domain.VerificationKey(c.VerificationSecret),
		PublicURL: strings.TrimRight(c.PublicURL, "/"), LinksFor: c.LinksFor,
	}
	if from, err := netmail.ParseAddress(c.MailFrom); err == nil { // the variable's format has checked it
		w.Host = from.Address[strings.LastIndex(from.Address, "@")+1:]
	}
	return w
}
