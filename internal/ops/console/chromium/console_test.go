//go:build console

package console

import (
	"context"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/local"
	"example.com/twinbox/dev/local/broker"
	"example.com/twinbox/dev/local/stacktest"
	"example.com/twinbox/dev/operations"
	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/testkit"
)

var screenshot = flag.String("screenshot", "", "write the picture of the README to this file")

const (
	startLimit = 2 * time.Minute // of the browser: on a busy machine it takes its time
	patience   = time.Minute
)

// browsers are in the order of their start time.
var browsers = []string{
	"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable",
	"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome", "/Applications/Chromium.app/Contents/MacOS/Chromium",
}

var one context.Context

func TestMain(m *testing.M) {
	flag.Parse()
	i := slices.IndexFunc(browsers, func(name string) bool { _, err := exec.LookPath(name); return err == nil })
	if i < 0 {
		fmt.Fprintln(os.Stderr, "No Chromium is here, and without one the console is not tested. Either of these:\n"+
			"  apt-get install chromium-headless-shell\n  apt-get install chromium")
		os.Exit(1)
	}
	allocator, stopAllocator := chromedp.NewExecAllocator(context.Background(), append(
		chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(browsers[i]), chromedp.NoSandbox, // root has none
		chromedp.WSURLReadTimeout(startLimit))...)
	browser, stop := chromedp.NewContext(allocator)
	one = browser
	started := make(chan error, 1)
	go func() { started <- chromedp.Do(browser) }()
	code := 1
	select {
	case err := <-started:
		if err == nil {
			code = m.Run()
		} else {
			fmt.Fprintln(os.Stderr, "start browser:", err)
		}
	case <-time.After(startLimit):
		fmt.Fprintln(os.Stderr, "start browser: it did not answer within", startLimit)
	}
	stop()
	stopAllocator()
	os.Exit(code)
}

type system struct {
	at     local.Addresses
	cfg    broker.Config
	broker *broker.Broker
}

func start(t *testing.T) *system {
	t.Helper()
	s := &system{cfg: broker.Config{Dir: t.TempDir(), Addr: testkit.ReservePort(t)}}
	s.startKafka(t)
	t.Cleanup(func() { require.NoError(t, s.broker.Close()) })
	ready, ended := make(chan local.Addresses, 1), make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		ended <- local.Run(ctx, local.Config{
			Dir: filepath.Join(testkit.Folder(t), "state"), KafkaBrokers: s.broker.Addr(),
			Settings: append(stacktest.Patient(), "INBOX_RETRY_MIN=10ms", "INBOX_RETRY_MAX=100ms", "SIGNUPS_PER_CLIENT=0"),
			Programs: []local.Program{operations.Console("127.0.0.1:0")},
			Ready:    func(at local.Addresses) { ready <- at },
		})
	}()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	select {
	case s.at = <-ready:
	case err := <-ended:
		ended <- nil
		require.NoError(t, err)
	}
	return s
}

func (s *system) link() string { return s.at.Programs["console"] }

func (s *system) startKafka(t *testing.T) {
	t.Helper()
	var err error
	s.broker, err = broker.Start(context.WithoutCancel(t.Context()), s.cfg)
	require.NoError(t, err)
}

func (s *system) signUp(t *testing.T, email string) (user string) {
	t.Helper()
	body := s.post(t, "http://"+s.at.API()+"/v1/signups", `{"email":"`+email+`","name":"Ada"}`, http.StatusCreated)
	var answer struct {
		ID string `json:"user_id"`
	}
	require.NoError(t, json.Unmarshal(body, &answer))
	return answer.ID
}

func (s *system) edit(t *testing.T, payload, reason string) {
	t.Helper()
	s.post(t, "http://"+s.at.Services["customer"].Admin+"/admin/v1/dead-letters/edit",
		fmt.Sprintf(`{"id":1,"by":"ada","reason":%q,"dry_run":false,"payload":%q}`, reason,
			base64.StdEncoding.EncodeToString([]byte(payload))), http.StatusOK)
}

func (s *system) post(t *testing.T, url, body string, want int) (answer []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+s.at.AdminToken.Reveal())
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	require.NoError(t, err)
	answer, err = io.ReadAll(response.Body)
	require.NoError(t, errors.Join(err, response.Body.Close()))
	require.Equal(t, want, response.StatusCode, string(answer))
	return answer
}

func (s *system) produce(t *testing.T, user, payload string) {
	t.Helper()
	e := event.Event{
		ID: uuid.Must(uuid.NewV7()).String(), Source: "/elsewhere", Type: contract.UserRegistered.Type, Key: user,
		Version: 1, Time: time.Now(), Data: []byte(payload),
	}
	publisher := kafkatest.NewPublisher(t, []string{s.broker.Addr()})
	require.NoError(t, publisher.Publish(contract.TopicUsers, e.Message()))
	require.NoError(t, publisher.Close())
}

type tab struct {
	t        *testing.T
	ctx      context.Context
	expected string // what the browser's console may say of it
}

