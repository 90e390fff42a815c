// Package e2e runs both services from end to end, on a real PostgreSQL and the real Kafka protocol, and again with the
// process dying after every step. Read story_test.go first. Package kafkatest chooses the broker.
package e2e
