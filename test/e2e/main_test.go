package e2e

import (
	"testing"

	"example.com/twinbox/internal/service"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/pgtest"
)

func TestMain(m *testing.M) {
	service.StartTracing()
	pgtest.Main(kafkatest.With(m), kafkatest.LeakOptions()...)
}
