package console

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/test/testkit"
)

func (b *bundle) post(t *testing.T, path string, form url.Values) string {
	t.Helper()
	status, body := b.do(t, http.MethodPost, path, form.Encode(), http.Header{
		"Content-Type": {"application/x-www-form-urlencoded"}, "Sec-Fetch-Site": {"same-origin"},
	})
	require.Equal(t, http.StatusOK, status)
	return body
}

// change tries a change, and does it.
func (b *bundle) change(t *testing.T, form url.Values) (last string) {
	t.Helper()
	plan := b.post(t, "/changes", form)
	path := formAction.FindStringSubmatch(plan)
	require.NotNil(t, path, plan)
	b.post(t, path[1], ada)
	return b.ended(t, path[1])
}

var (
	formAction = regexp.MustCompile(`action="(/changes/\d+)"`)
	ada        = url.Values{"by": {"ada"}, "reason": {"r"}}
)

func (b *bundle) ended(t *testing.T, path string) (last string) {
	t.Helper()
	testkit.Until(t, func() bool {
		_, last = b.get(t, path)
		return !strings.Contains(last, `data-follow="`+path+`"`)
	})
	return last
}

func TestAChangeIsADryRunFirst(t *testing.T) {
	t.Parallel()
	b := setup(t, nil).signIn(t)
	b.stub.set("/admin/v1/dead-letters/replay", `{"result":{"dry_run":true,"count":3,"failed":1,`+
		`"errors":[{"subject":"9","code":"version_gap","detail":"it waits"}]}}`+"\n")
	form := url.Values{
		"verb": {"replay"}, "service": {"customer"}, "code": {"handler_failed"}, "back": {"/dead-letters"}, "force": {"1"},
	}
	plan := b.post(t, "/changes", form)
	require.Contains(t, plan, "Replay 3 dead letters of customer")
	require.Contains(t, plan, "version_gap")
	require.Equal(t, []string{`POST /admin/v1/dead-letters/replay ` +
		`{"by":"console","dry_run":true,"filter":{"code":"handler_failed"},"force":true,"reason":"dry run"}`},
		b.stub.operations())

	status, _ := b.get(t, "/changes/1")
	require.Equal(t, http.StatusNotFound, status, "it has not begun")
	for _, missing := range []url.Values{{"by": {" "}, "reason": {"r"}}, {"by": {"ada"}}} {
		require.Contains(t, b.post(t, "/changes/1", missing), "Nothing was changed")
	}
	require.Len(t, b.stub.operations(), 1, "nothing is done without a reason and a name")

	b.stub.set("/admin/v1/dead-letters/replay", `{"done":2}`+"\n"+`{"result":{"dry_run":false,"count":3,"failed":1,`+
		`"errors":[{"subject":"9","code":"version_gap","detail":"it waits"}]}}`+"\n")
	for range 2 {
		b.post(t, "/changes/1", url.Values{"by": {"ada"}, "reason": {"mended"}})
	}
	last := b.ended(t, "/changes/1")
	require.Contains(t, last, "Replayed 3 dead letters of customer, 1 not.")
	require.Contains(t, last, "version_gap")
	require.Equal(t, []string{`POST /admin/v1/dead-letters/replay ` +
		`{"by":"ada","dry_run":false,"filter":{"code":"handler_failed"},"force":true,"reason":"mended"}`},
		b.stub.operations()[1:], "the change that was tried is done once")
}

func TestAChangeNamesTheEnvironmentOfItsDryRun(t *testing.T) {
	t.Parallel()
	b := setup(t, nil).signIn(t)
	b.stub.set("/admin/v1/outbox/resume", `{"count":1}`)
	form := url.Values{"verb": {"resume-relay"}, "service": {"customer"}}
	plan := func() string { return b.post(t, "/changes", form) }
	testkit.Until(t, func() bool { return strings.Contains(plan(), "Resume 1 relay of customer in here") })
	path := formAction.FindStringSubmatch(plan())[1]
	b.stub.set(adminapi.StationsPath, strings.Replace(fmt.Sprintf(theStations, 3), `"here"`, `"there"`, 1))
	testkit.Until(t, func() bool { return strings.Contains(plan(), "Resume 1 relay of customer in there") })
	b.post(t, path, ada)
	b.ended(t, path)
	b.stub.mu.Lock()
	defer b.stub.mu.Unlock()
	require.Equal(t, "here", b.stub.meant)
}

