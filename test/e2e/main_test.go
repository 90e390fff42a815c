package e2e

import (
	"flag"
	"testing"

	"example.com/twinbox/internal/service"
	"example.com/twinbox/test/kafkatest"
)

func TestMain(m *testing.M) {
	service.StartTracing()
	parallel := "4" // each is a whole system, with leases of seconds
	if kafkatest.IsReal() {
		parallel = "3" // and a broker
	}
	_ = flag.Set("test.parallel", parallel)
	kafkatest.Main(m)
}
