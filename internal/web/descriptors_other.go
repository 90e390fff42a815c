//go:build !unix

package web

// Descriptors returns how many files and connections this process may have open, if that is limited.
func Descriptors() int { return 1024 }
