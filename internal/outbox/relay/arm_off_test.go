//go:build !faults

package relay

func armNth(string, int, func()) { panic("build with -tags faults") }
