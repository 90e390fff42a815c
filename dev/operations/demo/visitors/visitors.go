// Package visitors has people who sign up for the demonstration (make demo). Only it knows this business.
package visitors

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/event"
)

// Visitors sign up, each with a unique address and key.
type Visitors struct {
	base, name string
	http       *http.Client
}

const requestTimeout = 10 * time.Second

// New returns visitors of the API at a URL.
func New(base string) *Visitors {
	return &Visitors{base: base, name: uuid.NewString(), http: &http.Client{
		Timeout: requestTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: requestTimeout},
	}}
}

// Close closes idle connections.
func (v *Visitors) Close() { v.http.CloseIdleConnections() }

// SignUp signs the nth visitor up and returns the user's id. A repetition changes nothing.
func (v *Visitors) SignUp(ctx context.Context, n int) (id string, err error) {
	key := fmt.Sprintf("%s-%d", v.name, n)
	body := fmt.Sprintf(`{"email":"visitor-%s@example.org","name":"Visitor %d"}`, key, n)
	status, said, err := v.call(ctx, http.MethodPost, "/v1/signups", body, key)
	if err == nil && status != http.StatusCreated {
		err = fmt.Errorf("sign up: %d %s", status, said.Code)
	}
	return said.UserID, err
}

// HasProfile reports whether the user's event has arrived.
func (v *Visitors) HasProfile(ctx context.Context, id string) (bool, error) {
	status, said, err := v.call(ctx, http.MethodGet, "/v1/customers/"+id, "", "")
	switch {
	case err != nil:
		return false, err
	case status == http.StatusOK, status == http.StatusNotFound:
		return status == http.StatusOK, nil
	}
	return false, fmt.Errorf("look for a profile: %d %s", status, said.Code)
}

const maxAnswer = 1 << 20

type answer struct {
	UserID string `json:"user_id"`
	Code   string `json:"code"`
}

func (v *Visitors) call(ctx context.Context, method, path, body, key string) (status int, said answer, err error) {
	request, err := http.NewRequestWithContext(ctx, method, v.base+path, strings.NewReader(body))
	if err != nil {
		return 0, said, fmt.Errorf("make request: %w", err)
	}
	if key != "" {
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Idempotency-Key", `"`+key+`"`)
	}
	response, err := v.http.Do(request)
	if err != nil {
		return 0, said, fmt.Errorf("call the API: %w", err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(&said); err != nil {
		return 0, said, fmt.Errorf("read answer: %w", err)
	}
	return response.StatusCode, said, nil
}

// Poison returns a registration without a user.
func Poison() (event.Event, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return event.Event{}, fmt.Errorf("make poison: %w", err)
	}
	d := contract.UserRegistered.Declaration
	return event.Event{
		ID: id.String(), Source: "/demo", Type: d.Type, Topic: d.Topic, DataSchema: d.DataSchema, Key: uuid.NewString(),
		Version: 1, Time: time.Now().UTC(), Data: []byte(`{"poison":true}`),
	}, nil
}
