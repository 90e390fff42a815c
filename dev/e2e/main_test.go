package e2e

import (
	"testing"

	"example.com/twinbox/dev/kafkatest"
	"example.com/twinbox/dev/pgtest"
	"example.com/twinbox/internal/service"
)

func TestMain(m *testing.M) {
	service.StartTracing()
	pgtest.Main(kafkatest.With(m), kafkatest.LeakOptions()...)
}
