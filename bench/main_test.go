package main

import (
	"flag"
	"testing"

	"example.com/twinbox/test/kafkatest"
)

// update rewrites the golden files: go test ./bench -update.
var update = flag.Bool("update", false, "rewrite golden files")

func TestMain(m *testing.M) { kafkatest.Main(m) }
