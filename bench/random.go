package main

import (
	"crypto/rand"
	"strings"
)

// randomText keeps this run's topics apart from those of another on the same broker.
func randomText() string { return strings.ToLower(rand.Text()[:8]) }