func TestALinkFillsInNothingButConditions(t *testing.T) {
	t.Parallel()
	b := setup(t, nil).signIn(t)
	b.stub.set("/admin/v1/dead-letters/query", `{"items":[{"id":7}],"next":7}`)
	_, page := b.get(t, "/dead-letters/customer?code=too_old&force=1&verb=resume-relay&by=mallory&reason=none&total=1")
	for _, other := range []string{"resume-relay", "mallory", "none"} {
		require.NotContains(t, page, `value="`+other+`"`)
	}
	require.Contains(t, page, `<input type="hidden" name="id" value="7">`)
	require.NotContains(t, page, `<input type="hidden" name="force"`)
	require.Contains(t, page, `href="?after=7&amp;code=too_old"`, "the next page")
}

func TestAReplayOfAPageIsOfWhatItShows(t *testing.T) {
	t.Parallel()
	b := setup(t, nil).signIn(t)
	b.stub.set("/admin/v1/dead-letters/query", `{"items":[{"id":7},{"id":8,"type":"t.v1"},{"id":9}],"next":9}`)
	fields := regexp.MustCompile(`<input type="hidden" name="(?:id|consumer|code|type|key|after)" value="[^"]*">`)
	ids := func(all ...int) (inputs []string) {
		for _, id := range all {
			inputs = append(inputs, fmt.Sprintf(`<input type="hidden" name="id" value="%d">`, id))
		}
		return inputs
	}
	for query, want := range map[string][]string{
		"?consumer=c&code=too_old&after=6":   ids(7, 8, 9),
		"?consumer=c&code=too_old&type=":     ids(7, 9),
		"?consumer=c&code=too_old&type=t.v1": ids(7, 8, 9),
	} {
		_, page := b.get(t, "/dead-letters/customer"+query)
		require.Equal(t, want, fields.FindAllString(page, -1), query)
	}
	b.stub.set("/admin/v1/dead-letters/query", `{"items":[{"id":8,"type":"t.v1"}],"next":8}`)
	_, page := b.get(t, "/dead-letters/customer?type=")
	require.Contains(t, page, `href="?after=8&amp;type="`, "the next page may have some")
}

func TestARefusalIsShown(t *testing.T) {
	t.Parallel()
	b := setup(t, nil).signIn(t)
	form := url.Values{"verb": {"replay"}, "service": {"customer"}, "id": {"7"}}
	require.Contains(t, b.post(t, "/changes", form), "There is no such thing. (not_found)")
	b.stub.set("/admin/v1/dead-letters/replay", `{"result":{"count":1}}`+"\n")
	b.post(t, "/changes", form)
	b.stub.set("/admin/v1/dead-letters/replay", `{"done":4}`+"\n")
	b.post(t, "/changes/1", ada)
	last := b.ended(t, "/changes/1")
	require.Contains(t, last, "Replayed 4 dead letters")
	require.Contains(t, last, "was cut off")
	for _, bad := range []url.Values{
		{"verb": {"drop"}, "service": {"customer"}},
		{"verb": {"discard"}, "service": {"customer"}},
		{"verb": {"replay"}, "service": {"billing"}},
		{"verb": {"replay"}, "service": {"customer"}, "id": {"x"}},
	} {
		require.Contains(t, b.post(t, "/changes", bad), "Nothing was changed.")
	}
}

func TestWhatElseIsChanged(t *testing.T) {
	t.Parallel()
	b := setup(t, nil).signIn(t)
	b.stub.set("/admin/v1/outbox/status", `{"parked_keys":5,"parked":[{"topic":"t","key":"a"},{"topic":"t","key":"b"}]}`)
	for path, c := range map[string]struct {
		form   url.Values
		bodies []string
	}{
		"/admin/v1/outbox/release": {url.Values{"verb": {"release"}}, []string{
			`{"by":"ada","dry_run":false,"key":"a","reason":"r","topic":"t"}`,
			`{"by":"ada","dry_run":false,"key":"b","reason":"r","topic":"t"}`,
		}},
		"/admin/v1/consumers/resume": {url.Values{"verb": {"resume-consumer"}, "consumer": {"customer.profile"}}, []string{
			`{"by":"ada","consumer":"customer.profile","dry_run":false,"reason":"r"}`,
		}},
		"/admin/v1/outbox/resume": {url.Values{"verb": {"resume-relay"}}, []string{
			`{"by":"ada","dry_run":false,"reason":"r"}`,
		}},
	} {
		b.stub.set(path, `{"dry_run":false,"count":1,"failed":0}`)
		c.form.Set("service", "customer")
		require.Contains(t, b.change(t, c.form), "Look again")
		for _, body := range c.bodies {
			require.Contains(t, strings.Join(b.stub.operations(), "\n"), "POST "+path+" "+body)
		}
	}
	plan := b.post(t, "/changes", url.Values{"verb": {"release"}, "service": {"customer"}})
	require.Contains(t, plan, "Release 2 keys of customer")
	require.Contains(t, plan, "3 more keys are parked")
	b.stub.set("/admin/v1/outbox/release", "no answer of the service")
	path := formAction.FindStringSubmatch(plan)[1]
	b.post(t, path, ada)
	require.Contains(t, b.ended(t, path), "Released 0 keys")
}

