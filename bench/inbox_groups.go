package main

import "fmt"

const recordsPerSecond = "records/s"

// inboxGroups lays out the figures of "bench inbox".
func inboxGroups() []*group {
	groups := []*group{
		rateGroup(1, "1 partition"), rateGroup(12, "12 partitions"), rateGroup(48, "48 partitions"),
		duplicateGroup(50, "Half of the records are redeliveries"),
		duplicateGroup(100, "All records are redeliveries"),
		{
			Title: "Behind a history",
			Note:  "ours, batch 200, versioned, 12 partitions; a partition per day, and versions of past keys",
			Figures: []*figure{
				{ID: "history.plain", Label: "no history", Unit: recordsPerSecond},
				{ID: "history.full", Label: "behind the whole history", Unit: recordsPerSecond},
				{ID: "history.plain.again", Label: "no history, later", Unit: recordsPerSecond},
				{ID: "history.dropped", Label: "after a day of it was dropped", Unit: recordsPerSecond},
			},
		},
	}
	cost := &group{Title: "What a record costs", Note: "write-ahead log, 12 partitions"}
	for _, v := range inboxVariants {
		cost.Figures = append(cost.Figures, &figure{ID: "cost.wal." + v.name, Label: v.label, Unit: "B/record"})
	}
	return append(groups, cost)
}

// rateGroup is every variant at a number of partitions.
func rateGroup(partitions int, title string) *group {
	g := &group{Title: title, Note: "1 % redeliveries; from the first call of the handler to the last commit"}
	for _, v := range inboxVariants {
		if v.once && partitions != inboxPartitions {
			continue
		}
		g.Figures = append(g.Figures, &figure{
			ID: fmt.Sprintf("rate.%d.%s", partitions, v.name), Label: v.label, Unit: recordsPerSecond,
		})
	}
	return g
}

func duplicateGroup(percent int, title string) *group {
	g := &group{Title: title, Note: "12 partitions"}
	for _, name := range duplicateVariants {
		v := inboxVariantOf(name)
		g.Figures = append(g.Figures, &figure{
			ID: fmt.Sprintf("duplicates.%d.%s", percent, name), Label: v.label, Unit: recordsPerSecond,
		})
	}
	return g
}
