package main

// InboxCommands are "twinbox inbox ...".
type InboxCommands struct {
	Stats  InboxStats  `cmd:"" help:"What each consumer has processed."`
	Lookup InboxLookup `cmd:"" help:"What became of one event, in every consumer."`
}
