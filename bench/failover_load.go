package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// load is signups over HTTP, at a steady rate, also while they fail.
type load struct {
	stack   *stack
	target  atomic.Pointer[replica]
	cancel  context.CancelFunc
	signups sync.WaitGroup
	done    chan struct{}
	failed  atomic.Int64
	sent    atomic.Int64
}

// person numbers are given out once per run.
var people atomic.Int64

// startLoad signs up at the rate, at one replica of Customer. Call stop.
func (s *stack) startLoad(ctx context.Context, rate float64, at *replica) *load {
	l := &load{stack: s, done: make(chan struct{})}
	l.target.Store(at)
	ctx, l.cancel = context.WithCancel(ctx)
	go func() {
		defer close(l.done)
		tick := time.NewTicker(time.Duration(float64(time.Second) / rate))
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			l.signups.Go(func() { l.signUp(context.WithoutCancel(ctx)) })
		}
	}()
	return l
}

const signupTimeout = 10 * time.Second

// signUp makes one signup. One that is not answered with 201 does not count: the benchmark does not wait for its event.
func (l *load) signUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, signupTimeout)
	defer cancel()
	l.sent.Add(1)
	begun := time.Now()
	user, err := signUpAt(ctx, l.target.Load().api, people.Add(1))
	if err != nil {
		l.failed.Add(1)
		return
	}
	l.stack.watch.begun(user, begun)
}

func signUpAt(ctx context.Context, api string, n int64) (user string, err error) {
	body, err := json.Marshal(map[string]string{"email": fmt.Sprintf("member-%d@example.org", n), "name": "Ada Lovelace"})
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+api+"/v1/signups", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", fmt.Sprintf("\"failover-%d\"", n))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusCreated {
		return "", fmt.Errorf("sign up: status %d", response.StatusCode)
	}
	var answer struct {
		UserID string `json:"user_id"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return "", fmt.Errorf("read answer: %w", err)
	}
	return answer.UserID, nil
}

// stop ends the load and waits for the signups that are under way. More than one in ten that failed are a broken run.
func (l *load) stop() error {
	l.cancel()
	<-l.done
	l.signups.Wait()
	if failed, sent := l.failed.Load(), l.sent.Load(); failed > sent/10 {
		return fmt.Errorf("%d of %d signups failed", failed, sent)
	}
	return nil
}
