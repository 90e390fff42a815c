//go:build !unix

package web

// Descriptors returns the limit of open files and connections of this process.
func Descriptors() int { return 1024 }
