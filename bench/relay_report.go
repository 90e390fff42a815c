package main

import "time"

// relayReport is bench/results/relay.json.
type relayReport struct {
	heading

	// OursOverStock is against stock's better case, the smaller backlog; OursOverStockSame against the same backlog.
	OursOverStock     number `json:"ours_over_stock"`
	OursOverStockSame number `json:"ours_over_stock_same_backlog"`
	OursOverCeiling   number `json:"ours_over_ceiling"`
	P50               number `json:"p50_ms"` // commit to acknowledgement at 1,000/s
	P99               number `json:"p99_ms"`
	HistoryRatio      number `json:"history_ratio"`
	ForeignTxRatio    number `json:"foreign_tx_ratio"`
	SignupRatio8      number `json:"signup_ratio_8"`
	SingleRatio8      number `json:"single_insert_ratio_8"`

	evidence
}

func (b *relayBench) report(f facts, quick bool, took time.Duration) *relayReport {
	ratio := func(a, of string) []float64 { return ratios(b.sheet.rounds(a), b.sheet.rounds(of)) }
	goals := []goal{
		newGoal("ours_over_stock", "drain rate, ours over stock", "x", atLeast, 10, ratio("drain.ours", "drain.stock")),
		newGoal("ours_over_ceiling", "drain rate, ours over the ceiling", "", atLeast, 0.6,
			ratio("drain.ours", "drain.ceiling")),
		newGoal("p50_ms", "commit to acknowledgement at 1,000/s, p50", millis, atMost, 5,
			b.sheet.rounds("latency.1000.ours.p50")),
		newGoal("p99_ms", "commit to acknowledgement at 1,000/s, p99", millis, atMost, 25,
			b.sheet.rounds("latency.1000.ours.p99")),
		newGoal("history_ratio", "drain rate behind the larger history over plain", "", atLeast, 0.9,
			ratio("history.large", "history.plain")),
		newGoal("foreign_tx_ratio", "drain rate beside a foreign transaction over plain", "", atLeast, 0.9,
			ratio("history.foreign", "history.plain")),
		newGoal("signup_ratio_8", "signups with outbox over without, 8 clients", "", atLeast, 0.8,
			ratio("signup.8.ours", "signup.8.bare")),
		newGoal("traced_over_untraced", "drain rate, spans to no collector over none", "", atLeast, 0.97,
			ratio("traces.dead", "traces.off")),
	}
	same := summarise(ratio("drain.ours", "drain.stock.same"))
	of := func(i int) number { return goals[i].Median }
	return &relayReport{
		heading:       newHeading("relay", quick, took, b.plan.Rounds),
		OursOverStock: of(0), OursOverStockSame: same.Median, OursOverCeiling: of(1), P50: of(2), P99: of(3),
		HistoryRatio: of(4), ForeignTxRatio: of(5),
		SignupRatio8: of(6), SingleRatio8: summarise(ratio("single.8.ours", "single.8.bare")).Median,
		evidence: evidence{Goals: goals, Machine: f, Plan: b.plan, Groups: b.sheet.measured()},
	}
}

func (r *relayReport) parts() (heading, evidence) { return r.heading, r.evidence }
