package admin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/service"
)

// With a silent database, each of the two takes seconds.
func (s handlers) stations(ctx context.Context, _ nothing) (out adminapi.Stations, err error) {
	var report service.Readiness
	var asked sync.WaitGroup
	asked.Go(func() { report = s.Readiness() })
	found, err := gather(s.Metrics)
	asked.Wait()
	if err != nil {
		return out, err
	}
	out = adminapi.Stations{
		Service: s.Service, Environment: s.Environment, At: time.Now().UTC(), Status: report.Status,
		Causes: append(append([]service.Cause{}, report.Causes...), failingChecks(report)...), Stations: s.stationsOf(found),
	}
	if report.Status == service.StatusDraining {
		out.Causes = append(out.Causes, service.Cause{
			Code: "draining", Station: "http/" + s.Service, What: "This instance is shutting down.",
			Means: "It takes no more requests, and gives its work to another instance.", Do: "Start one if none runs.",
		})
	}
	for i := range out.Stations {
		judge(&out.Stations[i], out.Causes)
	}
	return out, nil
}

func (s handlers) stationsOf(found figures) (all []adminapi.Station) {
	if len(found["http_server_requests_in_flight"]) > 0 {
		all = append(all, adminapi.Station{
			Kind: "http", Name: s.Service, Passed: orZero(found.sum("http_server_requests_total")),
			Refused: orZero(found.having("status", "4xx", "5xx").sum("http_server_requests_total")),
			Waiting: found.sum("http_server_requests_in_flight"),
		})
	}
	for _, handler := range found.values("lease_stale_rejects_total", "handler") {
		of := found.having("handler", handler)
		all = append(all, adminapi.Station{
			Kind: "mail", Name: handler, Passed: orZero(of.sum("lease_attempts_total")),
			Waiting:     of.having("state", "pending", "claimed", "submitting").sum("lease_rows"),
			ForOperator: of.having("state", "uncertain", "failed").sum("lease_rows"),
			AgeSeconds:  of.having("state", "pending").sum("lease_oldest_seconds"),
		})
	}
	all = append(all, adminapi.Station{
		Kind: "outbox", Name: s.Service, Waiting: found.sum("outbox_relay_lag_events"),
		AgeSeconds: found.sum("outbox_relay_oldest_unpublished_seconds"),
	}, adminapi.Station{
		Kind: "relay", Name: s.Service, Passed: orZero(found.sum("outbox_relay_published_total")),
		Waiting: found.sum("outbox_relay_held_events"), ForOperator: found.sum("outbox_relay_parked_keys"),
	})
	for _, topic := range found.values("outbox_topic_info", "topic") {
		if !strings.HasPrefix(topic, event.CopyPrefix) { // no consumer reads copies
			all = append(all, adminapi.Station{
				Kind: "topic", Name: topic, Passed: orZero(found.having("topic", topic).sum("outbox_relay_published_total")),
			})
		}
	}
	for _, c := range s.Consumers {
		of := found.having("consumer", c.Name)
		all = append(all, adminapi.Station{
			Kind: "inbox", Name: c.Name, Topic: c.Topic, Passed: orZero(of.sum("inbox_messages_total")),
			Waiting: of.sum("kafka_consumer_lag_records"), ForOperator: of.sum("dead_letters_waiting"),
			AgeSeconds: of.highest("kafka_consumer_lag_seconds"),
		})
	}
	return all
}

// A station with a missing figure is unknown, never well.
func judge(s *adminapi.Station, causes []service.Cause) {
	id := s.Kind
	if s.Kind != "relay" {
		id += "/" + s.Name
	}
	s.State = adminapi.Well
	hasWaiting, hasForOperator := s.Kind != "topic", s.Kind != "topic" && s.Kind != "http" && s.Kind != "outbox"
	if hasWaiting && s.Waiting == nil || hasForOperator && s.ForOperator == nil {
		s.State = adminapi.Unknown
	}
	for _, c := range causes {
		if !c.Concerns(id) || s.State == adminapi.Stopped || s.State == adminapi.Watch && !c.Stops {
			continue
		}
		s.State, s.Note = adminapi.Watch, strings.ReplaceAll(c.Code, "_", " ")
		if c.Stops {
			s.State = adminapi.Stopped
		}
	}
}

func failingChecks(report service.Readiness) (causes []service.Cause) {
	for _, check := range report.Checks {
		station := "check/" + check.Name
		switch consumer, isConsumer := strings.CutPrefix(check.Name, "consumer "); {
		case isConsumer:
			station = service.StationInbox + consumer
		case check.Name == "relay", check.Name == "held events":
			station = service.StationRelay
		case check.Name == "broker":
			station = service.StationBroker
		}
		isExplained := slices.ContainsFunc(report.Causes, func(c service.Cause) bool {
			return c.Stops && (c.Concerns(station) || c.Code == strings.ReplaceAll(check.Name, " ", "_")+"_down")
		})
		if check.Status != service.StatusFailing || isExplained {
			continue
		}
		causes = append(causes, service.Cause{
			Code: "not_ready", Station: station, What: fmt.Sprintf("The service is not ready: %s.", check.Name),
			Means: "A load balancer sends it no requests.", Do: "Follow the details.", Details: check.Reason,
		})
	}
	return causes
}

type figures map[string][]figure

type figure struct {
	labels prometheus.Labels
	value  float64
}

func gather(from prometheus.Gatherer) (figures, error) {
	families, err := from.Gather()
	if err != nil {
		return nil, fmt.Errorf("gather metrics: %w", err)
	}
	found := figures{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			one := figure{prometheus.Labels{}, metric.GetCounter().GetValue() + metric.GetGauge().GetValue()}
			for _, label := range metric.GetLabel() {
				one.labels[label.GetName()] = label.GetValue()
			}
			found[family.GetName()] = append(found[family.GetName()], one)
		}
	}
	return found, nil
}

func (f figures) having(label string, values ...string) figures {
	picked := figures{}
	for name, all := range f {
		for _, one := range all {
			if slices.Contains(values, one.labels[label]) {
				picked[name] = append(picked[name], one)
			}
		}
	}
	return picked
}

// Nil: the metric has no figures.
func (f figures) sum(name string) (sum *float64) {
	for _, one := range f[name] {
		sum = new(known(sum) + one.value)
	}
	return sum
}

func (f figures) highest(name string) (highest *float64) {
	for _, one := range f[name] {
		highest = new(max(known(highest), one.value))
	}
	return highest
}

func (f figures) values(name, label string) (found []string) {
	for _, one := range f[name] {
		if v := one.labels[label]; !slices.Contains(found, v) {
			found = append(found, v)
		}
	}
	return found
}

// orZero is for counters, which are missing until their first count.
func orZero(counted *float64) *float64 { return new(known(counted)) }
