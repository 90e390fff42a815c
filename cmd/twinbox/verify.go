package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/ops/admin/client"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/verify"
)

// VerifyCommand is "twinbox verify".
type VerifyCommand struct {
	Operator

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

// AfterApply refuses to verify without a pause.
func (c *VerifyCommand) AfterApply() error {
	if c.Follow && c.Every < time.Second {
		return usage("--every is below 1s")
	}
	return nil
}

// Run asks one service after the other: each proves its own halves of the way. What --follow ends with is the worst
// that was found.
func (c *VerifyCommand) Run(ctx context.Context, to *streams, services []*client.Service) error {
	var worst error
	look := func(write func(*verdicts, *streams)) error {
		all, err := c.ask(ctx, to, services)
		if err != nil {
			return err
		}
		write(&all, to)
		if found := all.err(); worst == nil || exitCode(found) == service.ExitFailure {
			worst = found
		}
		return nil
	}
	var err error
	if c.Follow {
		err = to.again(ctx, c.Every, func() error { return look((*verdicts).writeLine) })
	} else {
		err = look((*verdicts).write)
	}
	return cmp.Or(err, worst)
}

// verdicts are those of the services, by their names, and what is in all of them.
type verdicts struct {
	of  map[string]*verify.Verdict
	all verify.Verdict
}

func (c *VerifyCommand) ask(ctx context.Context, to *streams, services []*client.Service) (v verdicts, err error) {
	v.of = map[string]*verify.Verdict{}
	for _, s := range services {
		show := to.progress(s.Name)
		verdict, err := client.Verify(ctx, s, c.Since.given(), func(line adminapi.Line) {
			switch {
			case line.Done != nil:
				show(*line.Done, 0)
			case line.Suspects != nil:
				to.warn("%s: %d things look wrong and are looked at again after a pause", s.Name, *line.Suspects)
			}
		})
		if err != nil {
			return v, err
		}
		v.of[s.Name] = verdict
		v.all = verify.Verdict{
			At:           verdict.At,
			Produced:     append(v.all.Produced, verdict.Produced...),
			Consumed:     append(v.all.Consumed, verdict.Consumed...),
			Findings:     append(v.all.Findings, verdict.Findings...),
			Unverifiable: append(v.all.Unverifiable, verdict.Unverifiable...),
		}
	}
	return v, nil
}

// err is what the command ends with.
func (v *verdicts) err() error {
	switch {
	case !v.all.Clean():
		return &ending{
			error: fmt.Errorf("%d findings: something is lost, doubled, altered, invented or reordered", len(v.all.Findings)),
			exit:  service.ExitFailure, code: "findings", answered: true,
		}
	case !v.all.Whole():
		return partial(errors.New("nothing is wrong, but not all could be verified"))
	}
	return nil
}

// sentence is the verdict on all of them, by the exit code.
var sentence = map[int]string{
	service.ExitOK:      "nothing is lost, doubled, altered, invented or reordered",
	service.ExitFailure: "something is wrong",
	exitPartial:         "nothing is wrong in what could be verified",
}

func (v *verdicts) write(to *streams) {
	if to.json() {
		to.document(v.of)
		return
	}
	produced := table{
		columns: []string{"TOPIC", "OUTBOX", "ON TOPIC", "AGAIN", "WAITING", "HELD", "DISCARDED", "OF OTHERS"},
	}
	for _, p := range v.all.Produced {
		if !strings.HasPrefix(p.Topic, deadletter.CopyPrefix) || p != (verify.Produced{Topic: p.Topic}) { // no copies
			produced.add(p.Topic, p.Published, p.Records, p.Again, p.Waiting, p.Held, p.Discarded, p.Foreign)
		}
	}
	consumed := table{
		columns: []string{"CONSUMER", "HANDLED", "AGAIN", "PENDING", "DEAD", "IGNORED", "TOPIC"},
	}
	for _, k := range v.all.Consumed {
		consumed.add(k.Consumer, k.Handled, k.Again, k.Pending, k.Dead, k.Ignored, k.Topic)
	}
	found := table{columns: []string{"FINDING", "RULE", "OF", "EVENT", "KEY", "VERSION", "WHAT"}}
	for _, f := range v.all.Findings {
		found.add(f.Kind, f.Rule, f.Subject, f.EventID, f.Key, f.Version, f.Detail)
	}
	unknown := table{columns: []string{"NOT VERIFIABLE", "OF", "WHY"}}
	for _, u := range v.all.Unverifiable {
		unknown.add(u.Events, u.Subject, u.Reason)
	}
	to.show(&produced, &consumed, &found, &unknown)
	to.say("\nverdict: %s, as of %s.", sentence[exitCode(v.err())], moment(v.all.At))
}

// writeLine says them in one line, or as one JSON document in a line.
func (v *verdicts) writeLine(to *streams) {
	if to.json() {
		_ = json.NewEncoder(to).Encode(v.of) // see streams.Write
		return
	}
	var compared, unknown int64
	for _, p := range v.all.Produced {
		compared += p.Published
	}
	for _, k := range v.all.Consumed {
		compared += k.Handled
	}
	for _, u := range v.all.Unverifiable {
		unknown += u.Events
	}
	to.say("%s  %d compared, %d findings, %d not verifiable", moment(v.all.At), compared, len(v.all.Findings), unknown)
}
