package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"example.com/twinbox/dev/local/child"
	"example.com/twinbox/dev/local/mailbox"
	"example.com/twinbox/dev/local/port"
	"example.com/twinbox/internal/customer/openapi"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/outbox/relay"
	"example.com/twinbox/internal/service"
)

// Two processes of each service, with a mail server in this process.
type services struct {
	site
	customers, notifiers [2]*process
}

func (b *pathBench) withServices(ctx context.Context, do func(*services) error) error {
	return b.withSite(ctx, func(at site) (err error) {
		mails, err := mailbox.Start(ctx, mailbox.Config{})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, mails.Close()) }()
		s := &services{site: at}
		addresses, err := port.Pick(ctx, slices.Repeat([]string{"127.0.0.1:0"}, 6)...)
		if err != nil {
			return err
		}
		shared := []string{
			"LOG_LEVEL=error", "DATABASE_MAX_CONNECTIONS=20", // four processes on a server with its default of 100
			"OUTBOX_LEASE=" + b.plan.Lease.String(), "KAFKA_PUBLISH_TIMEOUT=" + (b.plan.Lease * 2 / 3).String(),
		}
		for i := range s.customers {
			api, admin, notifier := addresses[i], addresses[2+i], addresses[4+i]
			s.customers[i] = &process{
				program: b.program("customer"), api: api, admin: admin,
				environ: at.environ(at.customer, append(shared, "HTTP_ADDR="+api, "ADMIN_ADDR="+admin, "RATE_LIMIT=0")...),
			}
			s.notifiers[i] = &process{
				program: b.program("notification"), admin: notifier,
				environ: at.environ(at.notification, append(shared, "ADMIN_ADDR="+notifier, "SMTP_ADDR="+mails.SMTPAddr())...),
			}
		}
		for _, p := range s.processes() {
			if err := p.start(); err != nil {
				return err
			}
			defer func() { err = errors.Join(err, p.Kill()) }()
		}
		for _, p := range s.processes() {
			if err := p.awaitReady(ctx); err != nil {
				return err
			}
		}
		return do(s)
	})
}

func (s *services) processes() []*process {
	return []*process{s.customers[0], s.customers[1], s.notifiers[0], s.notifiers[1]}
}

func (b *pathBench) buildPrograms(ctx context.Context) error {
	command := exec.CommandContext(ctx, "go", "build", "-o", b.program(""),
		"example.com/twinbox/cmd/customer", "example.com/twinbox/cmd/notification")
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("build services: %w: %s", err, out)
	}
	return nil
}

func (b *pathBench) program(name string) string {
	return filepath.Join(b.dir, "programs") + string(filepath.Separator) + name
}

func (s *services) leader(ctx context.Context) (leads, follows *process, err error) {
	err = poll(ctx, 20*time.Millisecond, func() (bool, error) {
		status, err := relay.ReadStatus(ctx, s.customer)
		for i, p := range s.customers {
			if status.Leading && strings.HasSuffix(status.Leader, "/"+strconv.Itoa(p.PID())) {
				leads, follows = p, s.customers[1-i]
			}
		}
		return leads != nil, err
	})
	return leads, follows, err
}

type process struct {
	*child.Process

	program    string
	environ    []string
	api, admin string // host:port; api is "" for a service without one
}

func (p *process) start() (err error) {
	// Not CommandContext: withServices ends the processes itself, and a fault is not an end.
	command := exec.Command(p.program, "serve") //nolint:noctx // see above
	command.Env, command.Stderr = p.environ, os.Stderr
	if p.Process, err = child.Start(command, syscall.SIGKILL); err != nil {
		return fmt.Errorf("start %s: %w", p.program, err)
	}
	return nil
}

const readyLimit = time.Minute

func (p *process) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyLimit, fmt.Errorf("not ready within %s", readyLimit))
	defer cancel()
	if err := p.Await(ctx, func() bool { return service.Healthcheck(ctx, p.admin, io.Discard) == nil }); err != nil {
		return fmt.Errorf("await %s: %w", p.program, err)
	}
	return nil
}

