package e2e

import (
	"flag"
	"testing"

	"example.com/twinbox/internal/service"
	"example.com/twinbox/test/kafkatest"
)

func TestMain(m *testing.M) {
	service.StartTracing()
	_ = flag.Set("test.parallel", "4") // each is a whole system, with leases of seconds
	kafkatest.Main(m)
}
