package main

import (
	"cmp"
	"context"

	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/ops/admin/client"
)

type traceCommand struct {
	ID  string  `arg:"" name:"id" help:"Of a user, an event, a request (X-Request-Id), a trace, a mail or a dead letter (customer/17); a record (topic[partition]@offset), a position of an outbox (customer@17), or a mail address."`
	Key string  `help:"The key of the event, where its id carries no time (is no UUIDv7)." env:"-"`
	At  instant `help:"About when it was added, instead of its key: RFC 3339, or how long ago, such as 1h or 2d." env:"-" placeholder:"TIME"`
}

func (c *traceCommand) Run(ctx context.Context, to *streams, services []*client.Service) error {
	story, err := client.Story(ctx, services, adminapi.StoryQuery{ID: c.ID, Key: c.Key, At: c.At.Time})
	switch {
	case len(story.Steps) == 0 && err != nil:
		return err
	case len(story.Steps) == 0:
		return notFound("nothing is known of " + printable(c.ID) + ". " +
			cmp.Or(story.Note, "It never was, or is forgotten since."))
	case story.Note != "":
		to.warn("%s", story.Note)
	}
	err = partial(err)
	if to.json() {
		to.document(story)
		return err
	}
	to.show(table{view{columns: stepColumns}, values(story).items("steps")})
	if err != nil {
		to.say("This is a part of the story: the error names the service without its part.")
	}
	return err
}
