// Package e2e tells the story of both services from end to end, on a real PostgreSQL and the real Kafka protocol, and
// tells it again with the process dying after every step. It has tests only; story_test.go is the one to read first.
//
// The tests run against the broker that package kafkatest chooses: in process by default, a real Apache Kafka under
// `make test-kafka`.
package e2e
