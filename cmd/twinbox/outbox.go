package main

// OutboxCommands are "twinbox outbox ...".
type OutboxCommands struct {
	Status         OutboxStatus         `cmd:"" help:"How far each service's events are published, and which keys are parked."`
	Tail           OutboxTail           `cmd:"" help:"The newest events and what became of them."`
	Republish      OutboxRepublish      `cmd:"" help:"Send published events again, with the same ids; consumers skip what they have."`
	Scheduled      OutboxScheduled      `cmd:"" help:"Events that are due later: list them, take one back."`
	Release        OutboxRelease        `cmd:"" help:"Let the relay try a parked key's events again."`
	Topics         OutboxTopics         `cmd:"" help:"Over how many partitions each topic's keys are spread, and which consumer groups are behind."`
	ConfirmRestore OutboxConfirmRestore `cmd:"" help:"Go on with a restored database: take back from the broker the events that it lost."`
	Confirm        OutboxConfirm        `cmd:"" help:"Confirm a topic's new number of partitions, for which the relay waits."`
}
