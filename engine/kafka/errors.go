package kafka

import (
	"errors"
	"regexp"

	_ "example.com/twinbox/engine/failure/kafkaerrors" // what a broker's errors mean
)

var (
	// ErrClosed is returned by calls on what is closed.
	ErrClosed = errors.New("closed")
	// ErrInvalidTopic says that a topic is not a name that Kafka takes.
	ErrInvalidTopic = errors.New("invalid topic name")
)

// A topic name as the broker checks it.
var topicName = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,249}$`)

// ValidTopic reports whether Kafka takes the name.
func ValidTopic(name string) bool { return topicName.MatchString(name) && name != "." && name != ".." }
