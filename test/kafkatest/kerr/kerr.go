// Package kerr is the protocol's errors, by the names that tests use; see package kfake.
package kerr

import franz "github.com/twmb/franz-go/pkg/kerr"

// Error is one of the protocol's errors.
type Error = franz.Error

// The errors.
var (
	ClusterAuthorizationFailed   = franz.ClusterAuthorizationFailed
	CoordinatorLoadInProgress    = franz.CoordinatorLoadInProgress
	GroupAuthorizationFailed     = franz.GroupAuthorizationFailed
	InvalidProducerEpoch         = franz.InvalidProducerEpoch
	InvalidRecord                = franz.InvalidRecord
	KafkaStorageError            = franz.KafkaStorageError
	LeaderNotAvailable           = franz.LeaderNotAvailable
	NotEnoughReplicas            = franz.NotEnoughReplicas
	NotEnoughReplicasAfterAppend = franz.NotEnoughReplicasAfterAppend
	NotLeaderForPartition        = franz.NotLeaderForPartition
	OffsetOutOfRange             = franz.OffsetOutOfRange
	OutOfOrderSequenceNumber     = franz.OutOfOrderSequenceNumber
	PolicyViolation              = franz.PolicyViolation
	RequestTimedOut              = franz.RequestTimedOut
	TopicAuthorizationFailed     = franz.TopicAuthorizationFailed
	UnknownMemberID              = franz.UnknownMemberID
	UnknownProducerID            = franz.UnknownProducerID
	UnknownServerError           = franz.UnknownServerError
	UnknownTopicOrPartition      = franz.UnknownTopicOrPartition
)
