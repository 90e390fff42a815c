package forwarder

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/config"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/inbox/kv"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/test/inboxtest"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/natsserver"
	"example.com/twinbox/test/testkit"
)

func TestMain(m *testing.M) { kafkatest.Main(m) }

const waitLimit = 30 * time.Second

// site answers as a test wants, in the order of the requests; the last answer is repeated.
type site struct {
	*httptest.Server
	answers map[string][]int // by Idempotency-Key; none: 204

	mu   sync.Mutex
	seen map[string][]http.Header
	body map[string]string
	came atomic.Int32
}

func newSite(t *testing.T, answers map[string][]int) *site {
	t.Helper()
	s := &site{answers: answers, seen: map[string][]http.Header{}, body: map[string]string{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	content, _ := io.ReadAll(r.Body)
	s.came.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	key := r.Header.Get("Idempotency-Key")
	s.seen[key] = append(s.seen[key], r.Header)
	s.body[key] = string(content)
	answers := append([]int{}, s.answers[key]...)
	if len(answers) == 0 {
		answers = []int{http.StatusNoContent}
	}
	w.WriteHeader(answers[min(len(s.seen[key]), len(answers))-1])
}

func (s *site) requests(id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.seen[id])
}

func (s *site) await(t *testing.T, id string, times int) {
	t.Helper()
	testkit.Until(t, func() bool { return s.requests(id) >= times }, id)
}

type house struct {
	cfg     Config
	brokers []string
	nats    *natsserver.TestServer
	sender  *kafka.Publisher
	log     *slog.Logger
}

func newHouse(t *testing.T, url string) *house {
	t.Helper()
	h := &house{brokers: kafkatest.Brokers(t), nats: natsserver.ForTest(t), log: slog.New(slog.DiscardHandler)}
	topic := kafkatest.Topic(t, h.brokers, 1)
	var cfg Config
	require.NoError(t, config.Load([]string{
		"ADMIN_ADDR=127.0.0.1:0", "FORWARD_URL=" + url, "FORWARD_TOPIC=" + topic, "FORWARD_DEAD_TOPIC=dlq." + topic,
		"FORWARD_GROUP=" + kafkatest.Group(t), "FORWARD_INSTANCE=one", "FORWARD_MAX_ATTEMPTS=3", "FORWARD_RETRY_MIN=1ms",
		"FORWARD_TIMEOUT=25s", // no request is late because the machine stood still
		"KAFKA_BROKERS=" + strings.Join(h.brokers, ","), "NATS_URL=" + h.nats.URL(),
	}, &cfg))
	h.cfg = cfg
	h.sender = kafkatest.NewPublisher(t, h.brokers)
	t.Cleanup(func() { require.NoError(t, h.sender.Close()) })
	return h
}

func (h *house) run(t *testing.T) (admin string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	bound, ended := make(chan service.Listeners, 1), make(chan error, 1)
	go func() {
		ended <- Run(ctx, h.cfg, service.Host{
			Log: h.log, Ready: func(at service.Listeners) { bound <- at },
		})
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	t.Cleanup(stop)
	select {
	case at := <-bound:
		return at.Admin, stop
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(waitLimit):
		require.FailNow(t, "it does not start")
	}
	return "", stop
}

func (h *house) send(t *testing.T, events ...event.Event) {
	t.Helper()
	var msgs []*message.Message
	for _, e := range events {
		msgs = append(msgs, e.Message())
	}
	require.NoError(t, h.sender.Publish(h.cfg.Topic, msgs...))
}

func TestAnEventIsPostedOnce(t *testing.T) {
	t.Parallel()
	to := newSite(t, nil)
	h := newHouse(t, to.URL)
	first, second, last := inboxtest.NewEvent(), inboxtest.NewEvent(), inboxtest.NewEvent()
	between := inboxtest.NewEvent() // a stop between an effect and its mark repeats the effect
	h.send(t, first, second, first, between)
	_, stop := h.run(t)
	to.await(t, between.ID, 1)
	stop()
	h.send(t, second, first, last)
	h.run(t)
	to.await(t, last.ID, 1)
	for _, e := range []event.Event{first, second, last} {
		require.Equal(t, 1, to.requests(e.ID))
		require.Equal(t, string(e.Data), to.body[e.ID])
		header := to.seen[e.ID][0]
		require.Equal(t, e.ID, header.Get("Ce-Id"))
		require.Equal(t, e.Type, header.Get("Ce-Type"))
		require.Equal(t, "application/json", header.Get("Content-Type"))
	}
}

func TestWhatFailsIsTriedAndThenGivenUp(t *testing.T) {
	t.Parallel()
	slow, refused, lost, fine := inboxtest.NewEvent(), inboxtest.NewEvent(), inboxtest.NewEvent(), inboxtest.NewEvent()
	to := newSite(t, map[string][]int{
		slow.ID:    {http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusOK},
		refused.ID: {http.StatusBadRequest},
		lost.ID:    {http.StatusInternalServerError},
	})
	h := newHouse(t, to.URL)
	h.send(t, slow, refused, lost, fine)
	h.run(t)
	to.await(t, fine.ID, 1)
	require.Equal(t, 3, to.requests(slow.ID))
	require.Equal(t, 1, to.requests(refused.ID), "it was read and refused")
	require.Equal(t, h.cfg.MaxAttempts, to.requests(lost.ID))
	var ids, reasons []string
	for _, record := range kafkatest.ReadAll(t, h.brokers, h.cfg.DeadTopic, 2) {
		require.Equal(t, "key-1", string(record.Key))
		for _, header := range record.Headers {
			switch string(header.Key) {
			case "ce_id":
				ids = append(ids, string(header.Value))
			case "reason_poisoned":
				reasons = append(reasons, string(header.Value))
			}
		}
	}
	require.Equal(t, []string{refused.ID, lost.ID}, ids)
	require.Equal(t, []string{
		"deliver event: the receiver answered 400", "deliver event: the receiver answered 500",
	}, reasons)

	// A dead event is not remembered, so it can be sent again.
	to.mu.Lock()
	delete(to.answers, lost.ID)
	to.mu.Unlock()
	h.send(t, lost)
	to.await(t, lost.ID, h.cfg.MaxAttempts+1)
}

func TestWithoutNATSEventsWait(t *testing.T) {
	t.Parallel()
	to := newSite(t, nil)
	h := newHouse(t, to.URL)
	admin, _ := h.run(t)
	before, e := inboxtest.NewEvent(), inboxtest.NewEvent()
	h.send(t, before)
	to.await(t, before.ID, 1)
	h.nats.Stop()
	h.send(t, e, before)
	status := func() int {
		response, err := http.Get("http://" + admin + "/readyz")
		require.NoError(t, err)
		defer response.Body.Close()
		return response.StatusCode
	}
	testkit.Until(t, func() bool { return status() == http.StatusServiceUnavailable })
	require.Zero(t, to.requests(e.ID))
	h.nats.Start(t)
	to.await(t, e.ID, 1)
	testkit.Until(t, func() bool { return status() == http.StatusOK })
	last := inboxtest.NewEvent()
	h.send(t, last)
	to.await(t, last.ID, 1)
	require.Equal(t, 1, to.requests(e.ID))
	require.Equal(t, 1, to.requests(before.ID))
}

// The stop comes in the pause between two attempts.
func TestAStopGivesNothingUp(t *testing.T) {
	t.Parallel()
	e := inboxtest.NewEvent()
	to := newSite(t, map[string][]int{e.ID: {http.StatusServiceUnavailable, http.StatusNoContent}})
	h := newHouse(t, to.URL)
	h.cfg.RetryMin = time.Hour
	h.send(t, e)
	_, stop := h.run(t)
	to.await(t, e.ID, 1)
	stop()
	h.run(t)
	to.await(t, e.ID, 2)
	offsets, err := kafkatest.Admin(t, h.brokers).ListTopics()
	require.NoError(t, err)
	require.Contains(t, offsets, h.cfg.DeadTopic)
	require.Empty(t, kafkatest.ReadAll(t, h.brokers, h.cfg.DeadTopic, 0))
}

func TestAStopCutsNoRequestOff(t *testing.T) {
	t.Parallel()
	e, later := inboxtest.NewEvent(), inboxtest.NewEvent()
	to := newSite(t, nil)
	to.mu.Lock() // the receiver works on the request
	h := newHouse(t, to.URL)
	h.cfg.Timeout = time.Minute
	h.send(t, e)
	_, stop := h.run(t)
	testkit.Until(t, func() bool { return to.came.Load() == 1 })
	time.AfterFunc(500*time.Millisecond, to.mu.Unlock) // behind the beginning of the stop
	stop()
	h.send(t, later)
	h.run(t)
	to.await(t, later.ID, 1)
	require.Equal(t, 1, to.requests(e.ID))
}

func TestHeadersTakeAnyValue(t *testing.T) {
	t.Parallel()
	to := newSite(t, nil)
	msg := message.NewMessage("uuid-1", []byte("x"))
	msg.Metadata = message.Metadata{
		"ce_subject": "a\r\nb é%\"", "other": "not sent", "ce_id": "日", "content-type": "application/json; charset=utf-8",
	}
	require.NoError(t, hook{to.URL, to.Client()}.deliver(msg))
	header := to.seen["%E6%97%A5"][0]
	require.Equal(t, "a%0D%0Ab%20%C3%A9%25%22", header.Get("Ce-Subject"))
	require.Empty(t, header.Get("Other"))
	require.Equal(t, "application/json; charset=utf-8", header.Get("Content-Type"))

	ids := []string{"k", " k", "k "}
	for _, id := range ids {
		require.NoError(t, hook{to.URL, to.Client()}.deliver(message.NewMessage(id, nil)))
	}
	require.Len(t, to.seen, 1+len(ids), "each event has a key of its own")
}

func TestWhatIsFinal(t *testing.T) {
	t.Parallel()
	for status, final := range map[int]bool{
		301: true, 400: true, 404: true, 408: false, 425: false, 429: false, 500: false, 503: false,
	} {
		require.Equal(t, final, isFinal(status), status)
	}
}

// A receiver that is away is the event's failure: it must not hold back the others for ever.
func TestNoAnswerIsADeliveryThatFailed(t *testing.T) {
	t.Parallel()
	away := httptest.NewServer(nil)
	away.Close()
	err := hook{away.URL, away.Client()}.deliver(message.NewMessage("uuid-1", nil))
	require.Error(t, err)
	require.True(t, isDelivery(err))
	require.NotEqual(t, failure.Permanent, failure.Classify(err))
	require.False(t, isDelivery(failure.AsTransient(kv.ErrUnavailable)))
}

func TestTheReceiverShowsWhatCame(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(newReceiver())
	t.Cleanup(server.Close)
	msg := message.NewMessage("uuid-1", []byte("12345"))
	msg.Metadata.Set("ce_type", "com.example.x")
	for range 2 {
		require.NoError(t, hook{server.URL, server.Client()}.deliver(msg))
	}
	for i := range receiverKeeps {
		require.NoError(t, hook{server.URL, server.Client()}.deliver(message.NewMessage(fmt.Sprint(i), nil)))
	}
	response, err := http.Get(server.URL)
	require.NoError(t, err)
	defer response.Body.Close()
	var shown struct{ Received []received }
	require.NoError(t, json.NewDecoder(response.Body).Decode(&shown))
	require.Len(t, shown.Received, receiverKeeps)
	require.Equal(t, "0", shown.Received[0].IdempotencyKey, "the oldest one made room")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader(
		strings.Repeat("x", receiverLimit+1)))
	require.NoError(t, err)
	response, err = http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusRequestEntityTooLarge, response.StatusCode)
}

func TestTheConfigurationIsChecked(t *testing.T) {
	t.Parallel()
	load := func(extra ...string) error {
		return config.Load(append([]string{"KAFKA_BROKERS=h:9092"}, extra...), new(Config))
	}
	const url = "FORWARD_URL=http://127.0.0.1:1/"
	require.NoError(t, load(url))
	require.NoError(t, load("RECEIVER_ADDR=127.0.0.1:0"))
	require.ErrorContains(t, load(), "RECEIVER_ADDR")
	require.ErrorContains(t, load("FORWARD_URL=example.org/hook"), "http://")
	require.ErrorContains(t, load(url, "FORWARD_DEAD_TOPIC=customer.users.v1"), "again and again")
	require.ErrorContains(t, load(url, "SHUTDOWN_TIMEOUT=4s"), "FORWARD_TIMEOUT")
}
