package admin

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/internal/ops/admin/adminapi"
)

// Teller returns kind, steps and related ids that a service's own tables know of an id, or of any text. It reads by
// indexes and returns no address, name or payload.
type Teller func(ctx context.Context, id string) (adminapi.Story, error)

func (s handlers) story(ctx context.Context, asked adminapi.StoryQuery) (told adminapi.Story, err error) {
	if s.Tell != nil {
		told, err = s.Tell(ctx, asked.ID)
	}
	if err != nil {
		return told, err
	}
	told.ID = asked.ID
	t := &story{handlers: s, Story: told, asked: asked}
	for _, ask := range []func(context.Context) error{
		t.askOutbox, t.askPosition, t.askInbox, t.askLetters, t.askPlace,
	} {
		if err := ask(ctx); err != nil {
			return t.Story, err
		}
	}
	return t.finish(), nil
}

type story struct {
	handlers
	adminapi.Story
	asked adminapi.StoryQuery
}

func (t *story) add(steps ...adminapi.StoryStep) { t.Steps = append(t.Steps, steps...) }
func (t *story) setKind(kind adminapi.StoryKind) { t.Kind = cmp.Or(t.Kind, kind) }

func (t *story) relate(ids ...string) { t.Related = append(t.Related, ids...) }

func (t *story) askOutbox(ctx context.Context) error {
	found, needsHint, err := readTrace(ctx, t.Pool, t.asked)
	if err != nil {
		return err
	}
	if needsHint {
		t.Note = "The outbox cannot be searched for an id that carries no time: give the key of the event, " +
			"or about when it was added."
	}
	if slices.ContainsFunc(found, func(e entry) bool { return e.Key == t.ID }) {
		t.setKind(adminapi.StoryKindKey)
	}
	asked := map[string]bool{}
	for _, e := range found {
		t.setKind(adminapi.StoryKindEvent)
		step := t.addEvent(e)
		t.relate(e.EventID)
		if strings.EqualFold(e.EventID, t.ID) {
			t.relate(e.Causation)
		}
		subject := e.Topic + "/" + e.Key
		if asked[subject] {
			continue
		}
		asked[subject] = true
		if err := t.addAudit(ctx, step, kindOutboxKey, subject); err != nil {
			return err
		}
	}
	return nil
}

const selectAt = `select event_id::text from public.outbox where position = $1`

func (t *story) askPosition(ctx context.Context) error {
	number, isOwn := strings.CutPrefix(t.ID, t.Service+"@")
	position, err := strconv.ParseInt(number, 10, 64)
	if !isOwn || err != nil {
		return nil
	}
	rows, _ := t.Pool.Query(ctx, selectAt, position)
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("look up position: %w", err)
	}
	if len(found) > 0 {
		t.setKind(adminapi.StoryKindEvent)
	}
	t.relate(found...)
	return nil
}

func (t *story) addEvent(e entry) adminapi.StoryStep {
	step := adminapi.StoryStep{
		At: addedAt(e), Station: adminapi.StoryStepStationOutbox, Outcome: string(e.State), EventID: e.EventID,
		EventType: e.Type, Key: e.Key, Version: e.Version, Position: e.Position, Topic: e.Topic,
		CorrelationID: e.Correlation, CausationID: e.Causation, TraceID: traceID(e.TraceParent),
	}
	if e.Causation == "" {
		request := step
		request.At, request.Station, request.Outcome = e.OccurredAt, adminapi.StoryStepStationRequest, ""
		request.Position, request.Topic = 0, ""
		t.add(request)
	}
	t.add(step)
	return step
}

// addedAt is the time in the id, which no caller sets. A business time in the same millisecond is more exact.
func addedAt(e entry) time.Time {
	id, err := uuid.Parse(e.EventID)
	if err != nil || id.Version() != 7 {
		return e.OccurredAt
	}
	at := time.Unix(id.Time().UnixTime()).UTC()
	if e.OccurredAt.Truncate(time.Millisecond).Equal(at.Truncate(time.Millisecond)) {
		return e.OccurredAt
	}
	return at
}

func traceID(parent string) string {
	if parts := strings.Split(parent, "-"); len(parts) == 4 {
		return parts[1]
	}
	return ""
}

func (t *story) askInbox(ctx context.Context) error {
	found, err := inbox.Lookup(ctx, t.Pool, t.consumerNames(), t.ID)
	for _, f := range found {
		t.setKind(adminapi.StoryKindEvent)
		step := adminapi.StoryStep{
			At: f.ProcessedAt, Station: adminapi.StoryStepStationInbox, Consumer: f.Consumer, Outcome: string(f.Outcome),
			EventID: f.EventID, EventType: f.EventType, CorrelationID: f.Correlation,
		}
		if f.Took != nil {
			step.Detail = fmt.Sprintf("handled in %d ms", *f.Took)
		}
		if f.Topic != "" {
			step.Topic, step.Partition, step.Offset = f.Topic, &f.Partition, &f.Offset
			readAt := f.ProcessedAt
			if f.TakenAt != nil {
				readAt = *f.TakenAt
			}
			t.add(recordOf(step, readAt))
		}
		t.add(step)
	}
	return err
}

