package service

import (
	"context"
	"time"
)

// CodeUnknown is the code of [Unknown].
const CodeUnknown = "unknown"

// A Cause is one reason why events wait or may be lost. No text holds a secret or personal data.
type Cause struct {
	Code    string    `json:"code"`           // stable
	What    string    `json:"what"`           // one sentence with the figures, for people
	Since   time.Time `json:"since,omitzero"` // zero: unknown
	Means   string    `json:"means"`          // for requests and events
	Do      string    `json:"do"`
	Command string    `json:"command,omitempty"`
	Details string    `json:"details,omitempty"`
	Station string    `json:"station,omitempty"` // such as inbox/customer.profile; empty: everywhere
	Stops   bool      `json:"stops"`             // no event passes
}

const (
	causeAge     = 500 * time.Millisecond
	causeTimeout = 2 * time.Second
)

// Explain adds the causes to the readiness report and to [Admin.Causes]. find returns the worst first, soon after its
// context has ended. Call Explain before Serve.
func (a *Admin) Explain(find func(ctx context.Context) []Cause) {
	a.causes = &Shared[[]Cause]{
		Age: causeAge, Timeout: causeTimeout + time.Second, // find ends with the causes that it has
		Ask: func(ctx context.Context) ([]Cause, error) {
			ctx, cancel := context.WithTimeout(ctx, causeTimeout)
			defer cancel()
			return find(ctx), nil
		},
	}
}

// Causes returns the causes that hold, the worst first, at most half a second old. None: all is well.
func (a *Admin) Causes() []Cause {
	found, err := a.causes.Get()
	if err != nil {
		return []Cause{Unknown(err)}
	}
	return append([]Cause{}, found...)
}

// Unknown returns the cause for a question without an answer.
func Unknown(err error) Cause {
	return Cause{
		Code: CodeUnknown, What: "Not everything is known.", Means: "A cause may hold that is not listed here.",
		Do: "Ask again. If it stays, follow the details.", Details: err.Error(), Station: CodeUnknown,
	}
}
