package kafka

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/IBM/sarama"

	"example.com/twinbox/internal/failure"
)

var (
	// ErrClosed is returned by calls on a closed publisher.
	ErrClosed = errors.New("closed")
	// ErrNotSent is about a message after a failed one of its key.
	ErrNotSent = errors.New("not sent: an earlier record failed")
	// ErrTimeout is about a message without an acknowledgement within PublishTimeout.
	ErrTimeout = errors.New("publish timeout")
)

// PublishError lists the messages of a call that failed; the others are acknowledged. A failure that a retry cannot
// change, such as a too large record, has a method Permanent that returns true.
type PublishError struct {
	Topic  string
	Failed map[int]error // index in the call -> why
}

func (e *PublishError) Error() string {
	first := slices.Min(slices.Collect(maps.Keys(e.Failed)))
	return fmt.Sprintf("publish to %s: %d messages failed, first %d: %v", e.Topic, len(e.Failed), first, e.Failed[first])
}

// FailedIndexes returns Failed, for callers that do not import this package.
func (e *PublishError) FailedIndexes() map[int]error { return e.Failed }

// Unwrap returns the failures in the order of the call.
func (e *PublishError) Unwrap() []error {
	errs := make([]error, 0, len(e.Failed))
	for _, i := range slices.Sorted(maps.Keys(e.Failed)) {
		errs = append(errs, e.Failed[i])
	}
	return errs
}

// permanent are the answers that a retry does not change. Operators repair rights and settings.
var permanent = []sarama.KError{
	sarama.ErrMessageSizeTooLarge, sarama.ErrMessageSetSizeTooLarge, sarama.ErrUnsupportedForMessageFormat,
	sarama.ErrUnsupportedCompressionType, sarama.ErrPolicyViolation, sarama.ErrInvalidRecord,
	sarama.ErrDuplicateSequenceNumber, sarama.ErrInvalidTopic, sarama.ErrOffsetMetadataTooLarge,
	sarama.ErrInvalidCommitOffsetSize,
}

var clientErrors = []struct {
	err   error
	class failure.Class
	code  string
}{
	{sarama.ErrOutOfBrokers, failure.Transient, "kafka_out_of_brokers"},
	{sarama.ErrBrokerNotFound, failure.Transient, "kafka_broker_not_found"},
	{sarama.ErrNotConnected, failure.Transient, "kafka_not_connected"},
	{sarama.ErrIncompleteResponse, failure.Transient, "kafka_incomplete_response"},
	{sarama.ErrInsufficientData, failure.Transient, "kafka_incomplete_response"},
	{sarama.ErrControllerNotAvailable, failure.Transient, "kafka_no_controller"},
	{sarama.ErrClosedClient, failure.Cancelled, "kafka_client_closed"},
	{sarama.ErrShuttingDown, failure.Cancelled, "kafka_client_closed"},
	{sarama.ErrConsumerOffsetNotAdvanced, failure.Permanent, damaged},
	{sarama.ErrDecompressedBatchTooLarge, failure.Permanent, damaged},
}

const damaged = "kafka_damaged" // a batch on the log

// classify leaves errors unchanged that failure knows, and unknown ones.
func classify(err error) error {
	if err == nil || failure.Examine(err).Code != failure.CodeUnknown {
		return err
	}
	if answer, is := errors.AsType[sarama.KError](err); is {
		class := failure.Transient
		if slices.Contains(permanent, answer) {
			class = failure.Permanent
		}
		return failure.Mark(err, failure.Verdict{Class: class, Code: fmt.Sprintf("kafka_%d", answer)})
	}
	if _, is := errors.AsType[sarama.PacketDecodingError](err); is {
		return failure.Mark(err, failure.Verdict{Class: failure.Permanent, Code: damaged})
	}
	for _, known := range clientErrors {
		if errors.Is(err, known.err) {
			return failure.Mark(err, failure.Verdict{Class: known.class, Code: known.code})
		}
	}
	return err
}
