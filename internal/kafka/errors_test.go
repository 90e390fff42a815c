package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/failure"
)

func TestErrorsOfBrokerAndClient(t *testing.T) {
	t.Parallel()
	for class, numbers := range map[failure.Class]string{
		failure.Permanent: `10 12 17 18 28 43 44 46 76 87`,
		failure.Transient: `2 3 5 6 7 8 9 11 13 14 15 16 19 20 22 25 27 29 30 31 32 33 34 41 45 47 48 49 51 52 53 54 56 57
			58 59 60 61 62 63 64 65 66 70 71 72 74 75 77 78 79 80 81 83 88 89 90
			-1 1 4 21 23 24 26 35 36 37 38 39 40 42 50 55 67 68 69 73 82 84 85 86 95 1234`,
	} {
		for number := range strings.FieldsSeq(numbers) {
			n, err := strconv.Atoi(number)
			require.NoError(t, err)
			answer := fmt.Errorf("publish: %w", sarama.KError(int16(n))) //nolint:gosec // written above
			require.Equal(t, failure.Verdict{Class: class, Code: "kafka_" + number}, failure.Examine(classify(answer)))
			require.ErrorIs(t, classify(answer), sarama.KError(int16(n))) //nolint:gosec // written above
		}
	}
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for _, row := range []struct {
		err   error
		class failure.Class
		code  string
	}{
		{fmt.Errorf("connect: %w", sarama.ErrOutOfBrokers), failure.Transient, "kafka_out_of_brokers"},
		{sarama.Wrap(sarama.ErrOutOfBrokers, refused), failure.Transient, failure.CodeNetwork},
		{sarama.Wrap(sarama.ErrOutOfBrokers, context.Canceled), failure.Cancelled, "context_canceled"},
		{sarama.ErrBrokerNotFound, failure.Transient, "kafka_broker_not_found"},
		{sarama.ErrNotConnected, failure.Transient, "kafka_not_connected"},
		{sarama.ErrIncompleteResponse, failure.Transient, "kafka_incomplete_response"},
		{sarama.ErrInsufficientData, failure.Transient, "kafka_incomplete_response"},
		{sarama.ErrControllerNotAvailable, failure.Transient, "kafka_no_controller"},
		{sarama.ErrClosedClient, failure.Cancelled, "kafka_client_closed"},
		{sarama.ErrShuttingDown, failure.Cancelled, "kafka_client_closed"},
		{sarama.ErrConsumerOffsetNotAdvanced, failure.Permanent, "kafka_damaged"},
		{sarama.ErrDecompressedBatchTooLarge, failure.Permanent, "kafka_damaged"},
		{sarama.PacketDecodingError{Info: "x"}, failure.Permanent, "kafka_damaged"},
		{errors.Join(sarama.ErrInvalidRecord, refused), failure.Transient, failure.CodeNetwork},
		{errors.New("another"), failure.Unknown, failure.CodeUnknown},
	} {
		want := failure.Verdict{Class: row.class, Code: row.code}
		require.Equal(t, want, failure.Examine(classify(row.err)), "%v", row.err)
	}
	require.NoError(t, classify(nil))
}

func TestAFailureOfAllPartitionsIsOneLine(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	c := &Consumer{
		cfg: ConsumerConfig{Failed: func(error) {}}, log: slog.New(slog.NewTextHandler(&log, nil)), ctx: t.Context(),
	}
	fail := func(why error) int {
		log.Reset()
		for p := range int32(3) {
			c.trouble(&sarama.ConsumerError{Topic: "topic", Partition: p, Err: why})
		}
		return strings.Count(log.String(), "consume failed")
	}
	require.Equal(t, 1, fail(sarama.ErrNotConnected))
	require.Equal(t, 0, fail(sarama.ErrNotConnected))
	require.Equal(t, 1, fail(sarama.ErrNotLeaderForPartition))
	require.Equal(t, 1, fail(sarama.PacketDecodingError{Info: "damaged"}))
}
