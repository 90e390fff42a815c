package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"example.com/twinbox/engine/deadletter"
	"example.com/twinbox/engine/verify"
	"example.com/twinbox/frame/service"
	"example.com/twinbox/ops/admin/adminapi"
	"example.com/twinbox/ops/admin/client"
)

// VerifyCommand is "twinbox verify".
type VerifyCommand struct {
	Operator `embed:""`

	Since  instant       `help:"Leave out events from before this time: RFC 3339, or how long ago, such as 1h or 2d. Default: all that is kept." env:"-" placeholder:"TIME"`
	Follow bool          `help:"Verify again and again, until Ctrl-C: a line for each verdict, as a job." short:"f" env:"-"`
	Every  time.Duration `help:"With --follow: how often." default:"1m" env:"-" placeholder:"DURATION"`
}

// Help is shown behind the command's own line.
func (VerifyCommand) Help() string {
	return "Compares what each service wrote with its topics, and those with what each consumer remembers. " +
		"Ends with 0 when nothing is wrong, with 1 when something is, and with 5 when nothing is wrong but not all of it " +
		"could be verified; --since leaves out what outbox, topic or inbox no longer have.\n\n"
}

// findingsError says that something is wrong.
type findingsError struct{ n int }

func (e *findingsError) Error() string {
	return fmt.Sprintf("%d findings: something is lost, doubled, altered, invented or reordered", e.n)
}
func (*findingsError) ExitCode() int     { return service.ExitFailure }
func (*findingsError) ErrorCode() string { return "findings" }

// Run asks one service after the other: each proves its own halves of the way.
func (c *VerifyCommand) Run(ctx context.Context, to streams) error {
	if c.Follow && c.Every < time.Second {
		return usage("--every is below 1s")
	}
	services, err := c.connect()
	if err != nil {
		return err
	}
	if !c.Follow {
		verdicts, err := c.ask(ctx, to, services)
		if err != nil {
			return err
		}
		return both(c.write(to, verdicts), verdicts.err())
	}
	return c.follow(ctx, to, services)
}

// follow says each verdict in a line. A service that is away is said so, and does not end it; what it ends with is the
// worst that was found.
func (c *VerifyCommand) follow(ctx context.Context, to streams, services []*client.Service) (worst error) {
	tick := time.NewTicker(c.Every)
	defer tick.Stop()
	for {
		verdicts, err := c.ask(ctx, to, services)
		switch code := exitCode(err); {
		case ctx.Err() != nil:
			return worst
		case code == service.ExitUsage || code == exitRefused:
			return err
		case err != nil:
			to.warn(err.Error())
		default:
			if err := c.line(to, verdicts); err != nil {
				return err
			}
			if found := verdicts.err(); worst == nil || exitCode(found) == service.ExitFailure {
				worst = found
			}
		}
		select {
		case <-ctx.Done():
			return worst
		case <-tick.C:
		}
	}
}

// verdicts are those of the services, in their order.
type verdicts []answerOf[*verify.Verdict]

func (c *VerifyCommand) ask(ctx context.Context, to streams, services []*client.Service) (all verdicts, err error) {
	for _, s := range services {
		p := to.progress(s.Name)
		verdict, err := client.Verify(ctx, s, c.Since.given(), func(line adminapi.VerifyLine) {
			switch {
			case line.Done != nil:
				p.show(*line.Done)
			case line.Suspects != nil:
				p.end()
				to.warn(fmt.Sprintf("%s: %d things look wrong and are looked at again after a pause", s.Name, *line.Suspects))
			}
		})
		p.end()
		if err != nil {
			return nil, err
		}
		all = append(all, answerOf[*verify.Verdict]{s, verdict})
	}
	return all, nil
}

// err is what the command ends with.
func (v verdicts) err() error {
	findings, whole := 0, true
	for _, a := range v {
		findings += len(a.value.Findings)
		whole = whole && a.value.Whole()
	}
	switch {
	case findings > 0:
		return &findingsError{findings}
	case !whole:
		return &partialError{errors.New("nothing is wrong, but not all could be verified")}
	}
	return nil
}

func (v verdicts) sentence() string {
	switch code := exitCode(v.err()); code {
	case service.ExitOK:
		return "verdict: nothing is lost, doubled, altered, invented or reordered"
	case exitPartial:
		return "verdict: nothing is wrong in what could be verified"
	}
	return "verdict: something is wrong"
}

// write shows the verdicts.
func (c *VerifyCommand) write(to streams, all verdicts) error {
	if c.json() {
		document := map[string]any{}
		for _, a := range all {
			document[a.service.Name] = a.value
		}
		return writeJSON(to.out, document)
	}
	produced := table{columns: []string{
		"TOPIC", "OUTBOX", "ON TOPIC", "AGAIN", "WAITING", "HELD", "DISCARDED", "OF OTHERS",
	}, omit: []string{"AGAIN", "DISCARDED", "OF OTHERS", "HELD"}}
	consumed := table{
		columns: []string{"CONSUMER", "HANDLED", "AGAIN", "PENDING", "DEAD", "IGNORED", "TOPIC"},
		omit:    []string{"TOPIC", "AGAIN", "IGNORED"},
	}
	found := table{
		columns: []string{"FINDING", "RULE", "OF", "EVENT", "KEY", "VERSION", "WHAT"}, wraps: "WHAT",
	}
	unknown := table{columns: []string{"NOT VERIFIABLE", "OF", "WHY"}, wraps: "WHY"}
	for _, a := range all {
		for _, p := range a.value.Produced {
			if strings.HasPrefix(p.Topic, deadletter.CopyPrefix) && p == (verify.Produced{Topic: p.Topic}) {
				continue // no copies
			}
			produced.add(p.Topic, p.Published, p.Records, p.Again, p.Waiting, p.Held, p.Discarded, p.Foreign)
		}
		for _, k := range a.value.Consumed {
			consumed.add(k.Consumer, k.Handled, k.Again, k.Pending, k.Dead, k.Ignored, k.Topic)
		}
		for _, f := range a.value.Findings {
			found.add(f.Kind, f.Rule, f.Subject, cmp.Or(f.EventID, "-"), cmp.Or(f.Key, "-"), f.Version, f.Detail)
		}
		for _, u := range a.value.Unverifiable {
			unknown.add(u.Events, u.Subject, u.Reason)
		}
	}
	for _, t := range []*table{&produced, &consumed, &found, &unknown} {
		if len(t.rows) == 0 {
			continue
		}
		if err := c.show(to, t); err != nil {
			return err
		}
		if err := to.say(""); err != nil {
			return err
		}
	}
	return to.say("%s, as of %s.", all.sentence(), moment(all[0].value.At))
}

// line says a verdict in one line, or as one JSON document in a line.
func (c *VerifyCommand) line(to streams, all verdicts) error {
	if c.json() {
		document := map[string]*verify.Verdict{}
		for _, a := range all {
			document[a.service.Name] = a.value
		}
		if err := json.NewEncoder(to.out).Encode(document); err != nil {
			return &outputError{err}
		}
		return nil
	}
	var compared, findings, unknown int64
	for _, a := range all {
		findings += int64(len(a.value.Findings))
		for _, p := range a.value.Produced {
			compared += p.Published
		}
		for _, k := range a.value.Consumed {
			compared += k.Handled
		}
		for _, u := range a.value.Unverifiable {
			unknown += u.Events
		}
	}
	return to.say("%s  %d compared, %d findings, %d not verifiable", moment(all[0].value.At), compared, findings, unknown)
}
