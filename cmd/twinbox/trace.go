package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"example.com/twinbox/ops/admin/adminapi"
	"example.com/twinbox/ops/admin/client"
)

// TraceCommand is "twinbox trace".
type TraceCommand struct {
	Operator `embed:""`

	ID  string  `arg:"" name:"id" help:"A user's, an event's or a mail's."`
	Key string  `help:"The key of the event, where its id carries no time (is no UUIDv7)." env:"-"`
	At  instant `help:"About when it was added, instead of its key: RFC 3339, or how long ago, such as 1h or 2d." env:"-" placeholder:"TIME"`
}

// unknownIDError is an id that no service knows.
type unknownIDError struct{ id, note string }

func (e *unknownIDError) Error() string {
	if e.note != "" {
		return "nothing is known of " + e.id + ". " + e.note
	}
	return "nothing is known of " + e.id + ": it never was, or is forgotten since"
}
func (*unknownIDError) ExitCode() int     { return exitNotFound }
func (*unknownIDError) ErrorCode() string { return "not_found" }

// maxTraced is the longest key of an event, in characters.
const maxTraced = 1024

// Run asks every service, and about what they name.
func (c *TraceCommand) Run(ctx context.Context, to streams) error {
	if n := utf8.RuneCountInString(c.ID); n == 0 || n > maxTraced {
		return usage(fmt.Sprintf("an id has 1 to %d characters", maxTraced))
	}
	services, err := c.connect()
	if err != nil {
		return err
	}
	story, err := client.Story(ctx, services, c.ID, adminapi.GetStoryParams{Key: set(c.Key), At: c.At.given()})
	switch {
	case len(story.Steps) == 0 && err != nil:
		return err
	case len(story.Steps) == 0:
		return &unknownIDError{printable(c.ID), story.Note}
	case err != nil:
		err = &partialError{err}
	}
	if c.json() {
		return both(writeJSON(to.out, story), err)
	}
	if story.Note != "" {
		to.warn(story.Note)
	}
	return errors.Join(c.write(to, story), err)
}

func (c *TraceCommand) write(to streams, story adminapi.Story) error {
	t := table{
		columns: []string{"AT", "STATION", "WHO", "WHAT", "EVENT", "TYPE", "WHERE", "DETAIL"},
		omit:    []string{"DETAIL", "TYPE", "WHERE"},
	}
	for _, s := range story.Steps {
		t.add(instantOf(s.At), s.Station, cmp.Or(s.Consumer, s.Service), orNone(whatOf(s)), orNone(s.EventId),
			orNone(s.EventType), orNone(whereOf(s)), orNone(detailOf(s)))
	}
	return c.show(to, &t)
}

// instantOf is a time to the millisecond: the steps of one event follow each other within a few.
func instantOf(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func whatOf(s adminapi.StoryStep) string {
	if s.Cause == "" {
		return s.Outcome
	}
	return s.Outcome + ", " + s.Cause
}

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
	case s.Station == adminapi.StoryStepStationRequest && s.CorrelationId != "":
		return "correlation " + s.CorrelationId
	case s.Station == adminapi.StoryStepStationOutbox && s.Version > 0:
		return fmt.Sprintf("version %d of %s", s.Version, s.Key)
	}
	return ""
}

func orNone(text string) string { return cmp.Or(text, "-") }
