//go:build !unix

package web

// Descriptors returns the process's limit of open files and connections.
func Descriptors() int { return 1024 }
