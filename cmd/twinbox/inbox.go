package main

// InboxCommands are "twinbox inbox ...".
type InboxCommands struct {
	Stats  InboxStats  `cmd:"" help:"What waits for each consumer, and what the process that answers has done since it started."`
	Lookup InboxLookup `cmd:"" help:"What became of one event, in every consumer."`
}