const signupsBefore = 100

// faultStep measures from a fault of the leading process to the effect of a later signup at the other one. One signup
// only: the server is behind a unix socket, where many notifications keep a frozen session alive (ADR 3).
func (b *pathBench) faultStep(name, figure string, fault syscall.Signal) step {
	return step{name, func(ctx context.Context) error {
		return b.withServices(ctx, func(s *services) error {
			for n := range signupsBefore {
				if _, err := s.customers[0].signUp(ctx, n); err != nil {
					return err
				}
			}
			if err := s.awaitEffects(ctx); err != nil {
				return err
			}
			leads, follows, err := s.leader(ctx) // not earlier: on a busy machine it changes
			if err != nil {
				return err
			}
			began := time.Now()
			if err := leads.Signal(fault); err != nil {
				return err
			}
			user, err := follows.signUp(ctx, signupsBefore)
			if err != nil {
				return err
			}
			if err := s.awaitContact(ctx, user); err != nil {
				return err
			}
			b.sheet.add(figure, milliseconds(time.Since(began)))
			return s.awaitEffects(ctx)
		})
	}}
}

func (s *services) awaitContact(ctx context.Context, user string) error {
	const contactSQL = "select exists (select from contact where user_id = $1)"
	return poll(ctx, 5*time.Millisecond, func() (arrived bool, err error) {
		err = s.notification.QueryRow(ctx, contactSQL, user).Scan(&arrived)
		return arrived, err
	})
}

func (s *services) awaitEffects(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, arriveLimit)
	defer cancel()
	var missing error
	err := poll(ctx, 100*time.Millisecond, func() (bool, error) {
		missing = s.countEffects(ctx)
		return missing == nil, nil
	})
	return errors.Join(err, missing)
}

func (p *process) signUp(ctx context.Context, n int) (user string, err error) {
	body := fmt.Sprintf(`{"email":%q,"name":%q}`, email(n), visitor)
	header := http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {fmt.Sprintf(`"signup-%d"`, n)}}
	url := "http://" + p.api + "/v1/signups"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return "", fmt.Errorf("sign up: %w", err)
	}
	request.Header = header
	response, err := client.Do(request)
	if err != nil {
		return "", fmt.Errorf("sign up: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusCreated {
		return "", fmt.Errorf("sign up: status %d", response.StatusCode)
	}
	var answer openapi.SignupResponse
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return "", fmt.Errorf("read answer: %w", err)
	}
	return answer.UserId, nil
}

var client = http.Client{Timeout: signupTimeout}

func (b *pathBench) idle(ctx context.Context) error {
	return b.withServices(ctx, func(s *services) error {
		if err := failure.Sleep(ctx, b.plan.Settle); err != nil {
			return err
		}
		began := time.Now()
		before, err := b.used(ctx, s)
		if err != nil {
			return err
		}
		if err := failure.Sleep(ctx, b.plan.IdleFor); err != nil {
			return err
		}
		after, err := b.used(ctx, s)
		if err != nil {
			return err
		}
		for id := range after {
			b.sheet.add(id, (after[id]-before[id])/time.Since(began).Seconds())
		}
		return nil
	})
}

// The transactions that began the sessions do not count. At rest each statement is a transaction.
const transactionsSQL = `
select xact_commit + xact_rollback - sessions from pg_stat_database where datname = $1`

func (b *pathBench) used(ctx context.Context, s *services) (map[string]float64, error) {
	used := map[string]float64{}
	count := func(service string, db *database, processes [2]*process) error {
		for _, p := range processes {
			cpu, err := cpuOf(p.PID())
			if err != nil {
				return err
			}
			used["idle.cpu."+service] += 100 * cpu / float64(len(processes))
		}
		row := b.admin.QueryRow(ctx, transactionsSQL, db.name)
		var n float64
		if err := row.Scan(&n); err != nil {
			return fmt.Errorf("count transactions: %w", err)
		}
		used["idle.statements."+service] = n
		return nil
	}
	return used, errors.Join(
		count("customer", s.customer, s.customers), count("notification", s.notification, s.notifiers))
}
