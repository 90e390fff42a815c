//go:build faults

package relay

import "example.com/twinbox/internal/fault"

func armNth(point string, n int, do func()) { fault.ArmNth(point, n, do) }
