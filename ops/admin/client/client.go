// Package client calls the operations of a service's admin listener; see package admin.
package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"example.com/twinbox/engine/verify"
	"example.com/twinbox/frame/config"
	"example.com/twinbox/ops/admin/adminapi"
)

// Service is one service's operations. It may be used by any number of goroutines. Every request says that it is meant
// for the service of this name, so that another one at the address refuses it.
type Service struct {
	Name, Addr string
	// Environment, if set before the first call, is the one that is meant: a service of another one refuses.
	Environment string

	base, token string
	http        *http.Client
}

// connectTimeout is how long an address may take to be reached, and then to begin its answer.
const connectTimeout = 15 * time.Second

// New makes a client of the admin listener at addr, host:port or a URL. It connects to nothing yet.
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
		Name: name, Addr: addr, base: strings.TrimSuffix(base, "/"), token: token,
		http: &http.Client{Transport: newTransport(connectTimeout)},
	}, nil
}

// newTransport has no proxy: it must not hear of the token. The limit is for each step until an answer begins; left to
// the system, an address behind a firewall would take minutes.
func newTransport(limit time.Duration) *http.Transport {
	return &http.Transport{
		DisableKeepAlives: true, DialContext: (&net.Dialer{Timeout: limit}).DialContext, TLSHandshakeTimeout: limit,
		ResponseHeaderTimeout: limit,
	}
}

// A ProblemError is a service's answer that it did not do what it was asked.
type ProblemError struct {
	Service string
	Problem adminapi.Problem
}

func (e *ProblemError) Error() string {
	return fmt.Sprintf("%s: %s (%s)", e.Service, e.Problem.Detail, e.Problem.Code)
}

// An UnreachableError says that the service did not answer.
type UnreachableError struct {
	Service, Addr string
	Err           error
}

func (e *UnreachableError) Error() string {
	if other, is := errors.AsType[*otherProgramError](e.Err); is {
		return fmt.Sprintf("%s: %s is not its admin listener: %v", e.Service, e.Addr, other)
	}
	return fmt.Sprintf("%s: no answer from %s: %v", e.Service, e.Addr, e.Err)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// ErrCutOff says that a long operation's answer ended before its result. What was done until then stays done.
var ErrCutOff = errors.New("the answer was cut off; what was done until then stays done")

// maxAnswerBytes bounds what one answer, or one line of a long one, may take in memory.
const maxAnswerBytes = 64 << 20

// Call makes a call whose answer is one JSON document.
func Call[T any](ctx context.Context, s *Service, r Request) (T, error) {
	var value T
	body, err := s.Open(ctx, r)
	if err != nil {
		return value, err
	}
	defer body.Close()
	if err := json.NewDecoder(io.LimitReader(body, maxAnswerBytes)).Decode(&value); err != nil {
		return value, fmt.Errorf("%s: read answer: %w", s.Name, err)
	}
	return value, nil
}

// Stream makes a call whose answer is JSON lines, and tells progress what is done so far. Beside an error the result
// counts what was done until then, as far as it is known.
func Stream(
	ctx context.Context, s *Service, progress func(done int64), r Request,
) (result adminapi.Result, err error) {
	err = eachLine(ctx, s, r, func(line adminapi.Line) (last bool, problem *adminapi.Problem) {
		switch {
		case line.Result != nil:
			result = *line.Result
		case line.Done != nil:
			result.Count = *line.Done
			progress(*line.Done)
		}
		return line.Result != nil, line.Problem
	})
	return result, err
}

// Verify asks for a verdict, and tells meanwhile how much was read and how much is looked at again.
func Verify(
	ctx context.Context, s *Service, since *time.Time, tell func(adminapi.VerifyLine),
) (verdict *verify.Verdict, err error) {
	request := Post("/admin/v1/verify", adminapi.VerifyRequest{Since: since})
	err = eachLine(ctx, s, request, func(line adminapi.VerifyLine) (last bool, problem *adminapi.Problem) {
		if verdict = line.Verdict; verdict == nil && line.Problem == nil {
			tell(line)
		}
		return verdict != nil, line.Problem
	})
	return verdict, err
}

// eachLine reads an answer of JSON lines up to its last one, or to a problem.
func eachLine[T any](
	ctx context.Context, s *Service, r Request, read func(line T) (last bool, problem *adminapi.Problem),
) error {
	body, err := s.Open(ctx, r)
	if err != nil {
		return err
	}
	defer body.Close()
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxAnswerBytes)
	for {
		var line T
		if !lines.Scan() || json.Unmarshal(lines.Bytes(), &line) != nil {
			return fmt.Errorf("%s: %w", s.Name, ErrCutOff)
		}
		last, problem := read(line)
		switch {
		case problem != nil:
			return &ProblemError{Service: s.Name, Problem: *problem}
		case last:
			return nil
		}
	}
}

