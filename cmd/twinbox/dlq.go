package main

// DLQCommands are "twinbox dlq ...".
type DLQCommands struct {
	List    DLQList    `cmd:"" aliases:"ls" help:"What waits in the dead letters, grouped by error."`
	Show    DLQShow    `cmd:"" aliases:"get" help:"One dead letter and what was done to it."`
	Replay  DLQReplay  `cmd:"" help:"Handle dead letters again: through the inbox, in the order of their key, for their consumer alone."`
	Edit    DLQEdit    `cmd:"" help:"Put another payload or other headers in the place of those that came; the original is kept."`
	Discard DLQDiscard `cmd:"" help:"Settle dead letters without handling them."`
	Export  DLQExport  `cmd:"" help:"Write dead letters, whole, one JSON object per line."`
	Import  DLQImport  `cmd:"" help:"File exported dead letters that are not there yet."`
}
