// Package kmsg is the wire protocol of Kafka, by the names that tests use; see package kfake.
package kmsg

import franz "github.com/twmb/franz-go/pkg/kmsg"

// The types.
type (
	ACLOperation     = franz.ACLOperation
	ACLResourceType  = franz.ACLResourceType
	FetchRequest     = franz.FetchRequest
	FetchResponse    = franz.FetchResponse
	HeartbeatRequest = franz.HeartbeatRequest
	JoinGroupRequest = franz.JoinGroupRequest
	Key              = franz.Key

	ListOffsetsRequest  = franz.ListOffsetsRequest
	ListOffsetsResponse = franz.ListOffsetsResponse

	ProduceRequest   = franz.ProduceRequest
	RecordBatch      = franz.RecordBatch
	Request          = franz.Request
	Response         = franz.Response
	SyncGroupRequest = franz.SyncGroupRequest
)

// The values.
const (
	ACLOperationDescribe          = franz.ACLOperationDescribe
	ACLOperationRead              = franz.ACLOperationRead
	ACLResourcePatternTypeLiteral = franz.ACLResourcePatternTypeLiteral
	ACLResourceTypeGroup          = franz.ACLResourceTypeGroup
	ACLResourceTypeTopic          = franz.ACLResourceTypeTopic
	Fetch                         = franz.Fetch
	Heartbeat                     = franz.Heartbeat
	JoinGroup                     = franz.JoinGroup
	ListOffsets                   = franz.ListOffsets
	Metadata                      = franz.Metadata
	OffsetCommit                  = franz.OffsetCommit
	Produce                       = franz.Produce
	SyncGroup                     = franz.SyncGroup
)

// The functions.
var (
	NewFetchResponseTopic          = franz.NewFetchResponseTopic
	NewFetchResponseTopicPartition = franz.NewFetchResponseTopicPartition

	NewListOffsetsResponseTopic          = franz.NewListOffsetsResponseTopic
	NewListOffsetsResponseTopicPartition = franz.NewListOffsetsResponseTopicPartition
)