func TestAChangeCanBeStopped(t *testing.T) {
	t.Parallel()
	b := setup(t, nil).signIn(t)
	asked := &change{
		ID: "9", verb: verb{Doing: "Replaying", Done: "Replayed", Thing: "dead letter"},
		Service: b.console.cfg.Services[0], Result: adminapi.Result{Count: 9},
	}
	asked.run = func(ctx context.Context, _ *change, progress func(int64)) (adminapi.Result, error) {
		progress(4)
		<-ctx.Done()
		return adminapi.Result{Count: 4}, ctx.Err()
	}
	b.console.changes.tried[asked.ID] = asked
	b.post(t, "/changes/9", ada)
	testkit.Until(t, func() bool {
		_, page := b.get(t, "/changes/9")
		return strings.Contains(page, "4 dead letters so far of 9")
	})
	b.post(t, "/changes/9/stop", nil)
	require.Contains(t, b.ended(t, "/changes/9"), "Replayed 4 dead letters of customer")
}

func TestReadOnly(t *testing.T) {
	t.Parallel()
	paths := []string{
		"/dead-letters", "/dead-letters/customer", "/dead-letters/customer/1", "/mails", "/lost", "/audit", "/events/x",
		"/find?id=x", "/changes/1",
	}
	signedOut := setup(t, nil)
	signedIn := setup(t, func(c *Config) { c.ReadOnly = true }).signIn(t)
	for _, b := range []*bundle{signedOut, signedIn} {
		for _, path := range paths {
			status, _ := b.get(t, path)
			require.Equal(t, http.StatusForbidden, status, path)
		}
		for _, path := range []string{"/changes", "/changes/1"} {
			status, _ := b.do(t, http.MethodPost, path, "verb=replay", http.Header{"Sec-Fetch-Site": {"same-origin"}})
			require.Equal(t, http.StatusForbidden, status, path)
		}
		require.Empty(t, b.stub.operations())
	}
	signedOut.browser.Jar, _ = cookiejar.New(nil)
	address, err := url.Parse(signedOut.url)
	require.NoError(t, err)
	guess := &http.Cookie{Name: "twinbox_console_" + address.Port(), Value: "guessed"}
	signedOut.browser.Jar.SetCookies(address, []*http.Cookie{guess})
	status, _ := signedOut.get(t, "/audit")
	require.Equal(t, http.StatusForbidden, status)
}

