// Package client calls the operations of a service's admin listener; see package admin.
package client

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"example.com/twinbox/internal/config"
	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/verify"
)

// Service calls one service's operations. A different service at the address refuses them. It is safe for concurrent
// use.
type Service struct {
	Name string
	// Environment, if set before the first call, is required: a service of a different one refuses.
	Environment string

	addr, base, token string
	http              *http.Client
}

// connectTimeout limits the connection, and then the wait for the answer's beginning.
const connectTimeout = 15 * time.Second

// New makes a client of the admin listener at addr, host:port or a URL, and does not connect.
func New(name, addr, token string) (*Service, error) {
	base := strings.TrimSuffix(addr, "/")
	why := config.FormatURL.Check(base)
	if !strings.Contains(base, "://") {
		why = config.FormatAddress.Check(base)
		base = "http://" + base
	}
	if why != "" {
		return nil, fmt.Errorf("read address of %s: %q is neither host:port nor a URL: %s", name, addr, why)
	}
	return &Service{
		Name: name, addr: addr, base: strings.TrimSuffix(base, "/"), token: token,
		http: &http.Client{Transport: newTransport(connectTimeout)},
	}, nil
}

// newTransport uses no proxy, which would see the token. An address behind a firewall would take minutes.
func newTransport(limit time.Duration) *http.Transport {
	return &http.Transport{
		DisableKeepAlives: true, DialContext: (&net.Dialer{Timeout: limit}).DialContext, TLSHandshakeTimeout: limit,
		ResponseHeaderTimeout: limit,
	}
}

// A ProblemError is a service's refusal.
type ProblemError struct {
	Service string
	Problem adminapi.Problem
}

func (e *ProblemError) Error() string {
	return fmt.Sprintf("%s: %s (%s)", e.Service, e.Problem.Detail, e.Problem.Code)
}

// An UnreachableError reports that the service did not answer.
type UnreachableError struct {
	Service string
	Err     error
}

func (e *UnreachableError) Error() string { return fmt.Sprintf("%s: %v", e.Service, e.Err) }
func (e *UnreachableError) Unwrap() error { return e.Err }

func (s *Service) noAnswer(err error) error {
	return &UnreachableError{s.Name, fmt.Errorf("no answer from %s: %w", s.addr, err)}
}

// ErrCutOff reports that a long operation's answer ended before its result. Finished changes stay.
var ErrCutOff = errors.New("the answer was cut off; what was done until then stays done")

// maxAnswerBytes bounds one answer, or one line of a long one, in memory.
const maxAnswerBytes = 64 << 20

// Call makes a call whose answer is one JSON document.
func Call[T any](ctx context.Context, s *Service, r Request) (value T, err error) {
	body, err := s.open(ctx, r)
	if err != nil {
		return value, err
	}
	defer body.Close()
	if err := json.NewDecoder(io.LimitReader(body, maxAnswerBytes)).Decode(&value); err != nil {
		return value, fmt.Errorf("%s: read answer: %w", s.Name, err)
	}
	return value, nil
}

// An Answer is one service's value or its error.
type Answer[T any] struct {
	Service string
	Value   T
	Err     error
}

// Ask asks all services concurrently and returns the answers in their order.
func Ask[T any](services []*Service, call func(*Service) (T, error)) []Answer[T] {
	answers := make([]Answer[T], len(services))
	var all sync.WaitGroup
	for i, s := range services {
		all.Go(func() {
			value, err := call(s)
			answers[i] = Answer[T]{s.Name, value, err}
		})
	}
	all.Wait()
	return answers
}

// Stream makes a change, whose answer is a result or, of a long operation, JSON lines. For each line it calls progress;
// a total of 0 is unknown. With an error, the result counts the known changes before it.
func Stream(
	ctx context.Context, s *Service, progress func(done, total int64), r Request,
) (result adminapi.Result, err error) {
	body, err := s.open(ctx, r)
	if err != nil {
		return result, err
	}
	defer body.Close()
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxAnswerBytes)
	for lines.Scan() {
		var line adminapi.Line
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			break
		}
		switch {
		case line.Problem != nil:
			return result, &ProblemError{Service: s.Name, Problem: *line.Problem}
		case line.Result != nil:
			return *line.Result, nil
		case line.Done == nil:
			err = json.Unmarshal(lines.Bytes(), &result)
			return result, err
		}
		result.Count = *line.Done
		progress(*line.Done, line.Total)
	}
	return result, fmt.Errorf("%s: %w", s.Name, ErrCutOff)
}

func (s *Service) open(ctx context.Context, r Request) (io.ReadCloser, error) {
	var body []byte
	var err error
	if r.method == http.MethodPost {
		body, err = json.Marshal(r.body)
	}
	request, wrong := http.NewRequestWithContext(ctx, r.method, s.base+r.path, bytes.NewReader(body))
	if err = cmp.Or(err, wrong); err != nil {
		return nil, fmt.Errorf("%s: make request: %w", s.Name, err)
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Twinbox-Service", s.Name)
	if s.Environment != "" {
		request.Header.Set("Twinbox-Environment", s.Environment)
	}
	response, err := s.http.Do(request)
	if err != nil {
		if inner := errors.Unwrap(err); inner != nil { // without the URL: the message has the address
			err = inner
		}
		return nil, s.noAnswer(err)
	}
	// Without the header, any web server answers.
	own := response.Header.Get("Twinbox-Service") == s.Name
	if response.StatusCode == http.StatusOK && own {
		return response.Body, nil
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return nil, s.noAnswer(err)
	}
	refused := &ProblemError{Service: s.Name}
	err = json.Unmarshal(answer, &refused.Problem)
	status := response.StatusCode
	isOther := !own && (status == http.StatusOK || status == http.StatusNotFound)
	if isOther || err != nil || refused.Problem.Code == "" {
		err = fmt.Errorf("%s is not its admin listener: another program answers (%s)", s.addr, response.Status)
		return nil, &UnreachableError{s.Name, err}
	}
	return nil, refused
}

// URL returns that of a path.
func (s *Service) URL(path string) string { return s.base + path }

// Request is a call of one operation of api/admin.yaml.
type Request struct {
	method, path string
	body         any // as JSON
}

// Get asks a question without conditions.
func Get(path string) Request { return Request{http.MethodGet, path, nil} }

// Post asks a question with conditions, or changes something.
func Post(path string, body any) Request { return Request{http.MethodPost, path, body} }

// OperatorsFile is where a dev stack stores its [Operators]. It holds the token, so only its owner may read it.
const OperatorsFile = "operators.json"

// Operators is the content of [OperatorsFile].
type Operators struct {
	Services map[string]string `json:"services"` // admin listeners by the service's name
	Token    string            `json:"token"`
	Verify   verify.System     `json:"verify"`
}

// ReadOperators reads the file in the folder. Without a stack the error is [os.ErrNotExist].
func ReadOperators(dir string) (o Operators, err error) {
	content, err := os.ReadFile(filepath.Join(dir, OperatorsFile))
	if err == nil {
		err = json.Unmarshal(content, &o)
	}
	if err != nil {
		return o, fmt.Errorf("read operators: %w", err)
	}
	return o, nil
}