// Open makes a call and gives the body of its answer, for one that is neither of these.
func (s *Service) Open(ctx context.Context, r Request) (io.ReadCloser, error) {
	request, err := r.build(ctx, s.base)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	request.Header.Set("Twinbox-Service", s.Name)
	if s.Environment != "" {
		request.Header.Set("Twinbox-Environment", s.Environment)
	}
	response, err := s.http.Do(request)
	if err != nil {
		return nil, &UnreachableError{Service: s.Name, Addr: s.Addr, Err: cause(err)}
	}
	if !s.gave(response) {
		_ = response.Body.Close()
		return nil, &UnreachableError{Service: s.Name, Addr: s.Addr, Err: &otherProgramError{response.Status}}
	}
	if response.StatusCode == http.StatusOK {
		return response.Body, nil
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return nil, &UnreachableError{Service: s.Name, Addr: s.Addr, Err: err}
	}
	problem := adminapi.Problem{}
	if json.NewDecoder(bytes.NewReader(body)).Decode(&problem) != nil || problem.Code == "" {
		return nil, &UnreachableError{Service: s.Name, Addr: s.Addr, Err: &otherProgramError{response.Status}}
	}
	return nil, &ProblemError{Service: s.Name, Problem: problem}
}

// gave tells whether the service gave an answer. Each of its operations says so; without that, a 200 is the page of any
// web server, and a 404 may be that of the service's own API, where the operation and not what it names is missing.
func (s *Service) gave(response *http.Response) bool {
	switch response.StatusCode {
	case http.StatusOK, http.StatusNotFound:
		return response.Header.Get("Twinbox-Service") == s.Name
	}
	return true
}

// An otherProgramError is an answer that no operation of the service gives.
type otherProgramError struct{ status string }

func (e *otherProgramError) Error() string { return "another program answers (" + e.status + ")" }

// cause takes the URL off a client's error: the address is said already.
func cause(err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}

// URL is where a path of the listener is.
func (s *Service) URL(path string) string { return s.base + path }

// Document reads the OpenAPI document at a path of the listener. Nil: it has none there. The token is not sent.
func (s *Service) Document(ctx context.Context, path string) (document []byte, err error) {
	err = s.get(ctx, path, func(response *http.Response) (err error) {
		switch response.StatusCode {
		case http.StatusNotFound:
			return nil
		case http.StatusOK:
			document, err = io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
			return err
		}
		return &UnreachableError{Service: s.Name, Addr: s.Addr, Err: &otherProgramError{response.Status}}
	})
	return document, err
}

// Look reads what the listener shows without the token: /metrics and /readyz, whose 503 is an answer too. The token is
// not sent.
func (s *Service) Look(ctx context.Context, path string, read func(body io.Reader) error) error {
	return s.get(ctx, path, func(response *http.Response) error {
		if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusServiceUnavailable {
			return &UnreachableError{Service: s.Name, Addr: s.Addr, Err: &otherProgramError{response.Status}}
		}
		return read(response.Body)
	})
}

// get asks for a path without the token.
func (s *Service) get(ctx context.Context, path string, read func(*http.Response) error) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL(path), http.NoBody)
	if err != nil {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	response, err := s.http.Do(request)
	if err != nil {
		return &UnreachableError{Service: s.Name, Addr: s.Addr, Err: cause(err)}
	}
	defer response.Body.Close()
	return read(response)
}
