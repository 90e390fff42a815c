package demo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"example.com/twinbox/internal/event"
)

// exitPartial is twinbox verify's code for a verdict on a part.
const exitPartial = 5

// VerdictError reports everything that is wrong.
type VerdictError struct {
	Findings     int
	Found        string
	Missing      int   // made and not arrived
	Unverifiable int64 // events
}

func (e *VerdictError) Error() string {
	switch {
	case e.Missing > 0:
		return fmt.Sprintf("%d of what was taken has not arrived; %d findings", e.Missing, e.Findings)
	case e.Findings > 0:
		return "verify found " + e.Found
	}
	return fmt.Sprintf("nothing is wrong, but %d events could not be verified", e.Unverifiable)
}

// ExitCode is that of twinbox verify.
func (e *VerdictError) ExitCode() int {
	if e.Findings+e.Missing > 0 {
		return 1
	}
	return exitPartial
}

func (r *Run) judge(ctx context.Context) error {
	wrong := &VerdictError{}
	for _, id := range r.made {
		arrived, err := r.cfg.Arrived(ctx, id)
		if err != nil {
			return fmt.Errorf("look for what was made: %w", err)
		}
		if arrived {
			continue
		}
		if wrong.Missing++; wrong.Missing <= 10 {
			r.say("MISSING            %s", id)
		}
	}
	var events, effects, again int64
	report, err := r.cfg.Verify(ctx, r.began)
	if err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	wrong.Found = report.All().Summary()
	for _, name := range slices.Sorted(maps.Keys(report)) {
		verdict := report[name]
		for _, p := range verdict.Produced {
			if !strings.HasPrefix(p.Topic, event.CopyPrefix) { // copies are no events
				events += p.Published
			}
		}
		for _, c := range verdict.Consumed {
			effects += c.Handled - c.Again
			again += c.Again
		}
		wrong.Findings += len(verdict.Findings)
		for _, f := range verdict.Findings[:min(len(verdict.Findings), 10)] {
			r.say("%-18s %s, %s of %s: event %s, key %s: %s", f.Kind, name, f.Rule, f.Subject, f.EventID, f.Key, f.Detail)
		}
		for _, u := range verdict.Unverifiable {
			wrong.Unverifiable += u.Events
			r.say("NOT VERIFIABLE     %d of %s: %s", u.Events, u.Subject, u.Reason)
		}
	}
	if wrong.Findings+wrong.Missing > 0 || wrong.Unverifiable > 0 {
		return wrong
	}
	if now := look(ctx, r.cfg.Services); now.unsure > 0 {
		r.say("%d mails are uncertain: their sender was killed while it handed them over. They are not sent a second time "+
			"unless an operator says so (twinbox mail list).", now.unsure)
	}
	r.say("nothing lost, doubled, altered, invented, reordered: %d events", events)
	r.say("all %d %s have arrived; consumers handled %d records, each once, and %d more that were sent again",
		len(r.made), r.cfg.Acted, effects, again)
	return nil
}
