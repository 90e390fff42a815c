package demo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"example.com/twinbox/internal/event"
)

// unverifiableError counts the events without a verdict, where nothing is wrong with the others.
type unverifiableError int64

func (e unverifiableError) Error() string {
	return fmt.Sprintf("nothing is wrong, but %d events could not be verified", int64(e))
}

// ExitCode is that of twinbox verify for a verdict on a part.
func (unverifiableError) ExitCode() int { return 5 }

const shown = 10

func (r *Run) judge(ctx context.Context) error {
	missing := 0
	for _, id := range r.users {
		arrived, err := r.people.hasProfile(ctx, id)
		if err != nil {
			return fmt.Errorf("look for a profile: %w", err)
		}
		if arrived {
			continue
		}
		if missing++; missing <= shown {
			r.say("MISSING            %s", id)
		}
	}
	report, err := r.cfg.Verify(ctx, r.began)
	if err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	all := report.All()
	for _, f := range all.Findings[:min(len(all.Findings), shown)] {
		r.say("%-18s %s of %s: event %s, key %s: %s", f.Kind, f.Rule, f.Subject, f.EventID, f.Key, f.Detail)
	}
	var unverifiable unverifiableError
	for _, u := range all.Unverifiable {
		unverifiable += unverifiableError(u.Events)
		r.say("NOT VERIFIABLE     %d of %s: %s", u.Events, u.Subject, u.Reason)
	}
	switch {
	case missing > 0:
		return fmt.Errorf("%d of what was taken has not arrived; %d findings", missing, len(all.Findings))
	case !all.Clean():
		return errors.New("verify found " + all.Summary())
	case unverifiable > 0:
		return unverifiable
	}
	if now := look(ctx, r.cfg.Services); now.unsure > 0 {
		r.say("%d mails are uncertain: their sender was killed while it handed them over. They are not sent a second time "+
			"unless an operator says so (twinbox mail list).", now.unsure)
	}
	var events, effects, again int64
	for verdict := range maps.Values(report) {
		for _, p := range verdict.Produced {
			if !strings.HasPrefix(p.Topic, event.CopyPrefix) { // copies are no events
				events += p.Published
			}
		}
		for _, c := range verdict.Consumed {
			effects += c.Handled - c.Again
			again += c.Again
		}
	}
	r.say("nothing lost, doubled, altered, invented, reordered: %d events", events)
	r.say("all %d signed up have arrived; consumers handled %d records, each once, and %d more that were sent again",
		len(r.users), effects, again)
	return nil
}