// open fails the test for an error of a script and for a breach of the content policy.
func open(t *testing.T, width, height int64, scheme string) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(one)
	require.NoError(t, chromedp.Do(ctx)) // the tab lives as long as the context that it is made with
	p := &tab{t: t, ctx: ctx}
	p.do(chromedp.EmulateViewport(width, height))
	p.prefer(scheme)
	complaints, heard := []string{}, make(chan struct{})
	messages := chromedp.Console(ctx)
	go func() {
		defer close(heard)
		for message, err := range messages {
			if err != nil {
				return
			}
			complaints = append(complaints, fmt.Sprintf("%+v", message))
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-heard
		complaints = slices.DeleteFunc(complaints, func(text string) bool {
			return p.expected != "" && strings.Contains(text, p.expected)
		})
		require.Empty(t, complaints, "the page's console")
	})
	return p
}

func (p *tab) prefer(scheme string) {
	p.t.Helper()
	p.do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	}))
}

func (p *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	require.NoError(p.t, chromedp.Do(ctx, steps...))
}

func (p *tab) visit(url string) {
	p.t.Helper()
	p.do(chromedp.Navigate(url))
}

func eval[T any](p *tab, script string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](script))
	require.NoError(p.t, err, script)
	return value
}

// A page that navigates cannot be asked: await tries again.
func (p *tab) await(selector, text string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`(document.querySelector(%s)?.textContent ?? "").includes(%s)`,
		strconv.Quote(selector), strconv.Quote(text)))
}

func (p *tab) until(script string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		if holds, err := chromedp.Run(ctx, chromedp.Evaluate[bool](script)); err == nil && holds {
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			require.Fail(p.t, "the page never came to it", "%s\n%s", script, eval[string](p, `document.body.innerText`))
		}
	}
}

func (p *tab) click(selector string) {
	p.t.Helper()
	p.do(chromedp.Click(chromedp.CSS(selector)))
}

func (p *tab) fill(selector, text string) {
	p.t.Helper()
	p.do(chromedp.SetValue(chromedp.CSS(selector), text))
}

func (p *tab) confirm(within, reason string) {
	p.t.Helper()
	p.await(within, "Dry run")
	p.fill(within+" [name=reason]", reason)
	p.fill(within+" [name=by]", "ada")
	p.click(within + " form.confirm button")
}

func TestTheStoryOnThePage(t *testing.T) {
	s := start(t)
	p := open(t, 1440, 900, "light")
	p.visit(s.link())
	p.await("#sentence", "All is well.")
	p.await(`[data-kind="inbox"]`, "customer.profile")
	base, _, _ := strings.Cut(s.link(), "/session/")

	user := s.signUp(t, "ada@example.org")
	for _, station := range []string{
		"customer/http/customer", "customer/inbox/customer.profile", "notification/mail/mail.verification",
		"customer/inbox/customer.mail",
	} {
		p.until(fmt.Sprintf(`parseFloat(document.querySelector('[data-station=%q] b')?.textContent) > 0`, station))
	}
	p.visit(base + "/events/" + user)
	for _, station := range []string{"request", "outbox", "inbox", "mail"} {
		p.await(`.story [data-station="`+station+`"]`, station)
	}
	p.await(".picture", "customer.profile inbox")
	require.Greater(t, eval[int](p, `document.querySelectorAll(".picture circle").length`), 5)
	if *screenshot != "" {
		s.picture(t, p, base)
	}

	p.visit(base)
	require.NoError(t, s.broker.Close())
	s.signUp(t, "bob@example.org")
	p.await("#sentence h1", "customer, notification The broker is down.")
	p.await("#sentence", "Nothing is lost.")
	p.await(".listened", "customer, notification: dependency down.")
	p.await(`[data-station="customer/outbox/customer"] [data-figure="1"]`, "1")
	s.startKafka(t)
	p.await("#sentence", "All is well.")
	p.await(`[data-station="customer/outbox/customer"] [data-figure="1"]`, "0")
	p.await(".history", "The broker is down.")

	poisoned := uuid.Must(uuid.NewV7()).String()
	s.produce(t, poisoned, fmt.Sprintf(registration, poisoned, "17"))
	p.await(`[data-station="customer/inbox/customer.profile"]`, "dead letters")
	p.await("#sentence", "customer.profile has 1 dead letter of 1 key")
	p.visit(base + "/dead-letters")
	p.click(`a[href^="/dead-letters/customer?"]`)
	p.click(`tbody a`)
	p.await("main", "twinbox dlq edit customer/1")
	p.click(`a[href="?payload=1"]`)
	p.await("main pre", "17")
	s.edit(t, fmt.Sprintf(registration, poisoned, `"Carol"`), "the name was a number")
	p.click(".asof a")
	p.await(".versions", `"name": "Carol"`)
	p.visit(base)
	p.click(`.help form button`)
	p.confirm("#outcome", "the name is mended")
	p.await("#outcome", "Replayed 1 dead letter of customer.")
	p.until(`!document.querySelector("#sentence").textContent.includes("customer.profile has")`)
	p.visit(base + "/audit")
	p.await("tbody", "the name is mended")
	answer, err := http.Get("http://" + s.at.API() + "/v1/customers/" + poisoned)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode, "the profile is there")
}

