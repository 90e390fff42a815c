package main

// InboxCommands are "twinbox inbox ...".
type InboxCommands struct {
	Stats  InboxStats  `cmd:"" help:"How far each consumer is behind, and its deliveries in the process that answers."`
	Lookup InboxLookup `cmd:"" help:"What became of one event, in every consumer."`
}
