//go:build !unix

package listener

// Descriptors is how many files and connections this process may have open, as far as that is limited.
func Descriptors() int { return 1024 }
