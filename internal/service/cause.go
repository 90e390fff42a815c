package service

import (
	"context"
	"time"
)

const (
	// CodeAllWell is the code of a [Cause] that is none: nothing waits that should not.
	CodeAllWell = "all_well"
	// CodeUnknown is the code where nothing was found, and not all could be asked.
	CodeUnknown = "unknown"
)

// A Cause is why a service waits, as one sentence. A service may wait and be ready, and the other way round; of the
// members the readiness report holds the first three.
type Cause struct {
	Code     string             `json:"code"`           // stable, such as dependency_down
	Sentence string             `json:"sentence"`       // for people; nothing secret, and no values of theirs
	Since    time.Time          `json:"since,omitzero"` // zero: not known
	Figures  map[string]float64 `json:"-"`
	Command  string             `json:"-"` // what shows more of it or helps; optional
	At       time.Time          `json:"-"` // when it was worked out
}

// Well reports that nothing waits that should not.
func (c Cause) Well() bool { return c.Code == CodeAllWell }

// causeAge is how old a cause may be: any number of people who look on ask the service once.
const (
	causeAge     = 500 * time.Millisecond
	causeTimeout = 2 * time.Second
)

// Explain adds why the service waits, or that all is well, to the readiness report and to [Admin.Cause]. find must
// return soon after its context has ended. Call it before the listener serves.
func (a *Admin) Explain(find func(ctx context.Context) Cause) {
	a.cause = &shared[Cause]{
		age: causeAge, timeout: causeTimeout + time.Second, // for find to end with what it has
		ask: func(ctx context.Context) (Cause, error) {
			ctx, cancel := context.WithTimeout(ctx, causeTimeout)
			defer cancel()
			found := find(ctx)
			found.At = time.Now().UTC()
			return found, nil
		},
	}
}

// Cause is the present one, at most half a second old. Calls at the same time wait for one answer: it is others' as
// well, and does not end with ctx.
func (a *Admin) Cause(context.Context) Cause {
	found, err := a.cause.get()
	if err != nil {
		return Cause{
			Code: CodeUnknown, At: time.Now().UTC(),
			Sentence: "It is not known whether anything waits: " + err.Error() + ".",
		}
	}
	return found
}
