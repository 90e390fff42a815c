package producer

import (
	"errors"

	"github.com/IBM/sarama"
)

var (
	// ErrTimeout is in a [RecordError] whose record was not acknowledged within the publish timeout. The record may be
	// on the log, or may still be appended by a broker that has the request in hand; see the package documentation for
	// why sending it again keeps the order.
	ErrTimeout = errors.New("publish timeout")
	// ErrTooLarge is in a [RecordError] whose record exceeds [kafka.Config.MaxMessageBytes] or the topic's own limit.
	ErrTooLarge = errors.New("record too large")
)

// A RecordError says why one record was not acknowledged.
type RecordError struct {
	Err       error
	permanent bool
	unknown   bool
}

func (e *RecordError) Error() string { return "publish record: " + e.Err.Error() }

// Unwrap returns the cause: one of this package's errors or sarama's.
func (e *RecordError) Unwrap() error { return e.Err }

// Permanent reports whether the record will never be taken as it is.
func (e *RecordError) Permanent() bool { return e.permanent }

// OutcomeUnknown reports whether the record may be on the log although the broker did not acknowledge it.
func (e *RecordError) OutcomeUnknown() bool { return e.unknown }

// verdict is what a broker's answer means for the batch that it answers.
type verdict int

const (
	acknowledged verdict = iota // on the log
	retriable                   // not appended; the same batch may succeed
	uncertain                   // perhaps appended; the same batch must be sent again, or given up as unknown
	badRecord                   // not appended: one of the records is at fault
	badTopic                    // not appended, and no record of this topic will be
	outOfStep                   // not appended: the broker's idea of this producer is another one
)

// judge knows every answer of a produce request. An answer it does not know counts as uncertain, the careful side.
func judge(err sarama.KError) verdict {
	switch err {
	case sarama.ErrNoError, sarama.ErrDuplicateSequenceNumber:
		return acknowledged
	case sarama.ErrNotLeaderForPartition, sarama.ErrLeaderNotAvailable, sarama.ErrUnknownTopicOrPartition,
		sarama.ErrNotEnoughReplicas, sarama.ErrReplicaNotAvailable, sarama.ErrBrokerNotAvailable,
		sarama.ErrFencedLeaderEpoch, sarama.ErrUnknownLeaderEpoch, sarama.ErrThrottlingQuotaExceeded,
		sarama.ErrTopicAuthorizationFailed, sarama.ErrClusterAuthorizationFailed, // an operator gives rights, and takes them
		sarama.ErrInvalidMessage: // "corrupt": a checksum that broke on the way
		return retriable
	case sarama.ErrMessageSizeTooLarge, sarama.ErrMessageSetSizeTooLarge, sarama.ErrInvalidRecord,
		sarama.ErrInvalidTimestamp:
		return badRecord
	case sarama.ErrInvalidTopic, sarama.ErrPolicyViolation, sarama.ErrUnsupportedForMessageFormat,
		sarama.ErrUnsupportedCompressionType:
		return badTopic
	case sarama.ErrOutOfOrderSequenceNumber, sarama.ErrUnknownProducerID, sarama.ErrInvalidProducerEpoch,
		sarama.ErrInvalidProducerIDMapping, sarama.ErrProducerFenced:
		return outOfStep
	}
	return uncertain
}
