package kv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// BucketConfig names the bucket of JetStream that an inbox remembers in. Name is required; consumers may share one.
type BucketConfig struct {
	// Name has letters, digits, "-" and "_".
	Name string
	// TTL is how long an id is remembered: longer than the broker may deliver an event again. Default: 24 hours.
	TTL time.Duration
	// Replicas is how many servers have a copy. Default: 1.
	Replicas int
}

// Bucket makes the bucket, or gives an existing one this configuration.
//
// Connect with nats.ReconnectBufSize(-1) and nats.MaxReconnects(-1): a buffer carries out given-up writes after an
// outage, and a connection that was lost for two minutes would be closed for good.
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

// KeyValue is what an inbox needs of [jetstream.KeyValue].
type KeyValue interface {
	Get(ctx context.Context, key string) (jetstream.KeyValueEntry, error)
	Create(ctx context.Context, key string, value []byte, opts ...jetstream.KVCreateOpt) (uint64, error)
	Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error)
	Delete(ctx context.Context, key string, opts ...jetstream.KVDeleteOpt) error
}

// JetStream is a bucket of NATS JetStream as a [Store].
type JetStream struct {
	bucket KeyValue
	ttl    time.Duration
}

// NewJetStream takes a bucket with its ttl: a cache must not remember for longer.
func NewJetStream(bucket KeyValue, ttl time.Duration) *JetStream { return &JetStream{bucket, ttl} }

// TTL implements [Store].
func (s *JetStream) TTL() time.Duration { return s.ttl }

// Get implements [Store].
func (s *JetStream) Get(ctx context.Context, key string) (Entry, error) {
	entry, err := s.bucket.Get(ctx, key)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound): // deleted ones included
		return Entry{}, ErrNotFound
	case err != nil:
		return Entry{}, err
	}
	return Entry{Value: entry.Value(), Revision: entry.Revision(), Created: entry.Created()}, nil
}

// Put implements [Store]. Create, unlike Update, looks through the marker of a deletion.
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

// A server that is one of several has a code of its own for the same refusal.
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
