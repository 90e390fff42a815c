//go:build faults

package ledger

import (
	"pgregory.net/rapid"

	"example.com/twinbox/internal/fault"
)

// armCrashPoint ends the next process that reaches the crash point.
func armCrashPoint(rt *rapid.T, die func()) (disarm func()) {
	point := "inbox." + balanceConsumer + "." + rapid.SampledFrom([]string{
		"handling", "handled", "committed",
	}).Draw(rt, "crash point")
	fault.ArmNth(point, rapid.IntRange(1, 3).Draw(rt, "at hit"), die)
	return func() { fault.Disarm(point) }
}