func TestPagesShowTextAsText(t *testing.T) {
	t.Parallel()
	b := setup(t, nil).signIn(t)
	bad, err := json.Marshal(hostile)
	require.NoError(t, err)
	letter := `{"id":7,"consumer":X,"event_id":X,"type":X,"version":1,"key":X,"topic":X,` +
		`"partition":0,"offset":1,` +
		`"class":X,"code":X,"error":X,"attempts":1,"first_failed_at":"2026-01-02T03:04:05Z",` +
		`"failed_at":"2026-01-02T03:04:05Z",` +
		`"state":"waiting","holds":true,"replays":1,"outcome":X,"bytes":3,"edited_by":X,"payload":"PHNjcmlwdD4=",` +
		`"edited_payload":"PGltZyBzcmM9eD4=","headers":[{"name":X,"value":"PHNjcmlwdD4="}]}`
	action := `{"id":1,"at":"2026-01-02T03:04:05Z","by":X,"verb":X,"kind":X,"subject":X,"reason":X,` +
		`"before":X,"after":X,"count":1}`
	for path, answer := range map[string]string{
		"/admin/v1/dead-letters/groups": `{"items":[{"consumer":X,"code":X,"type":X,"count":2,"keys":1,` +
			`"error":X,"example":1}]}`,
		"/admin/v1/dead-letters/query": `{"items":[` + letter + `],"next":7}`,
		"/admin/v1/dead-letters/show":  `{"letter":` + letter + `,"history":[` + action + `]}`,
		"/admin/v1/mails": `{"items":[{"id":X,"state":X,"event_id":X,"template":X,"user_id":X,"error":X,` +
			`"created_at":"2026-01-02T03:04:05Z"}]}`,
		"/admin/v1/audit": `{"items":[` + action + `]}`,
		"/admin/v1/outbox/lost": `{"items":[{"topic":X,"event_id":X,"type":X,"key":X,"version":1,"headers":{X:X},` +
			`"appended_at":"2026-01-02T03:04:05Z"}],"next":X}`,
		"/admin/v1/story": `{"kind":X,"note":X,"related":[X],"steps":[{"at":"2026-01-02T03:04:05Z",` +
			`"station":X,"service":X,"consumer":X,"outcome":X,"event_id":X,"event_type":X,"topic":X,"offset":1,` +
			`"cause":X,"subject":X,"detail":X,"trace_id":X}]}`,
		"/admin/v1/dead-letters/replay": `{"result":{"count":1,"failed":1,"errors":[{"subject":X,"code":X,"detail":X}]}}`,
	} {
		b.stub.set(path, strings.ReplaceAll(answer, "X", string(bad)))
	}
	for _, path := range []string{
		"/dead-letters", "/dead-letters/customer?code=" + url.QueryEscape(hostile), "/dead-letters/customer/7",
		"/dead-letters/customer/7?payload=1", "/mails?state=" + url.QueryEscape(hostile), "/lost", "/audit", "/events/x",
	} {
		status, body := b.get(t, path)
		require.Equal(t, http.StatusOK, status, path)
		requireHarmless(t, body)
		require.Contains(t, html.UnescapeString(body), hostile, path)
	}
	form := url.Values{
		"verb": {"replay"}, "service": {"customer"}, "code": {hostile}, "back": {"javascript:alert(1)"},
	}
	requireHarmless(t, b.post(t, "/changes", form))
	b.post(t, "/changes/1", url.Values{"by": {hostile}, "reason": {hostile}})
	requireHarmless(t, b.ended(t, "/changes/1"))
	status, body := b.get(t, "/dead-letters/"+url.PathEscape(hostile)+"/1")
	require.Equal(t, http.StatusNotFound, status)
	requireHarmless(t, body)
}

func TestASettledLetterHoldsNoEvent(t *testing.T) {
	t.Parallel()
	b := setup(t, nil).signIn(t)
	b.stub.set("/admin/v1/dead-letters/show", `{"letter":{"id":7,"state":"discarded","holds":true},"history":[
		{"by":"ada","verb":"replay","reason":"r","detail":{"outcome":"failed","code":"profile_missing"}}]}`)
	_, page := b.get(t, "/dead-letters/customer/7")
	require.NotContains(t, page, "park behind this one")
	require.Contains(t, page, "<b>replay (failed: profile_missing)</b> by ada")
}

func TestNoAnswerIsNoAllClear(t *testing.T) {
	t.Parallel()
	b := setup(t, nil).signIn(t)
	for path, clear := range map[string]string{
		"/dead-letters": "No dead letters", "/mails?state=uncertain": "No uncertain mails",
		"/audit": "Nothing was done by hand", "/events/x": "No service knows this id", "/lost": "has lost no event",
	} {
		_, page := b.get(t, path)
		require.NotContains(t, page, clear, path)
		require.Contains(t, page, "There is no such thing. (not_found)", path)
		if path != "/lost" {
			require.Contains(t, page, "Unknown: not every service answered.", path)
		}
	}
}

func TestAuditGoesBackInTime(t *testing.T) {
	t.Parallel()
	b := setup(t, nil).signIn(t)
	b.stub.set("/admin/v1/audit", `{"items":[{"id":7,"at":"2026-01-02T03:04:05.123Z","by":"ada","verb":"replay",`+
		`"kind":"dead_letter","subject":"1","reason":"r"}],"more":true}`)
	_, page := b.get(t, "/audit")
	require.Contains(t, page, `href="?until=2026-01-02T03%3a04%3a05.123Z"`)
	b.get(t, "/audit?until=2026-01-02T03:04:05.123Z")
	asked := b.stub.operations()
	require.Contains(t, asked[len(asked)-1], `"until":"2026-01-02T03:04:05.123Z"`)
}

func TestFindLeadsToALetterOrAStory(t *testing.T) {
	t.Parallel()
	b := setup(t, nil).signIn(t)
	b.browser.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for id, page := range map[string]string{
		"customer/17": "/dead-letters/customer/17", "a/b/17": "/events/a%2Fb%2F17", " 019ab\n": "/events/019ab",
	} {
		address := b.url + "/find?id=" + url.QueryEscape(id)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
		require.NoError(t, err)
		response, err := b.browser.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, page, response.Header.Get("Location"))
	}
}
