// Package kafka joins outbox and inbox to Kafka: it publishes and consumes through watermill-kafka, sets up topics and
// asks a cluster what it holds.
//
//	config.go     the settings, each with the harm of a wrong value
//	security.go   encryption and login
//	marshaler.go  a message and its record: CloudEvents 1.0, binary mode
//	publisher.go  watermill-kafka's Publisher, called for many keys at a time
//	consumer.go   watermill-kafka's Subscriber as a member of a group
//	claim.go      a partition that the member owns, and its batches
//	progress.go   how the reading of a partition gets on
//	cluster.go    a question to a cluster, which ends with its context
//	topics.go     the topics, and their settings
//	groups.go     how far a group is behind, and who owns its partitions
//	fetch.go      reads what lies on the log, past all groups
package kafka
