package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/audit"
	deadletters "example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/internal/web"
)

type handlers struct {
	Config
	letters *deadletters.Store
	started time.Time
}

// handlersOf has the ids of api/admin.yaml as keys.
func handlersOf(cfg Config) map[string]handler {
	h := handlers{cfg, deadletters.NewStore(cfg.Pool), time.Now().UTC()}
	return map[string]handler{
		"getService":  answer(h.service),
		"getStations": answer(h.stations),
		"listAudit":   answer(h.audit),

		"listMails":     answer(h.mails),
		"retryMails":    change(h.settle((*MailList).Retry)),
		"markMailsSent": change(h.settle((*MailList).MarkSent)),

		"getOutboxStatus":  answer(h.status),
		"tailOutbox":       answer(h.tail),
		"republishOutbox":  longChange(h.republish),
		"releaseOutboxKey": changeOne(cfg.Pool, h.release),
		"pauseRelay":       changeOne(cfg.Pool, h.pauseRelay),
		"resumeRelay":      changeOne(cfg.Pool, h.resumeRelay),
		"confirmRefusal":   change(h.confirm),
		"listLost":         answer(h.lost),
		"listScheduled":    answer(h.scheduled),
		"cancelScheduled":  changeOne(cfg.Pool, h.cancelScheduled),
		"listTopics":       answer(h.topics),

		"getStory":         answer(h.story),
		"getInboxStats":    answer(h.stats),
		"lookupInboxEvent": answer(h.lookup),
		"getInboxHistory":  answer(h.history),
		"pauseConsumer":    changeOne(cfg.Pool, h.pauseConsumer),
		"resumeConsumer":   changeOne(cfg.Pool, h.resumeConsumer),

		"queryDeadLetters":   answer(h.deadLetters),
		"groupDeadLetters":   answer(h.groups),
		"getDeadLetter":      answer(h.deadLetter),
		"editDeadLetter":     change(h.edit),
		"replayDeadLetters":  longChange(h.replay),
		"discardDeadLetters": longChange(h.discard),
	}
}

type handler func(c call)

type call struct {
	w       http.ResponseWriter
	r       *http.Request
	query   map[string]any
	hasBody bool // as JSON
}

type nothing = struct{}

// decode reads the body, else the parameters.
func decode[R any](c call) (asked R, err error) {
	if c.hasBody {
		return web.Decode[R](c.w, c.r)
	}
	for _, name := range slices.Sorted(maps.Keys(c.query)) {
		parameter, err := json.Marshal(map[string]any{name: c.query[name]})
		if err = errors.Join(err, json.Unmarshal(parameter, &asked)); err != nil {
			return asked, invalidParameter(name, "is malformed")
		}
	}
	return asked, nil
}

func idOf(ctx context.Context) (int64, error) {
	id, err := strconv.ParseInt(chi.URLParamFromCtx(ctx, "id"), 10, 64)
	if err != nil {
		return 0, invalidParameter("id", "is malformed")
	}
	return id, nil
}

func answer[R, T any](operation func(ctx context.Context, asked R) (T, error)) handler {
	return func(c call) {
		ctx, cancel := context.WithTimeout(c.r.Context(), shortTimeout)
		defer cancel()
		var value T
		asked, err := decode[R](c)
		if err == nil {
			value, err = operation(ctx, asked)
		}
		if err != nil {
			web.WriteProblem(c.w, c.r, err)
			return
		}
		web.WriteJSON(c.w, c.r, http.StatusOK, value)
	}
}

// Every request of a change has these members.
func changeOf(asked any) audit.Change {
	members := reflect.ValueOf(asked)
	return audit.Change{
		By: members.FieldByName("By").String(), Reason: members.FieldByName("Reason").String(),
		DryRun: members.FieldByName("DryRun").Bool(), Deed: uuid.NewString(),
	}
}

type changing[R any] func(ctx context.Context, change audit.Change, asked R) (audit.Result, error)

func change[R any](operation changing[R]) handler {
	return answer(func(ctx context.Context, asked R) (audit.Result, error) {
		return operation(ctx, changeOf(asked), asked)
	})
}

// changeOne stores the audit row that what returns in its transaction.
func changeOne[R any](
	db audit.Beginner, what func(ctx context.Context, tx pgx.Tx, asked R) (audit.Action, error),
) handler {
	return change(func(ctx context.Context, change audit.Change, asked R) (audit.Result, error) {
		err := change.Make(ctx, db, func(tx pgx.Tx) (audit.Action, error) { return what(ctx, tx, asked) })
		return audit.Result{DryRun: change.DryRun, Count: 1}, err
	})
}

const (
	defaultLimit = 100
	maxLimit     = 1000
)

// page asks for one more item, which shows whether there are more.
func page[T any](limit int, find func(limit int) ([]T, error)) (items []T, more bool, err error) {
	limit = cmp.Or(limit, defaultLimit)
	found, err := find(limit + 1)
	return found[:min(len(found), limit)], len(found) > limit, err
}
