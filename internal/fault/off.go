//go:build !faults

package fault

// Enabled reports whether crash points are compiled in.
const Enabled = false

// Here marks a crash point. In this build it does nothing.
func Here(string) {}
