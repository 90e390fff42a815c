// Package kafka publishes outbox events to Kafka and consumes them for the inbox, both through watermill-kafka.
//
//	config.go     the settings, each with the harm of a wrong value
//	security.go   encryption and login
//	marshaler.go  a message and its record: CloudEvents 1.0, binary mode
//	publisher.go  watermill-kafka's Publisher, for many keys at a time
//	consumer.go   watermill-kafka's Subscriber, as a member of a group
//	claim.go      a partition that the member owns, and its batches
//	point.go      where a partition begins after the database or the broker went back
//	progress.go   whether a partition's handler fails or waits
//	cluster.go    questions to a cluster
//	topics.go     topics and their settings
//	groups.go     a group's lag and the owners of its partitions
//	fetch.go      reads a log outside all groups
package kafka
