package adminapi_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/ops/admin/adminapi"
)

// One consumer reads the record long after another has handled it.
func TestARecordIsReadWhenItsFirstConsumerReadsIt(t *testing.T) {
	start := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	partition, offset := int32(3), int64(7)
	step := func(after time.Duration, at adminapi.StoryStepStation, service, event string) adminapi.StoryStep {
		s := adminapi.StoryStep{At: start.Add(after), Station: at, Service: service, EventID: event}
		if at == adminapi.StoryStepStationRecord {
			s.Topic, s.Partition, s.Offset = "customer.users.v1", &partition, &offset
		}
		return s
	}
	inOrder := []adminapi.StoryStep{
		step(0, adminapi.StoryStepStationOutbox, "customer", "cause"),
		step(2*time.Millisecond, adminapi.StoryStepStationRecord, "notification", "cause"),
		step(4*time.Millisecond, adminapi.StoryStepStationInbox, "notification", "cause"),
		step(4*time.Millisecond, adminapi.StoryStepStationMail, "notification", "cause"),
		step(9*time.Millisecond, adminapi.StoryStepStationOutbox, "notification", "effect"),
		step(time.Second, adminapi.StoryStepStationInbox, "customer", "cause"),
	}
	late := step(time.Second, adminapi.StoryStepStationRecord, "customer", "cause")
	for _, told := range [][]adminapi.StoryStep{
		append([]adminapi.StoryStep{late}, inOrder...),
		append(slices.Clip(inOrder), late),
	} {
		require.Equal(t, inOrder, adminapi.InOrder(told))
	}
}

func TestAMailThatGoesOnIsToldOfOnce(t *testing.T) {
	at := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	mail := func(after time.Duration, outcome string) adminapi.StoryStep {
		return adminapi.StoryStep{
			At: at.Add(after), Station: adminapi.StoryStepStationMail, Service: "notification", Subject: "mail",
			Outcome: outcome,
		}
	}
	owed, submitting, sent := mail(0, adminapi.Owed), mail(time.Second, "submitting"), mail(2*time.Second, "sent")
	for _, told := range [][]adminapi.StoryStep{{owed, submitting, owed, sent}, {owed, sent, submitting, owed}} {
		require.Equal(t, []adminapi.StoryStep{owed, sent}, adminapi.InOrder(told))
	}
}
