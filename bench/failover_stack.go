package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"example.com/twinbox/dev/local/mailbox"
	"example.com/twinbox/internal/config"
	"example.com/twinbox/internal/customer"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/notification"
	"example.com/twinbox/internal/outbox/relay"
	"example.com/twinbox/migrations"
)

// stack is two replicas of each service on the stage's database and broker, as processes of their own, with a mail
// server in this one.
type stack struct {
	stage        *stage
	mails        *mailbox.Mailbox
	customer     *database
	notification *database
	customers    [2]*replica
	notifiers    [2]*replica
	watch        *watch
}

// readyLimit is how long a replica may take to be ready.
const readyLimit = time.Minute

// openStack starts everything and waits until it is ready. Close must be called, also after an error.
func openStack(ctx context.Context, st *stage, plan failoverPlan) (s *stack, err error) {
	s = &stack{stage: st}
	programs := filepath.Join(st.dir, "programs")
	if err := build(ctx, programs); err != nil {
		return s, err
	}
	if err := errors.Join(
		st.migrate(ctx, customerTemplate, migrations.ForCustomer()...),
		st.migrate(ctx, notificationTemplate, migrations.ForNotification()...),
	); err != nil {
		return s, err
	}
	if s.customer, err = st.open(ctx, customerTemplate); err != nil {
		return s, err
	}
	if s.notification, err = st.open(ctx, notificationTemplate); err != nil {
		return s, err
	}
	if s.mails, err = mailbox.Start(ctx, mailbox.Config{}); err != nil {
		return s, err
	}
	if err := s.configure(ctx, programs, plan); err != nil {
		return s, err
	}
	if s.watch, err = openWatch(ctx, st.brokers, s.notification); err != nil {
		return s, err
	}
	for _, r := range s.replicas() {
		if err := r.start(); err != nil {
			return s, err
		}
	}
	return s, s.awaitReady(ctx)
}

// configure lays out the replicas, each at an address of its own, and makes the services' topics.
func (s *stack) configure(ctx context.Context, programs string, plan failoverPlan) error {
	at, err := freeAddresses(ctx, 6)
	if err != nil {
		return err
	}
	shared := []string{
		"KAFKA_BROKERS=" + strings.Join(s.stage.brokers, ","), "ENVIRONMENT=bench-" + randomText(),
		"VERIFICATION_SECRET=" + pathSecret, "LOG_LEVEL=warn",
		"DATABASE_MAX_CONNECTIONS=20", // four processes on a server with its default of 100
	}
	if plan.Lease > 0 {
		shared = append(shared, "OUTBOX_LEASE="+plan.Lease.String(), "KAFKA_PUBLISH_TIMEOUT="+(plan.Lease/2).String())
	}
	customerEnviron := append([]string{"DATABASE_URL=" + s.customer.dsn, "RATE_LIMIT=0"}, shared...)
	notificationEnviron := append([]string{
		"DATABASE_URL=" + s.notification.dsn, "SMTP_ADDR=" + s.mails.SMTPAddr(),
	}, shared...)
	for i := range s.customers {
		s.customers[i] = &replica{
			name: fmt.Sprintf("customer %d", i+1), program: filepath.Join(programs, "customer"), api: at[i], admin: at[2+i],
			log:     filepath.Join(s.stage.dir, fmt.Sprintf("customer-%d.log", i+1)),
			environ: append([]string{"HTTP_ADDR=" + at[i], "ADMIN_ADDR=" + at[2+i]}, customerEnviron...),
		}
		s.notifiers[i] = &replica{
			name: fmt.Sprintf("notification %d", i+1), program: filepath.Join(programs, "notification"), admin: at[4+i],
			log:     filepath.Join(s.stage.dir, fmt.Sprintf("notification-%d.log", i+1)),
			environ: append([]string{"ADMIN_ADDR=" + at[4+i]}, notificationEnviron...),
		}
	}
	var customerConfig customer.Config
	var notificationConfig notification.Config
	if err := errors.Join(
		config.Load(s.customers[0].environ, &customerConfig), config.Load(s.notifiers[0].environ, &notificationConfig),
	); err != nil {
		return err
	}
	var names []string
	for _, topics := range [][]kafka.Topic{customerConfig.Topics(), notificationConfig.Topics()} {
		for _, topic := range topics {
			names = append(names, topic.Name)
		}
	}
	return s.stage.kafka.claim(ctx, names...)
}

func (s *stack) replicas() []*replica {
	return []*replica{s.customers[0], s.customers[1], s.notifiers[0], s.notifiers[1]}
}

func (s *stack) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyLimit, fmt.Errorf("not ready within %s", readyLimit))
	defer cancel()
	for _, r := range s.replicas() {
		if err := r.awaitReady(ctx); err != nil {
			return err
		}
	}
	return nil
}

// leader is the replica of Customer whose relay leads, and the other one.
func (s *stack) leader(ctx context.Context) (leads, follows *replica, err error) {
	status, err := relay.ReadStatus(ctx, s.customer)
	if err != nil {
		return nil, nil, fmt.Errorf("read leader: %w", err)
	}
	if !status.Leading {
		return nil, nil, errors.New("read leader: no replica leads")
	}
	for i, r := range s.customers {
		if strings.HasSuffix(status.Leader, "/"+strconv.Itoa(r.cmd.Process.Pid)) {
			return r, s.customers[1-i], nil
		}
	}
	return nil, nil, fmt.Errorf("read leader: %s is no replica", status.Leader)
}

// close kills what runs: nothing of it is needed any more.
func (s *stack) close() error {
	var problems []error
	if s.watch != nil {
		problems = append(problems, s.watch.close())
	}
	for _, r := range s.replicas() {
		if r != nil && r.runs() {
			_, err := r.kill()
			problems = append(problems, err)
		}
	}
	if s.mails != nil {
		problems = append(problems, s.mails.Close())
	}
	return errors.Join(problems...)
}
