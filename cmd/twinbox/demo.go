package main

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"example.com/twinbox/engine/kafka"
	"example.com/twinbox/internal/services/visitors"
	"example.com/twinbox/ops/admin/client"
	"example.com/twinbox/ops/demo"
)

// DemoCommand is "twinbox demo".
type DemoCommand struct {
	Connection `embed:""`

	Rate    float64       `help:"Sign-ups a second." default:"20" env:"-" placeholder:"N"`
	For     time.Duration `help:"How long people sign up." default:"15s" env:"-" placeholder:"DURATION"`
	Inject  []string      `help:"What goes wrong meanwhile: duplicates (requests and events once more), poison (an event that no consumer can read) or all." enum:"all,duplicates,poison" env:"-" placeholder:"NAME,..."`
	API     string        `help:"Where people sign up. Default: what \"make run\" says in --dir." name:"api" env:"-" placeholder:"HOST:PORT"`
	Kafka   string        `help:"Kafka's brokers, for poison. Default: what \"make run\" says in --dir." env:"-" placeholder:"HOST:PORT,..."`
	ForReal bool          `help:"Do it on a system that is named by its addresses: the users stay there, and each is sent a mail." env:"-"`
}

// Help is shown behind the command's own line.
func (DemoCommand) Help() string {
	return "Signs people up at a rate for a while, says where their events are, and waits until all have arrived. Ends " +
		"with 0 when nothing is lost, doubled, altered, invented or reordered, with 1 when something is, and with 5 when " +
		"not all of it could be verified. \"make demo\" does the same on a system of its own, where services are killed, " +
		"and Kafka and PostgreSQL are taken away.\n\n"
}

// Run plays the demonstration.
func (c *DemoCommand) Run(ctx context.Context, to *streams) error {
	switch {
	case c.Rate <= 0 || c.Rate > demo.MaxRate:
		return usage("--rate is above 0 and at most 1000")
	case c.For < time.Second:
		return usage("--for is below 1s")
	case c.Service != "":
		return usage("--service: a demonstration needs all of them")
	}
	if !c.named() {
		if found, err := client.ReadOperators(c.Dir); err == nil { // else connect says what is wrong
			c.API, c.Kafka = cmp.Or(c.API, found.API), cmp.Or(c.Kafka, found.Kafka)
		}
	} else if !c.ForReal {
		return usage("these may not be services to play with: the users stay there, and each is sent a mail; add --for-real")
	}
	services, err := c.connect()
	if err != nil {
		return err
	}
	if _, err := askWho(ctx, services); err != nil {
		return err
	}
	if c.API == "" {
		return usage("where do people sign up? give it with --api")
	}
	people := visitors.New("http://" + c.API)
	defer people.Close()
	faults, err := c.faults()
	if err != nil {
		return err
	}
	return demo.Play(ctx, demo.Config{
		Services: services, Act: people.SignUp, Acted: "signed up", Arrived: people.HasProfile, Faults: faults, Rate: c.Rate,
		For: c.For, Out: to.out,
	})
}

func (c *DemoCommand) faults() (faults []demo.Fault, err error) {
	wanted := func(name string) bool { return slices.Contains(c.Inject, name) || slices.Contains(c.Inject, "all") }
	if wanted("duplicates") {
		faults = append(faults, demo.Duplicates())
	}
	if !wanted("poison") {
		return faults, nil
	}
	if c.Kafka == "" {
		return nil, usage("poison is laid on a topic: give Kafka's brokers with --kafka")
	}
	return append(faults, demo.Poison(kafka.Config{Brokers: strings.Split(c.Kafka, ",")}, visitors.Poison)), nil
}
