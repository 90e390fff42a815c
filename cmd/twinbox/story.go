package main

import (
	"cmp"
	"context"

	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/ops/admin/client"
)

type traceCommand struct {
	ID  string  `arg:"" name:"id" help:"Of a user, an event, a request (X-Request-Id), a trace, a mail or a dead letter (customer/17); the place of a record (topic[partition]@offset), or a mail address."`
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
		to.say("This is a part of the story: a service did not answer.")
	}
	return err
}

type auditList struct {
	Listing
	Window

	By      string `json:"by,omitempty" help:"Done by this operator." env:"-" aliases:"operator" placeholder:"NAME"`
	Verb    string `json:"verb,omitempty" help:"This operation, such as replay, edit, discard, republish, retry." env:"-" aliases:"operation" placeholder:"NAME"`
	Kind    string `json:"kind,omitempty" help:"Of these, such as dead_letter, mail, outbox_key, consumer or scheduled_event." env:"-" placeholder:"NAME"`
	Subject string `json:"subject,omitempty" help:"On this subject: a dead letter such as customer/17, a mail, or a key as topic/key." env:"-" placeholder:"ID"`
	Limit   int    `json:"limit" default:"100" help:"The newest of each service, 1 to 1000. Default: 100." short:"n" env:"-" placeholder:"N"`
}
