// Package kafkaerrors tells package failure what the answers of a Kafka broker and the errors of its client, sarama,
// mean. To import it is enough.
package kafkaerrors

import (
	"strconv"

	"github.com/IBM/sarama"

	"example.com/twinbox/internal/failure"
)

func init() { failure.Register(failure.Library{Rows: rows, Codes: codesOf, Sentinels: sentinels}) }

// sentinels are errors that are compared, with the codes of their rows.
var sentinels = map[error]string{
	sarama.ErrOutOfBrokers:              "kafka_out_of_brokers",
	sarama.ErrBrokerNotFound:            "kafka_broker_not_found",
	sarama.ErrNotConnected:              "kafka_not_connected",
	sarama.ErrAlreadyConnected:          "kafka_already_connected",
	sarama.ErrClosedClient:              "kafka_client_closed",
	sarama.ErrShuttingDown:              "kafka_client_closed",
	sarama.ErrIncompleteResponse:        "kafka_incomplete_response",
	sarama.ErrInsufficientData:          "kafka_incomplete_response",
	sarama.ErrControllerNotAvailable:    "kafka_no_controller",
	sarama.ErrConsumerRetriesExhausted:  "kafka_retries_exhausted",
	sarama.ErrConsumerOffsetNotAdvanced: "kafka_damaged",
	sarama.ErrDecompressedBatchTooLarge: "kafka_damaged",
	sarama.ErrMessageTooLarge:           "kafka_fetch_too_large",
	sarama.ErrInvalidPartition:          "kafka_no_partition",
}

func codesOf(err error) []string {
	switch known := err.(type) { //nolint:errorlint // failure.Examine unwraps
	case sarama.KError:
		return []string{"kafka_" + strconv.Itoa(int(known))}
	case sarama.PacketDecodingError:
		return []string{"kafka_damaged"}
	}
	return nil
}

// rows are the answers of a broker by their numbers in the protocol, and the errors of its client. What a publisher
// says of a single record goes before them.
var rows = map[string]failure.Class{
	// no broker answers
	"kafka_out_of_brokers kafka_broker_not_found kafka_not_connected kafka_already_connected " +
		"kafka_incomplete_response kafka_no_controller kafka_retries_exhausted": failure.Transient,
	// the client closes when the process stops
	"kafka_client_closed": failure.Cancelled,
	// leaders move from broker to broker:
	// 5 leader, 8 broker, 9 replica, 72 listener, 80 preferred leader, 83 eligible leaders: not available;
	// 6 not the leader; 11 77 epoch of controller or broker; 41 not the controller; 74 75 leader epoch; 78 offset
	"kafka_5 kafka_6 kafka_8 kafka_9 kafka_11 kafka_41 kafka_72 kafka_74 kafka_75 kafka_77 kafka_78 " +
		"kafka_80 kafka_83": failure.Transient,
	// the topic may be about to be created, or its metadata has not spread yet:
	// 3 unknown topic or partition
	"kafka_3 kafka_no_partition": failure.Transient,
	// the cluster is late, short of replicas, or asks to slow down:
	// 7 request timed out, 13 network, 19 20 not enough replicas, 56 57 disk of the broker, 60 reassignment, 89 quota
	"kafka_7 kafka_13 kafka_19 kafka_20 kafka_56 kafka_57 kafka_60 kafka_89": failure.Transient,
	// the group moves from coordinator to coordinator, partitions from member to member:
	// 14 15 16 coordinator, 22 generation, 25 member, 27 rebalance, 79 member id, 81 group is full, 88 unstable offset
	"kafka_14 kafka_15 kafka_16 kafka_22 kafka_25 kafka_27 kafka_79 kafka_81 kafka_88": failure.Transient,
	// the broker has another idea of the producer, which starts anew:
	// 45 sequence, 47 epoch, 48 51 52 transactions, 49 59 producer id, 90 fenced
	"kafka_45 kafka_47 kafka_48 kafka_49 kafka_51 kafka_52 kafka_59 kafka_90": failure.Transient,
	// the fetch session is gone; the next one is not:
	// 70 71 fetch session
	"kafka_70 kafka_71": failure.Transient,
	// a checksum broke on the way, or a clock is wrong, and the next attempt has a new time:
	// 2 corrupt on the way, 32 timestamp
	"kafka_2 kafka_32": failure.Transient,
	// rights and logins are given by an operator; no event is at fault:
	// 29 topic, 30 group, 31 cluster, 53 transactional id, 33 34 54 58 login, 61 to 66 tokens
	"kafka_29 kafka_30 kafka_31 kafka_53 kafka_33 kafka_34 kafka_54 kafka_58 kafka_61 kafka_62 " +
		"kafka_63 kafka_64 kafka_65 kafka_66": failure.Transient,
	// the record is refused, today and tomorrow:
	// 10 18 size, 43 76 format, 44 policy, 87 record
	"kafka_10 kafka_18 kafka_43 kafka_44 kafka_76 kafka_87 kafka_fetch_too_large": failure.Permanent,
	// the name or the size is against the protocol's rules:
	// 17 topic's name, 12 28 offset metadata
	"kafka_17 kafka_12 kafka_28": failure.Permanent,
	// the batch on the log is damaged
	"kafka_damaged": failure.Permanent,
	// the broker has it already: not to be sent again:
	// 46 duplicate
	"kafka_46": failure.Permanent,
	// wrong settings, wrong version, or a broker that does not know either:
	// -1 the broker does not know; 1 offset out of range; 4 21 23 24 26 35 37 to 40 42 50 55 67 request or settings;
	// 36 68 69 73 84 85 86 administration; 82 another process with the same instance id; 95 update version
	"kafka_-1 kafka_1 kafka_4 kafka_21 kafka_23 kafka_24 kafka_26 kafka_35 kafka_36 kafka_37 " +
		"kafka_38 kafka_39 kafka_40 kafka_42 kafka_50 kafka_55 kafka_67 kafka_68 kafka_69 kafka_73 " +
		"kafka_82 kafka_84 kafka_85 kafka_86 kafka_95": failure.Unknown,
}
