package e2e

import (
	"testing"

	"example.com/twinbox/internal/service"
	"example.com/twinbox/test/kafkatest"
)

func TestMain(m *testing.M) {
	service.StartTracing()
	kafkatest.Main(m)
}
