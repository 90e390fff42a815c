package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/examples/ledger"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/servicetest"
	"example.com/twinbox/test/testkit"
)

func TestMain(m *testing.M) { kafkatest.Main(m) }

// state is an account in the answer of a command, or its balance.
type state struct {
	AccountID string `json:"account_id"`
	Balance   int64
	Version   int64
}

func TestMigrateTopicsServe(t *testing.T) {
	t.Parallel()
	var program servicetest.Run = ledger.Service.Main
	environment := []string{
		"DATABASE_URL=" + pgtest.DSN(pgtest.New(t)), // empty: migrating is part of the test
		"KAFKA_BROKERS=" + kafkatest.Brokers(t)[0],
		"ENVIRONMENT=" + strings.ToLower(rand.Text()),
		"HTTP_ADDR=127.0.0.1:0", "ADMIN_ADDR=127.0.0.1:0",
	}
	program.Life(t, environment, "ledger/0001_", "ledger.accounts.v1", nil, func(s servicetest.Serving) {
		accounts := "http://" + s.API + "/v1/accounts"
		account := post(t, accounts, `{"currency":"EUR"}`).AccountID
		post(t, accounts+"/"+account+"/credits", `{"amount":1000,"currency":"EUR","expected_version":1}`)
		post(t, accounts+"/"+account+"/debits", `{"amount":1,"currency":"EUR","expected_version":2}`)
		testkit.Until(t, func() bool {
			status, body := servicetest.Get(t, accounts+"/"+account)
			var read state
			return status == http.StatusOK && json.Unmarshal([]byte(body), &read) == nil &&
				read == state{AccountID: account, Balance: 999, Version: 3}
		})
	})
}

func post(t *testing.T, url, body string) (after state) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewBufferString(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Less(t, response.StatusCode, 300, fmt.Sprint(url, body))
	require.NoError(t, json.NewDecoder(response.Body).Decode(&after))
	return after
}
