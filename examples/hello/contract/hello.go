package contract

import (
	"errors"
	"time"

	"github.com/google/uuid"
)

// TopicHello is the topic that Hello writes to, and SourceHello is the ce_source of its events.
const (
	TopicHello  = TopicPrefix + "hello.greetings.v1"
	SourceHello = "/twinbox/hello"
)

var HelloSaid = define[HelloGreeting](TopicHello, SourceHello, "hello", "hello-said.v1")

type HelloGreeting struct {
	GreetingID string    `json:"greeting_id"`
	Text       string    `json:"text"`
	SaidAt     time.Time `json:"said_at"`
}

// Check returns an error for a greeting that Hello would not write.
func (g HelloGreeting) Check() error {
	switch {
	case uuid.Validate(g.GreetingID) != nil:
		return errors.New("greeting_id: is no UUID")
	case g.Text == "":
		return errors.New("text: is empty")
	case g.SaidAt.Year() < 2000 || g.SaidAt.Year() > 2199:
		return errors.New("said_at: is outside the years 2000 to 2199")
	}
	return nil
}

// About returns the greeting's id, which is the event's key, and its time.
func (g HelloGreeting) About() (key string, at time.Time) { return g.GreetingID, g.SaidAt }
