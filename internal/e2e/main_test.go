package e2e

import (
	"testing"

	"example.com/twinbox/internal/kafkatest"
	"example.com/twinbox/internal/pgtest"
	"example.com/twinbox/internal/service"
)

func TestMain(m *testing.M) {
	service.StartTracing()
	pgtest.Main(kafkatest.With(m), kafkatest.LeakOptions()...)
}