//go:embed check.js
var check string

func TestThePages(t *testing.T) {
	s := start(t)
	base, _, _ := strings.Cut(s.link(), "/session/")
	user, key := s.signUp(t, "ada@example.org"), uuid.Must(uuid.NewV7()).String()
	p := open(t, 1440, 900, "light")
	p.expected = "status of 403"
	p.visit(base + "/audit")
	p.await("h1", "Not signed in")
	p.inspect("refused")
	p.visit(s.link())
	s.produce(t, key, fmt.Sprintf(poison, key))
	p.await(`[data-station="customer/inbox/customer.profile"]`, "dead letters")
	s.edit(t, fmt.Sprintf(registration, key, `"Carol"`), "a number")
	t.Run("fit", func(t *testing.T) { fit(t, base, user) })
	t.Run("keyboard", func(t *testing.T) { workByKeyboard(t, base) })
	t.Run("gone", func(t *testing.T) { loseTheConsole(t, base) })
}

// poison has a number as the name.
const (
	registration = `{"user_id":"%s","email":"carol@example.org","name":%s,"registered_at":"2026-11-20T09:30:00Z"}`
	poison       = `{"user_id":"%s","email":"carol@example.org","name":17,"registered_at":"2026-11-20T09:30:00Z"}`
)

func (p *tab) inspect(what string) {
	p.t.Helper()
	for _, wrong := range eval[[]string](p, check) {
		p.t.Errorf("%s: %s", what, wrong)
	}
}

func fit(t *testing.T, base, user string) {
	for _, screen := range []struct{ width, height int64 }{
		{1440, 900}, {1251, 800}, {1250, 800}, {1001, 800}, {390, 844},
	} {
		p := open(t, screen.width, screen.height, "light")
		p.expected = "status of 404" // of /nothing
		for path, shows := range map[string]string{
			"/": "customer.users.v1", "/dead-letters": "schema_violation", "/dead-letters/customer": "customer/1",
			"/dead-letters/customer/1?payload=1": "Edited", "/dead-letters/customer?key=none": "No dead letters",
			"/mails?state=uncertain": "No uncertain mails", "/mails?state=sent": user, "/audit": "a number",
			"/events/" + user: "mail", "/events/none": "No service knows", "/nothing": "no such page",
		} {
			if screen.height == 800 && path != "/" {
				continue // between the two layouts of the flow
			}
			p.visit(base + path)
			p.await("main", shows)
			for _, scheme := range []string{"light", "dark"} {
				p.prefer(scheme)
				ground := eval[string](p, "getComputedStyle(document.body).backgroundColor")
				require.Equal(t, scheme == "dark", strings.HasPrefix(ground, "rgb(1"), "%s: %s", path, ground)
				p.inspect(fmt.Sprintf("%s at %d in %s", path, screen.width, scheme))
			}
		}
	}
}

func workByKeyboard(t *testing.T, base string) {
	p := open(t, 1440, 900, "light")
	p.visit(base)
	p.await(`[data-kind="inbox"]`, "customer.profile")
	p.do(chromedp.KeyEvent("p"))
	p.await("#pause", "Go on")
	p.do(chromedp.KeyEvent("p"))
	p.await("#pause", "Pause")
	p.do(chromedp.KeyEvent("/"), chromedp.KeyEvent("unknown"), chromedp.KeyEvent("\r"))
	p.await("main", "No service knows this id.")
}

func loseTheConsole(t *testing.T, base string) {
	p := open(t, 1440, 900, "light")
	p.visit(base)
	p.await("#sentence h1", "dead letter")
	p.do(chromedp.Evaluate[chromedp.Void](
		`window.answers = window.fetch; window.fetch = () => Promise.reject(new Error("gone"))`))
	p.await("#sentence h1", "Unknown. The console does not answer")
	require.Zero(t, eval[int](p, `document.querySelectorAll('main [data-state]:not([data-state="unknown"])').length`))
	require.Zero(t, eval[int](p, `document.querySelectorAll('[data-moving]').length`))
	p.do(chromedp.Evaluate[chromedp.Void](`window.fetch = window.answers`))
	p.until(`!document.querySelector("#sentence h1").textContent.includes("Unknown")`)
}

// picture writes the README's picture.
func (s *system) picture(t *testing.T, p *tab, base string) {
	t.Helper()
	p.visit(base)
	pace := time.NewTicker(80 * time.Millisecond)
	defer pace.Stop()
	for i := range 400 {
		s.signUp(t, fmt.Sprintf("person%d@example.org", i))
		<-pace.C
	}
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	p.do(chromedp.EmulateViewport(1440, 697)) // as high as both lanes
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	require.NoError(t, errors.Join(err, os.WriteFile(*screenshot, png, 0o600)))
	p.do(chromedp.EmulateViewport(1440, 900))
}
