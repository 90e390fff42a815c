//go:build !faults

package outbox

func armNth(string, int, func()) { panic("build with -tags faults") }
