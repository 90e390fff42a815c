package admin

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/audit"
	"example.com/twinbox/engine/outbox/operate"
	"example.com/twinbox/frame/web"
	"example.com/twinbox/ops/admin/adminapi"
)

// Topics is what the broker knows of the topics that a service writes to.
type Topics interface {
	// Partitions is how many partitions the topics have, and others that the service wrote to once; those that do not
	// exist are missing.
	Partitions(ctx context.Context, others ...string) (map[string]int32, error)
	// Behind are the consumer groups that have not read a topic to its end, with the number of records before each.
	Behind(ctx context.Context, topic string) (map[string]int64, error)
}

// ListTopics answers GET /admin/v1/outbox/topics.
func (s outboxHandlers) ListTopics(w http.ResponseWriter, r *http.Request) {
	answer(w, r, func(ctx context.Context) (adminapi.Topics, error) {
		recorded, err := operate.TopicPartitions(ctx, s.Pool)
		if err != nil {
			return adminapi.Topics{}, err
		}
		found, err := s.Topics.Partitions(ctx, slices.Collect(maps.Keys(recorded))...)
		if err != nil {
			return adminapi.Topics{}, err
		}
		names := slices.Sorted(maps.Keys(found))
		for _, name := range slices.Sorted(maps.Keys(recorded)) {
			if _, exists := found[name]; !exists {
				names = append(names, name)
			}
		}
		out := adminapi.Topics{Items: make([]adminapi.Topic, len(names))}
		for i, name := range names {
			topic := adminapi.Topic{Topic: name, SpreadOver: recorded[name], Behind: map[string]int64{}}
			if partitions, exists := found[name]; exists {
				topic.Partitions = &partitions
				if topic.Behind, err = s.Topics.Behind(ctx, name); err != nil {
					return adminapi.Topics{}, err
				}
			}
			out.Items[i] = topic
		}
		return out, nil
	})
}

// ConfirmPartitions answers POST /admin/v1/outbox/topics/confirm.
func (s outboxHandlers) ConfirmPartitions(w http.ResponseWriter, r *http.Request) {
	answerChange(w, r, func(
		ctx context.Context, act action, request adminapi.ConfirmPartitionsRequest,
	) (adminapi.Result, error) {
		if err := s.checkDrained(ctx, request.Topic, request.Partitions, value(request.Force)); err != nil {
			return adminapi.Result{}, err
		}
		err := s.change(ctx, act, func(tx pgx.Tx) (audit.Action, error) {
			before, err := operate.ConfirmPartitions(ctx, tx, request.Topic, request.Partitions)
			return audit.Action{
				Verb: "confirm", Kind: kindTopic, Subject: request.Topic,
				Before: fmt.Sprintf("%d partitions", before), After: fmt.Sprintf("%d partitions", request.Partitions),
			}, err
		})
		return adminapi.Result{DryRun: act.dryRun, Count: 1}, err
	})
}

// checkDrained refuses a number of partitions that the topic does not have, and a topic that a group has not read to
// its end.
func (s outboxHandlers) checkDrained(ctx context.Context, topic string, partitions int32, force bool) error {
	found, err := s.Topics.Partitions(ctx, topic)
	if err != nil {
		return err
	}
	have, exists := found[topic]
	switch {
	case !exists:
		return operate.ErrPartitionsUnchanged
	case have != partitions:
		return &web.Error{
			Status: http.StatusConflict, Code: codePartitionCount,
			Detail: fmt.Sprintf("The broker says that the topic has %d partitions, not %d.", have, partitions),
		}
	case force:
		return nil
	}
	behind, err := s.Topics.Behind(ctx, topic)
	if err != nil || len(behind) == 0 {
		return err
	}
	group := slices.Sorted(maps.Keys(behind))[0]
	return &web.Error{
		Status: http.StatusConflict, Code: codeNotDrained,
		Detail: fmt.Sprintf("%d consumer groups have not read the topic to its end; %d records are before %s.",
			len(behind), behind[group], group),
	}
}
