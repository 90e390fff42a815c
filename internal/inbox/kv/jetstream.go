package kv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// BucketConfig configures a bucket. Name is required; consumers may share one.
type BucketConfig struct {
	// Name has letters, digits, "-" and "_".
	Name string
	// TTL is how long an id is remembered, longer than the broker may redeliver an event. Default: 24 hours.
	TTL time.Duration
	// Replicas is the number of servers with a copy. Default: 1.
	Replicas int
}

// Bucket creates or reconfigures the bucket and returns it as a store.
//
// Connect with nats.ReconnectBufSize(-1) and nats.MaxReconnects(-1). A buffer carries out a given-up write after an
// outage. Without the second, a connection that was lost for two minutes is closed for good.
func Bucket(ctx context.Context, js jetstream.JetStream, cfg BucketConfig) (*JetStream, error) {
	ttl := cmp.Or(cfg.TTL, 24*time.Hour)
	bucket, err := js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: cfg.Name, Description: "ids of events that had their effect", TTL: ttl,
		Storage: jetstream.FileStorage, Replicas: cmp.Or(cfg.Replicas, 1),
	})
	if err != nil {
		return nil, fmt.Errorf("create bucket %s: %w", cfg.Name, err)
	}
	return &JetStream{bucket: bucket, ttl: ttl}, nil
}

// JetStream is a bucket of NATS JetStream as a [Store].
type JetStream struct {
	bucket jetstream.KeyValue
	ttl    time.Duration
}

// TTL implements [Store].
func (s *JetStream) TTL() time.Duration { return s.ttl }

// Get implements [Store].
func (s *JetStream) Get(ctx context.Context, key string) (Entry, error) {
	entry, err := s.bucket.Get(ctx, key)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound): // also of a deleted key
		return Entry{}, ErrNotFound
	case err != nil:
		return Entry{}, err
	}
	return Entry{Value: entry.Value(), Revision: entry.Revision(), Created: entry.Created()}, nil
}

// Put implements [Store]. Create, unlike Update, ignores the marker of a deleted key.
func (s *JetStream) Put(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	var written uint64
	var err error
	if revision == 0 {
		written, err = s.bucket.Create(ctx, key, value)
	} else {
		written, err = s.bucket.Update(ctx, key, value, revision)
	}
	return written, answer(err)
}

// Delete implements [Store].
func (s *JetStream) Delete(ctx context.Context, key string, revision uint64) error {
	return answer(s.bucket.Delete(ctx, key, jetstream.LastRevision(revision)))
}

// answer separates a refusal from a failure. A cluster has its own code for it.
func answer(err error) error {
	var refusal *jetstream.APIError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jetstream.ErrKeyExists), errors.Is(err, jetstream.ErrKeyRevisionMismatch),
		errors.As(err, &refusal) && (refusal.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence ||
			refusal.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant):
		return ErrRevision
	}
	return err
}
