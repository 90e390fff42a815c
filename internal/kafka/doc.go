// Package kafka publishes and consumes through watermill-kafka, and asks a cluster about topics and groups.
//
//	config.go, security.go        settings, each with the harm of a wrong value
//	connection.go, errors.go      connections, and which failures another try may cure
//	marshaler.go                  a message as a record: CloudEvents 1.0, binary mode
//	publisher.go, ends.go         watermill-kafka's Publisher, for many keys at a time
//	consumer.go, claim.go         watermill-kafka's Subscriber, and a partition that it owns
//	point.go, health.go           where a partition begins, and whether a member works
//	cluster.go, fetch.go          questions to a cluster, and reading a log outside all groups
//	topics.go, groups.go          topics, committed offsets and lag
//	owners.go                     the owners of partitions, and a group that lacks some
package kafka
