package main

// DLQCommands are "twinbox dlq ...".
type DLQCommands struct {
	List    DLQList    `cmd:"" aliases:"ls" help:"What waits in the dead letters, grouped by error."`
	Show    DLQShow    `cmd:"" aliases:"get" help:"One dead letter and its history."`
	Replay  DLQReplay  `cmd:"" help:"Handle dead letters again: through the inbox, in the order of their key, for their consumer alone."`
	Edit    DLQEdit    `cmd:"" help:"Replace the payload or headers; the original is kept."`
	Discard DLQDiscard `cmd:"" help:"Settle dead letters without handling them."`
	Export  DLQExport  `cmd:"" help:"Write dead letters, whole, one JSON object per line."`
	Import  DLQImport  `cmd:"" help:"Import exported dead letters that are not there yet."`
}
