// Package kafka publishes and consumes through watermill-kafka, and asks a cluster about topics and groups.
//
//	config.go     settings, each with the harm of a wrong value
//	security.go   encryption and login
//	marshaler.go  a message as a record: CloudEvents 1.0, binary mode
//	publisher.go  watermill-kafka's Publisher, for many keys at a time
//	ends.go       where records are on the log
//	errors.go     the failures of a call, and which of them another try may cure
//	consumer.go   watermill-kafka's Subscriber, in a group
//	connection.go its connections, with two limits of time
//	claim.go      a partition that the member owns
//	point.go      where a partition begins
//	progress.go   whether a handler fails
//	cluster.go    questions to a cluster
//	topics.go     topics and their settings
//	groups.go     committed offsets and lag
//	owners.go     the owners of partitions, and a group that lacks some
//	fetch.go      reads a log outside all groups
package kafka
