package main

// InboxCommands are "twinbox inbox ...".
type InboxCommands struct {
	Stats   Listing      `cmd:"" help:"How far each consumer is behind, what waits for an operator, and the deliveries to the process that answers."`
	Lookup  InboxLookup  `cmd:"" help:"The outcome of one event in every consumer."`
	History InboxHistory `cmd:"" help:"The events of a type that consumers have applied, the newest first. --since and --until are compared with the time inside the event's id."`
}

// InboxLookup is "twinbox inbox lookup".
type InboxLookup struct {
	Listing `json:"-"`

	EventID string `arg:"" name:"event-id" json:"event_id" help:"The event."`
}

// InboxHistory is "twinbox inbox history".
type InboxHistory struct {
	Listing `json:"-"`
	Window

	Type     string `arg:"" json:"type" help:"The type of the events." names:"dlq list: type"`
	Consumer string `json:"consumer,omitempty" help:"Applied by this consumer." env:"-" names:"inbox stats: consumer"`
	Limit    *int   `json:"limit" help:"The newest of each service, 1 to 1000. Default: 100." default:"100" short:"n" env:"-" placeholder:"N"`
}

// ConsumerCommands are "twinbox consumer ...".
type ConsumerCommands struct {
	List   Listing        `cmd:"" help:"The consumers, which of them are paused, by whom and why."`
	Pause  ConsumerChange `cmd:"" post:"/admin/v1/consumers/pause" done:"Paused" would:"pause" thing:"consumer" help:"Pause a consumer: its instances handle no more records, its records wait on the topic."`
	Resume ConsumerChange `cmd:"" post:"/admin/v1/consumers/resume" done:"Resumed" would:"resume" thing:"consumer" help:"Let a paused consumer continue where it stopped."`
}

// ConsumerChange is "twinbox consumer pause" and "... resume".
type ConsumerChange struct {
	Change

	Name string `arg:"" json:"consumer" help:"The consumer, as \"consumer list\" shows it." names:"inbox stats: consumer"`
}
