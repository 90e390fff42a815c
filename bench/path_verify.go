package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/internal/verify"
)

// verify asks both services for their verdicts: no signup is lost, doubled, altered, invented or reordered between the
// outbox of the one and the inbox of the other, and all of them could be verified.
func (l *ourLine) verify(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, arriveLimit, errors.New("offsets are not committed"))
	defer cancel()
	var signups int64
	for _, n := range l.nodes {
		verdict, err := verdict(ctx, n)
		if err != nil {
			return err
		}
		for _, f := range verdict.Findings {
			err = errors.Join(err, fmt.Errorf("%s, %s of %s, event %s: %s", f.Kind, f.Rule, f.Subject, f.EventID, f.Detail))
		}
		for _, u := range verdict.Unverifiable {
			err = errors.Join(err, fmt.Errorf("%d of %s not verifiable: %s", u.Events, u.Subject, u.Reason))
		}
		if err != nil {
			return err
		}
		for _, topic := range verdict.Produced {
			if topic.Topic == contract.TopicUsers {
				signups += topic.Published
			}
		}
		for _, consumer := range verdict.Consumed {
			signups -= consumer.Handled - consumer.Again
		}
	}
	if signups != 0 {
		return fmt.Errorf("%d more events published than handled", signups)
	}
	return nil
}

// verdict is about all events: none waits for a relay, and each handled one is committed.
func verdict(ctx context.Context, n *eventing.Node) (*verify.Verdict, error) {
	verifier := eventing.NewVerifier(n)
	for {
		verdict, err := verifier.Run(ctx, eventing.Verification{})
		if err != nil {
			return nil, fmt.Errorf("verify: %w", err)
		}
		waiting := int64(0)
		for _, topic := range verdict.Produced {
			waiting += topic.Waiting + topic.Held
		}
		for _, consumer := range verdict.Consumed {
			waiting += consumer.Pending
		}
		if waiting == 0 {
			return verdict, nil
		}
		if err := failure.Sleep(ctx, 200*time.Millisecond); err != nil {
			return nil, err
		}
	}
}
