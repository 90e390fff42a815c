package main

import (
	"flag"
	"testing"

	"go.uber.org/goleak"

	"example.com/twinbox/internal/kafkatest"
)

// update rewrites the golden files: go test ./bench -update.
var update = flag.Bool("update", false, "rewrite golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, kafkatest.LeakOptions()...) }