func recordOf(step adminapi.StoryStep, at time.Time) adminapi.StoryStep {
	return adminapi.StoryStep{
		At: at, Station: adminapi.StoryStepStationRecord, Outcome: "read", EventID: step.EventID, EventType: step.EventType,
		CorrelationID: step.CorrelationID, Topic: step.Topic, Partition: step.Partition, Offset: step.Offset,
	}
}

// askLetters finds the dead letters of an event, of a dead letter's id, and of a key of any service.
func (t *story) askLetters(ctx context.Context) error {
	var filters []deadletter.Filter
	number, isOwn := strings.CutPrefix(t.ID, t.Service+"/")
	if id, err := strconv.ParseInt(number, 10, 64); isOwn && err == nil {
		filters = append(filters, deadletter.Filter{IDs: []int64{id}, Limit: 1})
	}
	for _, consumer := range t.consumerNames() {
		filters = append(filters, deadletter.Filter{Consumer: consumer, EventID: t.ID})
	}
	for _, filter := range filters {
		letters, err := t.letters.Summaries(ctx, filter)
		if err != nil {
			return err
		}
		for _, l := range letters {
			t.setKind(adminapi.StoryKindEvent)
			t.relate(l.EventID)
			if err := t.addLetter(ctx, l); err != nil {
				return err
			}
		}
	}
	for _, consumer := range t.consumerNames() {
		waiting, err := t.letters.Summaries(ctx, deadletter.Filter{
			Consumer: consumer, Key: t.ID, State: deadletter.Waiting, Limit: maxLimit,
		})
		if err != nil {
			return err
		}
		for _, l := range waiting {
			t.setKind(adminapi.StoryKindKey)
			t.relate(l.EventID)
		}
	}
	return nil
}

var recordPlace = regexp.MustCompile(`^(.+)\[(\d{1,9})\]@(\d{1,18})$`)

const codeOffsetOutOfRange = "kafka_1"

func (t *story) askPlace(ctx context.Context) error {
	parts := recordPlace.FindStringSubmatch(t.ID)
	if parts == nil {
		return nil
	}
	partition, _ := strconv.ParseInt(parts[2], 10, 32)
	offset, _ := strconv.ParseInt(parts[3], 10, 64)
	partitions, err := t.Topics.Partitions(ctx)
	if err != nil || partition >= int64(partitions[parts[1]]) {
		return err
	}
	records, err := t.Records.ReadLog(ctx, parts[1], int32(partition), offset, offset+1)
	switch {
	case failure.Examine(err).Code == codeOffsetOutOfRange:
		t.Note = "The topic does not hold this offset (any more)."
		return nil
	case err != nil:
		return err
	}
	for _, r := range records {
		t.setKind(adminapi.StoryKindEvent)
		// A dead letter without an id has its place in the log instead.
		t.relate(cmp.Or(r.UUID, fmt.Sprintf("%s/%d/%d", parts[1], partition, offset)))
	}
	return nil
}

func (t *story) addLetter(ctx context.Context, l deadletter.Letter) error {
	step := adminapi.StoryStep{
		At: l.FailedAt, Station: adminapi.StoryStepStationDeadLetter, Consumer: l.Consumer,
		Outcome: string(deadletter.Waiting),
		EventID: l.EventID, EventType: l.Type, Key: l.Key.String(), Version: l.Version,
		Topic: l.Topic, Partition: &l.Partition, Offset: &l.Offset, Cause: l.Code, Subject: strconv.FormatInt(l.ID, 10),
		Detail: "attempts: " + strconv.Itoa(l.Attempts),
	}
	if l.Replays > 0 {
		step.Detail += ", failed replays: " + strconv.Itoa(l.Replays)
	}
	if l.Topic != "" {
		t.add(recordOf(step, l.FirstFailedAt))
	}
	t.add(step)
	if !l.SettledAt.IsZero() {
		settled := step
		settled.At, settled.Outcome, settled.Cause, settled.Detail = l.SettledAt, string(l.State), "", l.Outcome
		t.add(settled)
	}
	return t.addAudit(ctx, step, deadletter.Kind, step.Subject)
}

func (t *story) addAudit(ctx context.Context, of adminapi.StoryStep, kind, subject string) error {
	actions, err := audit.Of(ctx, t.Pool, kind, subject)
	for _, a := range actions {
		if a.At.Before(of.At) && kind == kindOutboxKey {
			continue // it was about earlier events of the key
		}
		t.add(adminapi.StoryStep{
			At: a.At, Station: adminapi.StoryStepStationAudit, Consumer: of.Consumer, Outcome: a.Verb, EventID: of.EventID,
			EventType: of.EventType, Key: of.Key, Version: of.Version, Cause: a.Detail["code"], Subject: subject,
			Detail: "by " + a.By + ": " + a.Reason,
		})
	}
	return err
}

func (t *story) finish() adminapi.Story {
	for i := range t.Steps {
		t.Steps[i].Service = t.Service
	}
	t.Steps = adminapi.InOrder(t.Steps)
	t.Related = append([]string{}, t.Related...)
	slices.Sort(t.Related)
	t.Related = slices.DeleteFunc(slices.Compact(t.Related), func(id string) bool { return id == "" || id == t.ID })
	return t.Story
}
