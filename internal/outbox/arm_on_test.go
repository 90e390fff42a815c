//go:build faults

package outbox

import "example.com/twinbox/internal/fault"

func armNth(point string, n int, do func()) { fault.ArmNth(point, n, do) }
