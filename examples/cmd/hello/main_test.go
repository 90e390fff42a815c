package main

import (
	"crypto/rand"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/examples/hello"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/servicetest"
)

func TestMain(m *testing.M) { kafkatest.Main(m) }

func TestMigrateTopicsServe(t *testing.T) {
	t.Parallel()
	var program servicetest.Run = hello.Service.Main
	environment := []string{
		"DATABASE_URL=" + pgtest.DSN(pgtest.New(t)), // empty: migrating is part of the test
		"KAFKA_BROKERS=" + kafkatest.Brokers(t)[0],
		"ENVIRONMENT=" + strings.ToLower(rand.Text()),
		"HTTP_ADDR=127.0.0.1:0", "ADMIN_ADDR=127.0.0.1:0",
	}
	reads := []string{"customer.users.v1"}
	program.Life(t, environment, "hello/0001_", "hello.greetings.v1", reads, func(s servicetest.Serving) {
		require.Equal(t, http.StatusNotFound, servicetest.Status(t, "http://"+s.API+"/nothing"))
	})
}
