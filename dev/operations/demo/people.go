package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
)

// people sign up, each with a unique address and key.
type people struct {
	base, name string
	http       *http.Client
}

const requestTimeout = 10 * time.Second

func newPeople(api string) *people {
	return &people{base: "http://" + api, name: uuid.NewString(), http: &http.Client{
		Timeout: requestTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: requestTimeout},
	}}
}

// signUp signs the nth visitor up and returns the user's id. A repetition changes nothing.
func (p *people) signUp(ctx context.Context, n int) (id string, err error) {
	key := fmt.Sprintf("%s-%d", p.name, n)
	body := fmt.Sprintf(`{"email":"visitor-%s@example.org","name":"Visitor %d"}`, key, n)
	status, said, err := p.call(ctx, http.MethodPost, "/v1/signups", body, key)
	if err == nil && status != http.StatusCreated {
		err = fmt.Errorf("sign up: %d %s", status, said.Code)
	}
	return said.UserID, err
}

func (p *people) hasProfile(ctx context.Context, id string) (bool, error) {
	status, said, err := p.call(ctx, http.MethodGet, "/v1/customers/"+id, "", "")
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

func (p *people) call(ctx context.Context, method, path, body, key string) (status int, said answer, err error) {
	request, err := http.NewRequestWithContext(ctx, method, p.base+path, strings.NewReader(body))
	if err != nil {
		return 0, said, fmt.Errorf("make request: %w", err)
	}
	if key != "" {
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Idempotency-Key", `"`+key+`"`)
	}
	response, err := p.http.Do(request)
	if err != nil {
		return 0, said, fmt.Errorf("call the API: %w", err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(&said); err != nil {
		return 0, said, fmt.Errorf("read answer: %w", err)
	}
	return response.StatusCode, said, nil
}
