package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"

	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/testkit"
)

type assertCollect = assert.CollectT

type client struct {
	base string
	http *http.Client
}

func (h *stack) client() *client {
	var addr string
	for _, entry := range h.customerEnv {
		if value, ok := strings.CutPrefix(entry, "HTTP_ADDR="); ok {
			addr = value
		}
	}
	return &client{base: "http://" + addr, http: &http.Client{
		Timeout:   kafkatest.Patience,
		Transport: &http.Transport{DisableKeepAlives: true},
	}}
}

type response struct {
	Status int
	Body   map[string]any
	raw    string
}

func (c *client) try(ctx context.Context, method, path, body string, headers map[string]string) (response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, strings.NewReader(body))
	if err != nil {
		return response{}, err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return response{}, err
	}
	defer resp.Body.Close()
	var raw bytes.Buffer
	if _, err := raw.ReadFrom(resp.Body); err != nil {
		return response{}, err
	}
	answer := response{Status: resp.StatusCode, raw: raw.String()}
	if strings.Contains(resp.Header.Get("Content-Type"), "json") {
		if err := json.Unmarshal(raw.Bytes(), &answer.Body); err != nil {
			return response{}, fmt.Errorf("read answer: %w", err)
		}
	}
	return answer, nil
}

func (c *client) insist(
	t *testing.T, status int, method, path, body string, headers map[string]string,
) (answer response) {
	t.Helper()
	var err error
	testkit.Until(t, func() bool {
		answer, err = c.try(t.Context(), method, path, body, headers)
		return err == nil && answer.Status == status
	}, "%s %s: last answer %v, %v", method, path, &answer, &err)
	return answer
}

const signUpBody = `{"email":"ada@example.org","name":"Ada"}`

func (c *client) signUp(t *testing.T) response {
	t.Helper()
	return c.insist(t, http.StatusCreated, http.MethodPost, "/v1/signups", signUpBody,
		map[string]string{"Idempotency-Key": `"k1"`})
}

func environment(*testing.T) string { return "e2e-" + uuid.NewString()[:8] }
