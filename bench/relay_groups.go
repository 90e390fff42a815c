package main

import "fmt"

const (
	eventsPerSecond = "events/s"
	perSecond       = "tx/s"
	millis          = "ms"
	perEvent        = "per event"
	bytesPerEvent   = "B/event"
	bytesPerTx      = "B/tx"
	perTx           = "per tx"
)

// relayGroups lays out the figures of "bench relay".
func relayGroups() []*group {
	return []*group{
		{
			Title: "Draining a backlog",
			Note:  "300-byte payloads, 500 keys, 6 partitions; from the relay's start to the last acknowledgement",
			Figures: []*figure{
				{ID: "drain.stock.same", Label: "stock, same backlog", Unit: eventsPerSecond},
				{ID: "drain.stock", Label: "stock, a smaller backlog that suits it", Unit: eventsPerSecond},
				{ID: "drain.ours", Label: "ours: outbox.Relay, kafka.Publisher", Unit: eventsPerSecond},
				{ID: "drain.ceiling", Label: "ceiling: same records and publisher, from memory", Unit: eventsPerSecond},
			},
		},
		{
			Title: "Without a broker", Note: "the publisher takes everything at once",
			Figures: []*figure{
				{ID: "alone.stock", Label: "stock", Unit: eventsPerSecond},
				{ID: "alone.ours", Label: "ours", Unit: eventsPerSecond},
			},
		},
		transactionGroup("signup", "Signups with and without the outbox write",
			"the Customer service's transaction; closed loop, no relay; stock on the same driver", writers),
		transactionGroup("single", "Single inserts with and without the outbox write",
			"the smallest transaction there is, so the write weighs most", writers[:2]),
		latencyGroup("p50", "Commit to acknowledgement, p50"),
		latencyGroup("p99", "Commit to acknowledgement, p99"),
		latencyGroup("due50", "Due to acknowledgement, p50"),
		latencyGroup("due99", "Due to acknowledgement, p99"),
		publishedGroup(),
		{
			Title: "Draining ours behind a history, and beside a transaction open in another database",
			Figures: []*figure{
				{ID: "history.plain", Label: "nothing else in the table", Unit: eventsPerSecond},
				{ID: "history.small", Label: "behind the smaller history", Unit: eventsPerSecond},
				{ID: "history.large", Label: "behind the larger history", Unit: eventsPerSecond},
				{ID: "history.foreign", Label: "beside a foreign writing transaction", Unit: eventsPerSecond},
				{ID: "history.stalled", Label: "stock beside a foreign writing transaction", Unit: eventsPerSecond},
			},
		},
		costGroup(),
		{
			Title: "Draining ours, each event of a sampled request",
			Figures: []*figure{
				{ID: "traces.off", Label: "spans go nowhere", Unit: eventsPerSecond},
				{ID: "traces.dead", Label: "spans go to a collector that is down", Unit: eventsPerSecond},
			},
		},
	}
}

// transactionGroup is the transactions per second of one kind of transaction.
func transactionGroup(name, title, note string, kinds []string) *group {
	g := &group{Title: title, Note: note}
	labels := map[string]string{"bare": "no outbox", "ours": "ours", "stock": "stock"}
	for _, clients := range []int{1, 8, 32} {
		for _, kind := range kinds {
			g.Figures = append(g.Figures, &figure{
				ID: fmt.Sprintf("%s.%d.%s", name, clients, kind), Unit: perSecond,
				Label: fmt.Sprintf("%s, %d clients", labels[kind], clients),
			})
		}
	}
	return g
}

// latencyVariants are the relays in the latency groups; stock with its default poll is measured at the lowest rate.
var latencyVariants = []struct {
	name, label string
	rates       []int
}{
	{"ours", "ours", []int{100, 1000}},
	{"keen", "stock, polling every 5 ms", []int{100, 1000}},
	{"stock", "stock, polling every 1 s (default)", []int{100}},
}

func latencyGroup(suffix, title string) *group {
	g := &group{Title: title, Note: "open loop, 16 clients, Poisson arrivals; acknowledged by the broker"}
	for _, v := range latencyVariants {
		for _, rate := range v.rates {
			g.Figures = append(g.Figures, &figure{
				ID:    fmt.Sprintf("latency.%d.%s.%s", rate, v.name, suffix),
				Label: fmt.Sprintf("%s, %d/s", v.label, rate), Unit: millis,
			})
		}
	}
	return g
}

func publishedGroup() *group {
	g := &group{
		Title: "Published in those runs",
		Note:  "less than was due, and no latency above: did not keep up",
	}
	for _, v := range latencyVariants {
		for _, rate := range v.rates {
			g.Figures = append(g.Figures, &figure{
				ID:    fmt.Sprintf("latency.%d.%s.published", rate, v.name),
				Label: fmt.Sprintf("%s, %d/s", v.label, rate), Unit: eventsPerSecond,
			})
		}
	}
	return g
}

func costGroup() *group {
	return &group{
		Title: "What an event costs",
		Note:  "write: the whole signup transaction; relay: while draining",
		Figures: []*figure{
			{ID: "cost.statements.relay.stock", Label: "SQL statements, relay, stock", Unit: perEvent},
			{ID: "cost.statements.relay.ours", Label: "SQL statements, relay, ours", Unit: perEvent},
			{ID: "cost.wal.relay.stock", Label: "WAL, relay, stock", Unit: bytesPerEvent},
			{ID: "cost.wal.relay.ours", Label: "WAL, relay, ours", Unit: bytesPerEvent},
			{ID: "cost.allocations.relay.stock", Label: "allocations, relay without a broker, stock", Unit: perEvent},
			{ID: "cost.allocations.relay.ours", Label: "allocations, relay without a broker, ours", Unit: perEvent},
			{ID: "cost.wal.write.bare", Label: "WAL, write, no outbox", Unit: bytesPerTx},
			{ID: "cost.wal.write.stock", Label: "WAL, write, stock", Unit: bytesPerTx},
			{ID: "cost.wal.write.ours", Label: "WAL, write, ours", Unit: bytesPerTx},
			{ID: "cost.allocations.write.bare", Label: "allocations, write, no outbox", Unit: perTx},
			{ID: "cost.allocations.write.stock", Label: "allocations, write, stock", Unit: perTx},
			{ID: "cost.allocations.write.ours", Label: "allocations, write, ours", Unit: perTx},
		},
	}
}
