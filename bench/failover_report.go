package main

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// failoverReport is bench/results/failover.json.
type failoverReport struct {
	heading

	RelayKill       number `json:"relay_kill_p95_ms"`
	RelayRestart    number `json:"relay_restart_p95_ms"`
	RelayFreeze     number `json:"relay_freeze_p95_ms"`
	ConsumerKill    number `json:"consumer_kill_p95_ms"`
	TakeoverPenalty number `json:"takeover_penalty_s"`
	IdleCPU         cpu    `json:"idle_cpu_percent"`
	IdleStatements  rates  `json:"idle_statements_per_s"`

	evidence
}

type cpu struct {
	Customer     number `json:"customer"`
	Notification number `json:"notification"`
	PostgreSQL   number `json:"postgresql"`
}

type rates struct {
	Customer     number `json:"customer"`
	Notification number `json:"notification"`
}

const (
	seconds    = "s"
	ofACore    = "% of a core"
	statements = "statements/s"
)

// failoverGroups lays out the figures of "bench failover".
func failoverGroups() []*group {
	return []*group{
		{
			Title: "Until the next record is published",
			Note:  "two replicas of each service; of signups that came after the fault",
			Figures: []*figure{
				{ID: "relay.kill", Label: "kill -9 of the leading relay", Unit: millis},
				{ID: "relay.restart", Label: "the only one, killed and started: once it answers", Unit: millis},
				{ID: "relay.start", Label: "  that is, after its start", Unit: millis},
				{ID: "relay.freeze", Label: "SIGSTOP of the leading relay", Unit: millis},
			},
		},
		{
			Title: "Until a consumer that was killed consumes again", Note: "from its start, in each of its partitions",
			Figures: []*figure{{ID: "consumer.kill", Label: "kill -9 and start in its place", Unit: millis}},
		},
		{
			Title: "Until the backlog of an outage is gone", Note: "of all consumers, under load; from their start",
			Figures: []*figure{
				{ID: "backlog.stop", Label: "after a stop in good order", Unit: seconds},
				{ID: "backlog.kill", Label: "after kill -9", Unit: seconds},
				{ID: "backlog.penalty", Label: "the difference", Unit: seconds},
			},
		},
		{
			Title: "At rest", Note: "CPU: of a replica, of all of PostgreSQL; statements: of both replicas of a service",
			Figures: []*figure{
				{ID: "idle.cpu.customer", Label: "CPU, customer", Unit: ofACore},
				{ID: "idle.cpu.notification", Label: "CPU, notification", Unit: ofACore},
				{ID: "idle.cpu.postgresql", Label: "CPU, PostgreSQL", Unit: ofACore},
				{ID: "idle.statements.customer", Label: "statements, customer", Unit: statements},
				{ID: "idle.statements.notification", Label: "statements, notification", Unit: statements},
			},
		},
	}
}

// p95 is one value: the 95th percentile of all rounds. None for none.
func p95(rounds []float64) []float64 {
	if len(rounds) == 0 {
		return nil
	}
	took := make([]time.Duration, len(rounds))
	for i, ms := range rounds {
		took[i] = time.Duration(ms * float64(time.Millisecond))
	}
	slices.Sort(took)
	return []float64{milliseconds(percentile(took, 95))}
}

func (b *failoverBench) report(f facts, quick bool, took time.Duration) *failoverReport {
	of := func(id string) []float64 { return b.sheet.rounds(id) }
	lease := milliseconds(b.plan.lease())
	goals := []goal{
		newGoal("relay_kill_p95_ms", "kill -9 of the leading relay, p95", millis, atMost, 1000, p95(of("relay.kill"))),
		newGoal("relay_restart_p95_ms", "the only relay, once it answers again, p95", millis, atMost, 1000,
			p95(of("relay.restart"))),
		newGoal("relay_freeze_p95_ms", "SIGSTOP of the leading relay, p95", millis, atMost, lease+1000,
			p95(of("relay.freeze"))),
		newGoal("consumer_kill_p95_ms", "kill -9 and start of a consumer, p95", millis, atMost, 1000,
			p95(of("consumer.kill"))),
		newGoal("takeover_penalty_s", "backlog after kill -9, over a stop", seconds, atMost, 1, of("backlog.penalty")),
		newGoal("idle_cpu_percent.customer", "CPU at rest, customer", "%", atMost, 0.5, of("idle.cpu.customer")),
		newGoal("idle_cpu_percent.notification", "CPU at rest, notification", "%", atMost, 0.5,
			of("idle.cpu.notification")),
		newGoal("idle_statements_per_s.customer", "statements at rest, customer", "1/s", atMost, 5,
			of("idle.statements.customer")),
		newGoal("idle_statements_per_s.notification", "statements at rest, notification", "1/s", atMost, 5,
			of("idle.statements.notification")),
	}
	at := func(i int) number { return goals[i].Median }
	return &failoverReport{
		heading:   newHeading("failover", quick, took, b.plan.Rounds),
		RelayKill: at(0), RelayRestart: at(1), RelayFreeze: at(2), ConsumerKill: at(3), TakeoverPenalty: at(4),
		IdleCPU:        cpu{at(5), at(6), summarise(of("idle.cpu.postgresql")).Median},
		IdleStatements: rates{at(7), at(8)},
		evidence:       evidence{Goals: goals, Machine: f, Plan: b.plan, Groups: b.sheet.measured()},
	}
}

func (r *failoverReport) parts() (heading, evidence) { return r.heading, r.evidence }

// picture is the report as an SVG.
func (r *failoverReport) picture() []byte {
	c := chart{
		title: "Back after a fault, and at rest",
		note:  pictureNote(r.heading, r.Machine),
		tiles: []tile{
			{format(r.RelayKill) + " ms", "a killed relay is replaced, p95"},
			{format(r.ConsumerKill) + " ms", "a killed consumer is back, p95"},
			{format(r.TakeoverPenalty) + " s", "that a death costs beyond a stop"},
			{format(number(math.Max(float64(r.IdleCPU.Customer), float64(r.IdleCPU.Notification)))) + " %", "of a core at rest"},
		},
	}
	for _, g := range r.Groups {
		for _, unit := range []string{millis, seconds, ofACore, statements} {
			p := panel{title: g.Title, note: fmt.Sprintf("%s; %s", g.Note, unit)}
			for _, f := range g.Figures {
				if f.Unit == unit {
					p.bars = append(p.bars, bar{label: f.Label, unit: f.Unit, class: "ours", summary: f.summary})
				}
			}
			if len(p.bars) > 0 {
				c.panels = append(c.panels, p)
			}
		}
	}
	return c.svg()
}
