package admin

import (
	"cmp"
	"context"
	"net/http"
	"reflect"
	"time"

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
func handlersOf(cfg Config) map[string]http.HandlerFunc {
	h := handlers{cfg, deadletters.NewStore(cfg.Pool), time.Now().UTC()}
	return map[string]http.HandlerFunc{
		"getService":  answer(h.service),
		"getStations": answer(h.stations),
		"listAudit":   answer(h.audit),

		"listMails":     answer(h.mails),
		"retryMails":    change(h.settle((*MailList).Retry)),
		"markMailsSent": change(h.settle((*MailList).MarkSent)),
		"skipMails":     change(h.settle((*MailList).Skip)),

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

type nothing = struct{}

// decode reads the body, which every request but a GET has.
func decode[R any](w http.ResponseWriter, r *http.Request) (asked R, err error) {
	if r.Method != http.MethodGet {
		asked, err = web.Decode[R](w, r)
	}
	return asked, err
}

func answer[R, T any](operation func(ctx context.Context, asked R) (T, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), shortTimeout)
		defer cancel()
		var value T
		asked, err := decode[R](w, r)
		if err == nil {
			value, err = operation(ctx, asked)
		}
		if err != nil {
			web.WriteProblem(w, r, err)
			return
		}
		web.WriteJSON(w, r, http.StatusOK, value)
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

func change[R any](operation changing[R]) http.HandlerFunc {
	return answer(func(ctx context.Context, asked R) (audit.Result, error) {
		return operation(ctx, changeOf(asked), asked)
	})
}

// changeOne stores the audit row that what returns in its transaction.
func changeOne[R any](
	db audit.Beginner, what func(ctx context.Context, tx pgx.Tx, asked R) (audit.Action, error),
) http.HandlerFunc {
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
