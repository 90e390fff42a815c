package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/ops/admin/client"
)

// StatusCommand is "twinbox status".
type StatusCommand struct{ Survey }

// Run asks every service why events wait: a row for each cause.
func (c *StatusCommand) Run(ctx context.Context, to *streams) error {
	t := table{columns: []string{"SERVICE", "SINCE", "WHY", "MORE"}, prose: "WHY", omit: []string{"SINCE", "MORE"}}
	return survey(ctx, to, &c.Survey, client.Get(adminapi.StationsPath, nil), func(service string, at adminapi.Stations) {
		if len(at.Causes) == 0 {
			t.add(service, moment(time.Time{}), "All is well.", "")
		}
		for _, cause := range at.Causes {
			t.add(service, moment(cause.Since), cause.What, cause.Command)
		}
	}, &t)
}

// TraceCommand is "twinbox trace".
type TraceCommand struct {
	Operator

	ID  string  `arg:"" name:"id" help:"A user's, an event's or a mail's."`
	Key string  `help:"The key of the event, where its id carries no time (is no UUIDv7)." env:"-"`
	At  instant `help:"About when it was added, instead of its key: RFC 3339, or how long ago, such as 1h or 2d." env:"-" placeholder:"TIME"`
}

// maxTraced is the longest key of an event, in characters.
const maxTraced = 1024

// AfterApply refuses what is no id.
func (c *TraceCommand) AfterApply() error {
	if n := utf8.RuneCountInString(c.ID); n == 0 || n > maxTraced {
		return usage(fmt.Sprintf("an id has 1 to %d characters", maxTraced))
	}
	return nil
}

// Run asks every service, and about what they name.
func (c *TraceCommand) Run(ctx context.Context, to *streams, services []*client.Service) error {
	story, err := client.Story(ctx, services, c.ID, adminapi.GetStoryParams{Key: c.Key, At: c.At.Time})
	switch {
	case len(story.Steps) > 0:
	case err != nil:
		return err
	default:
		return notFound("nothing is known of " + printable(c.ID) + ". " +
			cmp.Or(story.Note, "It never was, or is forgotten since."))
	}
	if story.Note != "" {
		to.warn("%s", story.Note)
	}
	t := table{
		columns: []string{"AT", "STATION", "WHO", "WHAT", "EVENT", "TYPE", "WHERE", "DETAIL"},
		omit:    []string{"DETAIL", "TYPE", "WHERE"},
	}
	for _, s := range story.Steps {
		what := s.Outcome
		if s.Cause != "" {
			what += ", " + s.Cause
		}
		// To the millisecond: the steps of one event follow each other within a few.
		t.add(s.At.UTC().Format(milliseconds), s.Station, cmp.Or(s.Consumer, s.Service), what, s.EventID,
			s.EventType, whereOf(s), detailOf(s))
	}
	return to.reply(err, story, &t)
}

const milliseconds = "2006-01-02T15:04:05.000Z"

// whereOf is where a row or a record lies, or whose dead letter or mail it is.
func whereOf(s adminapi.StoryStep) string {
	switch {
	case s.Station == adminapi.StoryStepStationOutbox:
		return fmt.Sprintf("%s@%d", s.Topic, s.Position)
	case s.Station == adminapi.StoryStepStationDeadLetter:
		return s.Service + "/" + s.Subject // as other commands take it
	case s.Subject != "":
		return s.Subject
	case s.Topic != "" && s.Partition != nil && s.Offset != nil:
		return fmt.Sprintf("%s[%d]@%d", s.Topic, *s.Partition, *s.Offset)
	}
	return ""
}

func detailOf(s adminapi.StoryStep) string {
	switch {
	case s.Detail != "":
		return s.Detail
	case s.Station == adminapi.StoryStepStationRequest && s.CorrelationID != "":
		return "correlation " + s.CorrelationID
	case s.Station == adminapi.StoryStepStationOutbox && s.Version > 0:
		return fmt.Sprintf("version %d of %s", s.Version, s.Key)
	}
	return ""
}

// AuditCommand is "twinbox audit".
type AuditCommand struct {
	Operator `json:"-"`
	Window

	By      string   `json:"by,omitempty" help:"Done by this operator." env:"-" aliases:"operator" placeholder:"NAME"`
	Verb    string   `json:"verb,omitempty" help:"This operation, such as replay, edit, discard, republish, retry." env:"-" aliases:"operation" placeholder:"NAME"`
	Kind    string   `json:"kind,omitempty" help:"Of these, such as dead_letter, mail, outbox_key, consumer or scheduled_event." env:"-" placeholder:"NAME"`
	Subject string   `json:"subject,omitempty" help:"On this subject: a dead letter such as customer/17, a mail, or a key as topic/key." env:"-" placeholder:"ID"`
	Newest  bool     `json:"newest" kong:"-"`
	Limit   positive `json:"limit" default:"100" help:"The newest of each service, 1 to 1000. Default: 100." short:"n" env:"-" placeholder:"N"`
}

// deed is an action with the service it was done in and the name of what it was done to.
type deed struct {
	Service string `json:"service"`
	Ref     string `json:"ref"`
	adminapi.Action
}

// Run asks every service.
func (c *AuditCommand) Run(ctx context.Context, to *streams, services []*client.Service) error {
	asked := *c
	asked.Newest = true
	if ids, of, err := parseIDs([]string{c.Subject}, services); err == nil {
		services = of
		asked.Subject, asked.Kind = strconv.FormatInt(ids[of[0].Name][0], 10), cmp.Or(c.Kind, "dead_letter")
	}
	answers, err := ask(services, call[adminapi.Actions](ctx, client.Get("/admin/v1/audit", asked)))
	if len(answers) == 0 {
		return err
	}
	deeds, more := []deed{}, false
	for _, a := range answers {
		deeds = append(deeds, deedsOf(a.Service, a.Value.Items)...)
		more = more || a.Value.More
	}
	slices.SortStableFunc(deeds, func(a, b deed) int { return a.At.Compare(b.At) })
	t := table{
		columns: []string{"TIME", "SERVICE", "BY", "DID", "KIND", "TO", "COUNT", "REASON"},
		prose:   "REASON", omit: []string{"KIND", "COUNT", "SERVICE", "REASON"}, none: "Nothing was done by hand.\n",
	}
	for _, d := range deeds {
		t.add(moment(d.At), d.Service, d.By, deedOf(d.Action), d.Kind, d.Ref, d.Count, d.Reason)
	}
	err = to.reply(err, map[string]any{"items": deeds, "more": more}, &t)
	if more {
		to.warn("there is more, and older: give --until, or a larger --limit")
	}
	return err
}

func deedsOf(service string, actions []adminapi.Action) []deed {
	deeds := make([]deed, len(actions))
	for i, a := range actions {
		ref := a.Subject
		if id, err := strconv.ParseInt(a.Subject, 10, 64); err == nil && a.Kind == deadletter.Kind {
			ref = letterID(service, id) // as other commands take it
		}
		deeds[i] = deed{service, ref, a}
	}
	return deeds
}

// deedOf says what was done, and how it ended where that is not in the word itself.
func deedOf(a adminapi.Action) string {
	if a.Detail["code"] == "" {
		return a.Verb
	}
	return fmt.Sprintf("%s (%s: %s)", a.Verb, a.Detail["outcome"], a.Detail["code"])
}
