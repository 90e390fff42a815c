package kafka

import (
	"errors"
	"fmt"
	"slices"

	"github.com/IBM/sarama"

	"example.com/twinbox/internal/failure"
)

// permanent are the answers that a retry does not change. Others are transient: leaders, groups and quotas change, and
// operators repair rights and settings.
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
