//go:build !linux && !darwin

package main

import "os"

// columns takes every output for a file.
func columns(*os.File) (width int, isTerminal bool) { return 0, false }
