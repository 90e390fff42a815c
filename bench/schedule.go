package main

import (
	"math/rand/v2"
	"time"
)

// schedule returns when each event of an open-loop run is to begin, counted from the run's start: a Poisson process of
// the given rate, drawn before the run. So a system that falls behind gets no fewer events for it, and the time that
// they wait counts. The same seed gives the same schedule.
func schedule(rate float64, length time.Duration, seed uint64) []time.Duration {
	source := rand.New(rand.NewPCG(seed, 0)) // a schedule needs repetition, not secrecy
	var due []time.Duration
	for at := time.Duration(0); ; {
		at += time.Duration(source.ExpFloat64() / rate * float64(time.Second))
		if at >= length {
			return due
		}
		due = append(due, at)
	}
}
